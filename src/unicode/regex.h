// Regular expressions with look-ahead and Unicode classes: Oniguruma in its Ruby syntax, which is what the
// `Regex` patterns of a tokenizer.json are written for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redco {

// Sets Oniguruma up once per process; thread-safe. Regex does it by itself.
void initialize_oniguruma();

// A compiled pattern. Immutable: any number of threads may search with it at once.
//
// Patterns come from files, so both compiling and searching are bounded: at most 16 KiB of pattern, nesting
// 256, and bounded backtracking per search. Over a bound, or for a pattern that doesn't compile:
// ContentsError, with `where` (file and field) in front.
class Regex {
 public:
  Regex(std::string pattern, std::string where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // [begin, end) of every match from left to right without overlap, in bytes. An empty match that touches the
  // one before it is skipped. REQUIRES valid UTF-8.
  std::vector<std::pair<std::size_t, std::size_t>> find_all(std::string_view text) const;

  const std::string& pattern() const { return pattern_; }

 private:
  struct Impl;
  std::string pattern_, where_;
  std::unique_ptr<Impl> impl_;
};

// `literal` as a pattern that matches exactly it.
std::string escape_regex(std::string_view literal);

}  // namespace redco
