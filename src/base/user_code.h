// Errors in the code of users: pipelines, models, optimizers, environments and metrics from shared objects.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace redco {

// The text of an error in a user's code, where `why` follows "... failed".
using UserMessage = std::function<std::string(const std::string& why)>;

// In a catch block around a user's code: an exception that isn't redco's, or a failed check of redco, is the
// user's mistake, a UsageError. std::bad_alloc becomes an Error with the code doesnt_fit. redco's other
// errors are thrown again.
[[noreturn]] void rethrow_from_user(const UserMessage& message);

// The user's code that runs on this thread; null: there is none. Functions that are called later, such as a
// block that the backward pass repeats, keep it.
using UserCode = std::shared_ptr<const UserMessage>;
UserCode running_user_code();

// Calls f as this user's code: its errors are those of rethrow_from_user().
class UserCodeScope {
 public:
  explicit UserCodeScope(UserCode code);
  ~UserCodeScope();
  UserCodeScope(const UserCodeScope&) = delete;
  UserCodeScope& operator=(const UserCodeScope&) = delete;

 private:
  UserCode before_;
};
template <class F>
auto in_user_code(UserCode code, F&& f) {
  if (!code) return f();
  const UserCodeScope scope(code);
  try {
    return f();
  } catch (...) {
    rethrow_from_user(*code);
  }
}
template <class F>
auto in_user_code(UserMessage message, F&& f) {
  return in_user_code(std::make_shared<const UserMessage>(std::move(message)), std::forward<F>(f));
}

}  // namespace redco
