// Regular expressions over parameter names, matched in time linear in pattern x name.
//
// A user's job file contains the expressions, so they must cause neither a hang nor a stack overflow. The
// pattern is compiled to a small automaton whose states are all followed in parallel (K. Thompson, CACM
// 1968), without backtracking. Supported, with the same meaning as in Python's re: literals, `.`, `[a-z]`,
// `[^...]`, `\d \w \s` and their negations, escapes, `(...)`, `(?:...)`, `|`, `* + ? {m} {m,} {m,n}` and
// their lazy forms, `^` and `$`. Backreferences and look-around are errors. Names are matched as bytes.
#pragma once

#include <array>
#include <bitset>
#include <string>
#include <string_view>
#include <vector>

namespace redco {

class NameRegex {
 public:
  static constexpr std::size_t kMaxLength = 1024;   // of the expression, in bytes
  static constexpr std::size_t kMaxStates = 20000;  // of the automaton, after {m,n} is expanded

  // Throws UsageError naming the expression, the position and the problem.
  explicit NameRegex(std::string_view expression);

  // Whether the expression matches the whole of `text`. Takes time O(size of expression x size of text). Any
  // thread may call it.
  bool matches(std::string_view text) const;

  const std::string& expression() const { return expression_; }

 private:
  friend class NameRegexCompiler;
  enum class Op : unsigned char { set, split, begin, end, accept };
  struct State {
    Op op;
    int next = -1;   // the state after this one
    int other = -1;  // split: the second branch
    int set = -1;    // set: index into sets_
  };
  void add(std::vector<int>& list, std::vector<int>& mark, std::vector<int>& stack, int state, int stamp,
           bool at_begin, bool at_end) const;

  std::string expression_;
  std::vector<State> states_;
  std::vector<std::bitset<256>> sets_;
  int start_ = 0;
};

}  // namespace redco
