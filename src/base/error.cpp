#include "base/error.h"

#include <cstring>

#include "base/user_line.h"

namespace redco {

BugError::BugError(const std::string& message, const std::string& found)
    : Error(ExitCode::bug, message), found_((found.empty() ? message : found) + at_user_line()) {}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  const char* src = std::strstr(file, "src/");
  throw BugError(fmt::format("internal check failed at {}:{}: {}{}{} (please report this)", src ? src : file,
                             line, condition, message.empty() ? "" : ": ", message),
                 message.empty() ? fmt::format("{} does not hold", condition) : message);
}

}  // namespace redco
