// Messages about a file that a command reads several times.
#pragma once

#include <string_view>

#include "base/log.h"

namespace redco {

// Logs a message unless this process has logged the same text before. Thread-safe.
void log_once(LogLevel level, std::string_view text);

}  // namespace redco
