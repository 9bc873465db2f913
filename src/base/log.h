// Messages to people: on stderr, and in a log file once there is one. Data never goes this way, it goes to
// stdout.
//
//   info("resuming from {}", folder);   ->  stderr  resuming from runs/a/checkpoints/step-00000020
//   warn("{} ranks idle", n);           ->  stderr  warning: 2 ranks idle
//                                           file    2026-11-21 10:55:36.123 warning  2 ranks idle
// REDCO_LOG=debug|info|warn|error|off says from which level on stderr shows them (default info); the file has
// info and above at least. Safe to call from several threads. Logging never throws: a log that cannot be
// written says so once on stderr.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace redco {

enum class LogLevel : int { debug, info, warn, error, off };

// One message, whole; may have several lines.
void log_message(LogLevel level, std::string_view text);

template <class... A>
void debug(fmt::format_string<A...> f, A&&... a) {
  log_message(LogLevel::debug, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void info(fmt::format_string<A...> f, A&&... a) {
  log_message(LogLevel::info, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void warn(fmt::format_string<A...> f, A&&... a) {
  log_message(LogLevel::warn, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void error(fmt::format_string<A...> f, A&&... a) {
  log_message(LogLevel::error, fmt::format(f, std::forward<A>(a)...));
}

// One message of level info into the log file alone: what stderr shows in another way.
void log_to_file(std::string_view text);

// What stderr shows from now on, whatever REDCO_LOG says: off where another rank speaks for all.
void set_log_level(LogLevel level);
LogLevel log_level();

// Appends all messages from now on to this file, too; "" ends that. Throws IoError or UsageError if it cannot
// be opened.
void set_log_file(const std::string& path);

}  // namespace redco
