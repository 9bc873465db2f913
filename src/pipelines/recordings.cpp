#include "pipelines/recordings.h"

#include "base/error.h"

namespace redco {

namespace {
constexpr i64 kMostSeconds = 4 * 3600;
}

std::vector<float> Recordings::read(const std::string& name, const std::string& folder) const {
  const i64 window = spectrum_.window();
  const std::vector<float> samples = source_.read(name, folder, spectrum_.rate(), window + 1);
  if (static_cast<i64>(samples.size()) > window && !cut_long_)
    throw ContentsError(
        "[data] {}: the recording is longer than the model's window of {} seconds. Split it and its "
        "text, or set transcription.cut_long: true, which drops the end of long recordings",
        source_.where(name, folder), spectrum_.seconds());
  return spectrum_(samples);
}

std::vector<float> Recordings::whole(const std::string& name, const std::string& folder, i64* n) const {
  const i64 most = kMostSeconds * spectrum_.rate();
  const std::vector<float> samples = source_.read(name, folder, spectrum_.rate(), most + 1);
  *n = std::ssize(samples);
  if (*n > most)
    throw ContentsError("[data] {}: the recording is longer than {} hours; split it",
                        source_.where(name, folder), kMostSeconds / 3600);
  return spectrum_.whole(samples);
}

}  // namespace redco
