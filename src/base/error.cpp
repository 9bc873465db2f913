#include "base/error.h"

#include <cstring>

namespace redco {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  const char* src = std::strstr(file, "src/");
  throw BugError(fmt::format("internal check failed at {}:{}: {}{}{} (please report this)", src ? src : file,
                             line, condition, message.empty() ? "" : ": ", message),
                 message.empty() ? fmt::format("{} does not hold", condition) : message);
}

}  // namespace redco
