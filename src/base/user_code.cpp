#include "base/user_code.h"

#include <new>

#include "base/error.h"

namespace redco {

namespace {
thread_local UserCode user_code;
}

UserCode running_user_code() { return user_code; }
UserCodeScope::UserCodeScope(UserCode code) : before_(std::exchange(user_code, std::move(code))) {}
UserCodeScope::~UserCodeScope() { user_code = std::move(before_); }

void rethrow_from_user(const UserMessage& message) {
  try {
    throw;
  } catch (const BugError& e) {
    throw UsageError("{}", message(": " + e.found()));
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw Error(ExitCode::doesnt_fit, message(": it asked for more memory than there is (std::bad_alloc)"));
  } catch (const std::exception& e) {
    throw UsageError("{}", message(fmt::format(": {}", e.what())));
  } catch (...) {
    throw UsageError("{}", message(" with an exception that is not a std::exception"));
  }
}

}  // namespace redco
