#include "base/log_once.h"

#include <mutex>
#include <set>
#include <string>

namespace redco {

void log_once(LogLevel level, std::string_view text) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& logged = *new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!logged.emplace(text).second) return;
  }
  log_message(level, text);
}

}  // namespace redco
