#include "run/handed_job.h"

#include <cstdlib>

#include "base/error.h"

namespace redco {

namespace {
// Linux limits one variable with its name to 128 KiB.
constexpr std::size_t kMostJobText = 120 << 10;
}  // namespace

std::optional<std::string> handed_job() {
  const char* text = std::getenv(kJobVariable);
  if (!text) return std::nullopt;
  std::string out = text;
  unsetenv(kJobVariable);
  return out;
}

std::string text_to_hand(const ResolvedJob& resolved) {
  std::string text = resolved.to_text();
  if (text.size() > kMostJobText)
    throw UsageError(
        "[job] the settings take {} bytes compressed, but ranks can get at most {}; put long texts into "
        "files (predict.input)",
        text.size(), kMostJobText);
  return text;
}

}  // namespace redco
