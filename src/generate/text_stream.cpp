#include "generate/text_stream.h"

#include <algorithm>

namespace redco {

namespace {
constexpr std::string_view kUnfinished = "\xEF\xBF\xBD";  // U+FFFD
}

StopTexts::StopTexts(std::vector<std::string> texts, Decode decode)
    : texts_(std::move(texts)), decode_(std::move(decode)) {
  for (const std::string& t : texts_) longest_ = std::max(longest_, t.size());
}

bool StopTexts::ends(std::span<const i32> new_ids) const {
  if (texts_.empty()) return false;
  // Decodes enough of the last tokens to contain the longest stop text; a token may have no text.
  for (std::size_t n = 16;; n *= 2) {
    const auto tail = new_ids.last(std::min(n, new_ids.size()));
    const std::string text = decode_(tail);
    if (find(text) != std::string::npos) return true;
    if (tail.size() == new_ids.size() || text.size() >= 2 * longest_ + 64) return false;
  }
}

std::size_t StopTexts::find(std::string_view text) const {
  std::size_t first = std::string::npos;
  for (const std::string& t : texts_) first = std::min(first, text.find(t));
  return first;
}

std::string StopTexts::cut(std::string text) const {
  const std::size_t at = find(text);
  if (at != std::string::npos) text.resize(at);
  return text;
}

std::size_t StopTexts::maybe(std::string_view text) const {
  for (std::size_t n = std::min(longest_, text.size()); n > 0; --n)
    for (const std::string& t : texts_)
      if (n < t.size() && text.ends_with(std::string_view(t).substr(0, n))) return n;
  return 0;
}

std::string TextStream::push(std::span<const i32> new_ids, bool last) {
  if (stopped_) return "";
  std::string text = decode_(new_ids.subspan(from_));
  const std::size_t whole = text.size();
  while (!last && text.ends_with(kUnfinished)) text.resize(text.size() - kUnfinished.size());
  if (text.size() > seen_) {
    pending_ += text.substr(seen_);
    seen_ = text.size();
  }
  // Long answers are decoded from a later token on. Some earlier tokens are kept, because a token's text may
  // depend on its neighbours.
  constexpr std::size_t kWindow = 96, kKept = 16;
  if (text.size() == whole && new_ids.size() - from_ > kWindow) {
    from_ = new_ids.size() - kKept;
    seen_ = decode_(new_ids.subspan(from_)).size();
  }
  std::size_t n = stop_.find(pending_);
  stopped_ = n != std::string::npos;
  if (!stopped_) n = last ? pending_.size() : pending_.size() - stop_.maybe(pending_);
  std::string out = pending_.substr(0, n);
  pending_.erase(0, n);
  return out;
}

}  // namespace redco
