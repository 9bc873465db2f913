// Regular expressions over parameter names, matched in time linear in pattern x name (RE2), since a user's
// job file or an adapter's config contains them.
//
// An expression means what it means in Python's re.fullmatch() with re.ASCII, on which the users of sharding
// rules and of PEFT's target_modules rely. Expressions that only one of the two libraries accepts, or that
// they read differently, are errors: backreferences, look-around, conditions, atomic groups and possessive
// quantifiers of Python; [[:alpha:]], \p{L}, \Q, \z and (?U) of RE2; {,n} and \B. Other braces need a
// backslash. Names are matched as UTF-8.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace redco {

class NameRegex {
 public:
  static constexpr std::size_t kMaxLength = 1024;  // of the expression, in bytes

  // Throws UsageError naming the expression, the position and the problem.
  explicit NameRegex(std::string_view expression);

  // Whether the expression matches the whole of `text`. Any thread may call it.
  bool matches(std::string_view text) const;

  const std::string& expression() const { return expression_; }

 private:
  std::string expression_;
  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace redco
