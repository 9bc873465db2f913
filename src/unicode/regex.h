// Regular expressions with look-ahead and Unicode classes: Oniguruma in its Ruby syntax. The `Regex` patterns
// of a tokenizer.json use this syntax.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redco {

// Initializes Oniguruma once per process; thread-safe. The constructor of Regex calls it.
void initialize_oniguruma();

// A compiled pattern. Immutable and thread-safe.
//
// Patterns come from files, so compiling and searching are bounded: at most 16 KiB of pattern, nesting depth
// 256, and a limit on backtracking per search. ContentsError, starting with `where` (file and field), if a
// limit is exceeded or the pattern doesn't compile.
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

// A pattern that matches exactly the text `literal`.
std::string escape_regex(std::string_view literal);

}  // namespace redco
