// Messages for people, on stderr and in the log file if there is one. Data goes to stdout instead.
//
//   info("resuming from {}", folder);   ->  stderr  resuming from runs/a/checkpoints/step-00000020
//   warn("{} ranks idle", n);           ->  stderr  warning: 2 ranks idle
//                                           file    2026-11-21 10:55:36.123 warning  2 ranks idle
// REDCO_LOG=debug|info|warn|error|off sets the lowest level that stderr shows (default: info). The file
// always has at least level info and above. Any thread may log. Logging never throws; if the log cannot be
// written, one message on stderr reports it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace redco {

enum class LogLevel : int { debug, info, warn, error, off };

// Logs one message, which may have several lines.
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

// Writes one message of level info to the log file only, for facts that stderr shows in another form.
void log_to_file(std::string_view text);

// Sets the lowest level that stderr shows, overriding REDCO_LOG. Ranks whose messages another rank prints use
// `off`.
void set_log_level(LogLevel level);
LogLevel log_level();

// Also appends all later messages to this file; "" stops that. The file of before again: if it was moved
// away, a new one begins with the messages since it was set. Throws IoError or UsageError if it cannot be
// opened.
void set_log_file(const std::string& path);

}  // namespace redco
