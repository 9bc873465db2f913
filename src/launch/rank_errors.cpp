#include "launch/rank_errors.h"

#include <charconv>

namespace redco {

namespace {
// ASCII's record and unit separators: redco prints no text with them.
constexpr char kMark = '\x1e', kEnd = '\x1f', kEndMark = 'e';

std::string with_mark(std::string_view text, const std::string& mark) {
  std::string out = mark;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  for (const char c : text) {
    out += c;
    if (c == '\n') out += mark;
  }
  return out + '\n';
}

}  // namespace

std::string marked(std::string_view text, int rank) {
  return with_mark(text, kMark + std::to_string(rank) + kEnd);
}
std::string marked_end(std::string_view text, int rank) {
  return with_mark(text, std::string(1, kMark) + kEndMark + std::to_string(rank) + kEnd);
}

std::string OneVoice::unmark(std::string_view line) {
  const std::size_t end = line.find(kEnd);
  int rank = -1;
  const bool ends = line.size() > 1 && line[1] == kEndMark;
  if (end == std::string_view::npos ||
      std::from_chars(line.data() + (ends ? 2 : 1), line.data() + end, rank).ptr != line.data() + end ||
      rank < 0)
    return std::string(line);
  if (ends) {
    if (end_text_.empty()) end_text_ = line.substr(end + 1);
    return {};
  }
  if (speaker_ < 0) speaker_ = rank;
  return rank == speaker_ ? std::string(line.substr(end + 1)) : std::string();
}

std::string OneVoice::feed(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    if (!held_.empty() || (at_start_ && c == kMark)) {
      held_ += c;
      if (c == '\n') {
        out += unmark(held_);
        held_.clear();
      }
    } else {
      out += c;
    }
    at_start_ = c == '\n' || c == '\r';
  }
  return out;
}

std::string OneVoice::flush() {
  const std::string out = held_.empty() ? std::string() : unmark(held_);
  held_.clear();
  return out;
}

}  // namespace redco
