#include "base/error.h"

#include <cstring>
#include <new>

#include "base/user_code.h"

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
    throw;
  } catch (const std::exception& e) {
    throw UsageError("{}", message(fmt::format(": {}", e.what())));
  } catch (...) {
    throw UsageError("{}", message(" with an exception that is not a std::exception"));
  }
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  const char* src = std::strstr(file, "src/");
  throw BugError(fmt::format("internal check failed at {}:{}: {}{}{} (please report this)", src ? src : file,
                             line, condition, message.empty() ? "" : ": ", message),
                 message.empty() ? fmt::format("{} does not hold", condition) : message);
}

}  // namespace redco
