#include "pipelines/speech_windows.h"

#include <algorithm>

namespace redco {

WindowSegments segments_of(std::span<const i32> ids, const SpeechTokens& tokens, double seconds) {
  const auto time = [&](size_t i) { return tokens.seconds(ids[i]); };
  while (!ids.empty() && ids.back() == tokens.times().end) ids = ids.first(ids.size() - 1);
  const size_t n = ids.size();
  WindowSegments out;
  const auto add = [&](size_t begin, size_t end, double from, double to) {
    out.segments.push_back(
        {from, to, {ids.begin() + static_cast<i64>(begin), ids.begin() + static_cast<i64>(end)}});
  };
  // Segments end between two times.
  std::vector<size_t> ends;
  for (size_t i = 0; i + 1 < n; ++i)
    if (time(i) && time(i + 1)) ends.push_back(i + 1);
  const bool ends_with_time = n >= 1 && time(n - 1) && (n < 2 || !time(n - 2));
  out.next = seconds;
  if (ends.empty()) {
    double last = seconds;
    for (size_t i = 0; i < n; ++i)
      if (const auto t = time(i); t && *t > 0) last = *t;
    if (n > 0) add(0, n, 0, last);
    return out;
  }
  // The last segment has its end in the window; one that has none is read again with the next window.
  if (ends_with_time) ends.push_back(n);
  size_t begin = 0;
  for (const size_t end : ends) {
    add(begin, end, time(begin).value_or(0), time(end - 1).value_or(seconds));
    begin = end;
  }
  if (!ends_with_time && out.segments.back().end > 0) out.next = std::min(seconds, out.segments.back().end);
  return out;
}

Decode speech_decoder(const Tokenizer& tokenizer, const SpeechTokens& tokens) {
  return [&](std::span<const i32> ids) {
    std::vector<i32> text;
    for (const i32 id : ids)
      if (!tokens.seconds(id)) text.push_back(id);
    return tokenizer.decode(text, true);
  };
}

}  // namespace redco
