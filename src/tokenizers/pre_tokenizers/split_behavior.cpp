#include "tokenizers/pre_tokenizers/split_behavior.h"

#include <algorithm>

#include "base/json_fields.h"

namespace redco {

SplitBehavior parse_split_behavior(const std::string& name, const std::string& where) {
  static constexpr std::pair<const char*, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  for (const auto& [n, b] : kNames)
    if (name == n) return b;
  unknown_type(where, name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

std::vector<Span> spans_of(const std::vector<std::pair<std::size_t, std::size_t>>& matches, std::size_t size,
                           bool invert) {
  std::vector<Span> spans;
  spans.reserve(2 * matches.size() + 1);
  std::size_t done = 0;
  for (const auto& [begin, end] : matches) {
    if (done != begin) spans.push_back({done, begin, invert});
    spans.push_back({begin, end, !invert});
    done = end;
  }
  if (done != size) spans.push_back({done, size, invert});
  return spans;
}

std::vector<std::pair<std::size_t, std::size_t>> pieces_of(SplitBehavior behavior,
                                                           const std::vector<Span>& spans) {
  std::vector<std::pair<std::size_t, std::size_t>> pieces;
  pieces.reserve(spans.size());
  bool previous = false;  // whether the previous span is a match
  switch (behavior) {
    case SplitBehavior::isolated:
      for (const Span& s : spans) pieces.emplace_back(s.begin, s.end);
      break;
    case SplitBehavior::removed:
      for (const Span& s : spans)
        if (!s.match) pieces.emplace_back(s.begin, s.end);
      break;
    case SplitBehavior::contiguous:
      for (const Span& s : spans) {
        if (s.match == previous && !pieces.empty())
          pieces.back().second = s.end;
        else
          pieces.emplace_back(s.begin, s.end);
        previous = s.match;
      }
      break;
    case SplitBehavior::merged_with_previous:
      for (const Span& s : spans) {
        if (s.match && !previous && !pieces.empty())
          pieces.back().second = s.end;
        else
          pieces.emplace_back(s.begin, s.end);
        previous = s.match;
      }
      break;
    case SplitBehavior::merged_with_next:  // the same, from the right
      for (auto s = spans.rbegin(); s != spans.rend(); ++s) {
        if (s->match && !previous && !pieces.empty())
          pieces.back().first = s->begin;
        else
          pieces.emplace_back(s->begin, s->end);
        previous = s->match;
      }
      std::reverse(pieces.begin(), pieces.end());
      break;
  }
  return pieces;
}

}  // namespace redco
