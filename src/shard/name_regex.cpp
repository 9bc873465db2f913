#include "shard/name_regex.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

// A recursive-descent parser that builds fragments of the automaton. A fragment has one entry and one exit;
// the exit's `next` is not set yet. Quantifiers copy their operand by parsing its text again, so fragments
// are never cloned.
class NameRegexCompiler {
 public:
  explicit NameRegexCompiler(NameRegex& r) : r_(r), text_(r.expression_) {}

  void compile() {
    const Fragment f = alternatives(0);
    if (at_ < text_.size()) fail("unbalanced ')'");
    const int accept = state({NameRegex::Op::accept});
    r_.states_[f.exit].next = accept;
    r_.start_ = f.entry;
  }

 private:
  struct Fragment {
    int entry, exit;
  };
  static constexpr int kMaxDepth = 100;
  static constexpr int kMaxRepeat = 1000;

  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("[sharding_rules] match: '{}': {} at position {}", r_.expression_, what, at_ + 1);
  }
  bool more() const { return at_ < text_.size(); }

  int state(NameRegex::State s) {
    if (r_.states_.size() >= NameRegex::kMaxStates)
      fail("the expression is too large after its {m,n} are expanded");
    r_.states_.push_back(s);
    return static_cast<int>(r_.states_.size()) - 1;
  }
  // Matches the empty text: a split with one branch.
  int empty() { return state({NameRegex::Op::split}); }
  Fragment set(const std::bitset<256>& chars) {
    const auto it = std::find(r_.sets_.begin(), r_.sets_.end(), chars);
    const int index = static_cast<int>(it - r_.sets_.begin());
    if (it == r_.sets_.end()) r_.sets_.push_back(chars);
    const int s = state({NameRegex::Op::set, -1, -1, index});
    return {s, s};
  }

  Fragment alternatives(int depth) {
    if (depth > kMaxDepth) fail("groups are nested too deep");
    Fragment f = sequence(depth);
    while (more() && text_[at_] == '|') {
      ++at_;
      const Fragment g = sequence(depth);
      const int fork = state({NameRegex::Op::split, f.entry, g.entry});
      const int join = empty();
      r_.states_[f.exit].next = join;
      r_.states_[g.exit].next = join;
      f = {fork, join};
    }
    return f;
  }

  Fragment sequence(int depth) {
    const int first = empty();
    Fragment all{first, first};
    while (more() && text_[at_] != '|' && text_[at_] != ')') {
      const Fragment f = repeated(depth);
      r_.states_[all.exit].next = f.entry;
      all.exit = f.exit;
    }
    return all;
  }

  Fragment repeated(int depth) {
    const std::size_t from = at_;
    const bool anchor = text_[at_] == '^' || text_[at_] == '$';
    Fragment f = atom(depth);
    int least = 1, most = 1;  // most -1: no limit
    if (!quantifier(&least, &most)) return f;
    if (anchor) fail("nothing to repeat");
    const std::size_t after = at_;
    // x{m,n} = x ... x (m times), then n - m times (x ...)?, or (x)* if there is no limit. The first copy
    // already exists.
    const int first = empty();
    Fragment all{first, first};
    bool have_first = true;
    const auto copy = [&]() {
      if (have_first) {
        have_first = false;
        return f;
      }
      at_ = from;
      return atom(depth);
    };
    const auto append = [&](Fragment g) {
      r_.states_[all.exit].next = g.entry;
      all.exit = g.exit;
    };
    for (int i = 0; i < least; ++i) append(copy());
    if (most < 0) {
      const Fragment g = copy();
      const int out = empty();
      const int fork = state({NameRegex::Op::split, g.entry, out});
      r_.states_[g.exit].next = fork;
      append({fork, out});
    } else {
      for (int i = least; i < most; ++i) {
        const Fragment g = copy();
        const int out = empty();
        const int fork = state({NameRegex::Op::split, g.entry, out});
        r_.states_[g.exit].next = out;
        append({fork, out});
      }
    }
    at_ = after;
    if (more() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '?')) fail("multiple repeat");
    return all;
  }

  // Reads * + ? {m} {m,} {m,n} and an optional lazy '?', which has no effect on a full match.
  bool quantifier(int* least, int* most) {
    if (!more()) return false;
    const char c = text_[at_];
    if (c == '*' || c == '+' || c == '?') {
      *least = c == '+' ? 1 : 0;
      *most = c == '?' ? 1 : -1;
      ++at_;
    } else if (c == '{') {
      ++at_;
      if (!number(least)) fail("'{' must begin {m}, {m,} or {m,n}; a literal brace is '\\{'");
      *most = *least;
      if (more() && text_[at_] == ',') {
        ++at_;
        if (!number(most)) *most = -1;
      }
      if (!more() || text_[at_] != '}') fail("'{' without a matching '}'");
      ++at_;
      if (*most >= 0 && *most < *least) fail("{m,n} with n < m");
    } else {
      return false;
    }
    if (more() && text_[at_] == '?') ++at_;
    return true;
  }

  bool number(int* value) {
    if (!more() || text_[at_] < '0' || text_[at_] > '9') return false;
    *value = 0;
    for (; more() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      *value = *value * 10 + (text_[at_] - '0');
      if (*value > kMaxRepeat) fail("the repeat count is above 1000");
    }
    return true;
  }

  Fragment atom(int depth) {
    const char c = text_[at_];
    switch (c) {
      case '(': {
        ++at_;
        if (more() && text_[at_] == '?') {
          if (at_ + 1 < text_.size() && text_[at_ + 1] == ':')
            at_ += 2;
          else
            fail(
                "'(?' other than '(?:' (look-around is not supported; write a rule for the exception before "
                "this one)");
        }
        const Fragment f = alternatives(depth + 1);
        if (!more()) fail("'(' without a matching ')'");
        ++at_;
        return f;
      }
      case '[':
        return set(bracket());
      case '.':
        ++at_;
        return set(~std::bitset<256>{}.set('\n'));
      case '^': {
        ++at_;
        const int s = state({NameRegex::Op::begin});
        return {s, s};
      }
      case '$': {
        ++at_;
        const int s = state({NameRegex::Op::end});
        return {s, s};
      }
      case '*':
      case '+':
      case '?':
        fail("nothing to repeat");
      case '{':
        fail("nothing to repeat; a literal brace is '\\{'");
      case '\\':
        return set(escape());
      default:
        ++at_;
        return set(one(c));
    }
  }

  static std::bitset<256> one(char c) { return std::bitset<256>{}.set(static_cast<unsigned char>(c)); }

  // After a backslash: a class (\d \w \s \D \W \S), a control character, or any character that is not a
  // letter.
  std::bitset<256> escape() {
    ++at_;
    if (!more()) fail("the expression ends in a backslash");
    const char c = text_[at_];
    const char lower = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    std::bitset<256> s;
    if (lower == 'd' || lower == 'w') {
      for (char x = '0'; x <= '9'; ++x) s.set(static_cast<unsigned char>(x));
      if (lower == 'w') {
        for (char x = 'a'; x <= 'z'; ++x) s.set(static_cast<unsigned char>(x));
        for (char x = 'A'; x <= 'Z'; ++x) s.set(static_cast<unsigned char>(x));
        s.set('_');
      }
    } else if (lower == 's') {
      for (const char x : {' ', '\t', '\n', '\r', '\f', '\v'}) s.set(static_cast<unsigned char>(x));
    } else if (c == 't') {
      s = one('\t');
    } else if (c == 'n') {
      s = one('\n');
    } else if ((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9')) {
      fail(std::string("'\\") + c + "' is not supported");
    } else {
      s = one(c);
    }
    if (c == 'D' || c == 'W' || c == 'S') s = ~s;
    ++at_;
    return s;
  }

  std::bitset<256> bracket() {
    ++at_;
    bool negated = false;
    if (more() && text_[at_] == '^') {
      negated = true;
      ++at_;
    }
    std::bitset<256> all;
    for (bool first = true;; first = false) {
      if (!more()) fail("'[' without a matching ']'");
      if (text_[at_] == ']' && !first) break;
      const std::bitset<256> low = member();
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        const std::bitset<256> high = member();
        if (low.count() != 1 || high.count() != 1)
          fail("a range in '[...]' whose ends are not single characters");
        const std::size_t a = low._Find_first(), b = high._Find_first();
        if (a > b) fail("a range in '[...]' whose end is before its begin");
        for (std::size_t x = a; x <= b; ++x) all.set(x);
      } else {
        all |= low;
      }
    }
    ++at_;
    return negated ? ~all : all;
  }
  std::bitset<256> member() {
    if (!more()) fail("'[' without a matching ']'");
    if (text_[at_] == '\\') return escape();
    return one(text_[at_++]);
  }

  NameRegex& r_;
  std::string_view text_;
  std::size_t at_ = 0;
};

NameRegex::NameRegex(std::string_view expression) : expression_(expression) {
  if (expression.size() > kMaxLength)
    throw UsageError("[sharding_rules] match: '{}...' has {} characters; at most {} are allowed",
                     expression.substr(0, 60), expression.size(), kMaxLength);
  NameRegexCompiler(*this).compile();
}

// Adds `state` and all states that it reaches without reading a character.
void NameRegex::add(std::vector<int>& list, std::vector<int>& mark, std::vector<int>& stack, int state,
                    int stamp, bool at_begin, bool at_end) const {
  stack.push_back(state);
  while (!stack.empty()) {
    const int s = stack.back();
    stack.pop_back();
    if (s < 0 || mark[s] == stamp) continue;
    mark[s] = stamp;
    const State& st = states_[s];
    switch (st.op) {
      case Op::split:
        stack.push_back(st.next);
        stack.push_back(st.other);
        break;
      case Op::begin:
        if (at_begin) stack.push_back(st.next);
        break;
      case Op::end:
        if (at_end) stack.push_back(st.next);
        break;
      default:
        list.push_back(s);
    }
  }
}

bool NameRegex::matches(std::string_view text) const {
  std::vector<int> now, then, stack, mark(states_.size(), -1);
  add(now, mark, stack, start_, 0, true, text.empty());
  for (std::size_t i = 0; i < text.size() && !now.empty(); ++i) {
    then.clear();
    const int stamp = static_cast<int>(i) + 1;
    for (const int s : now) {
      const State& st = states_[s];
      if (st.op == Op::set && sets_[st.set].test(static_cast<unsigned char>(text[i])))
        add(then, mark, stack, st.next, stamp, false, i + 1 == text.size());
    }
    now.swap(then);
  }
  return std::any_of(now.begin(), now.end(), [&](int s) { return states_[s].op == Op::accept; });
}

}  // namespace redco
