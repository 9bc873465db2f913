// What a split does with the matches of its pattern: Hugging Face's SplitDelimiterBehavior.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redco {

enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// ContentsError for another name.
SplitBehavior parse_split_behavior(const std::string& name, const std::string& where);

struct Span {
  std::size_t begin, end;
  bool match;
};

// The matches (in order, without overlap) and the spans between them, as one list that covers 0..size.
// `invert` swaps matches and non-matches.
std::vector<Span> spans_of(const std::vector<std::pair<std::size_t, std::size_t>>& matches, std::size_t size,
                           bool invert);

// The pieces of these spans; some may be empty.
std::vector<std::pair<std::size_t, std::size_t>> pieces_of(SplitBehavior behavior,
                                                           const std::vector<Span>& spans);

}  // namespace redco
