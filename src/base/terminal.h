// The error stream: whether it is a terminal and shows colours, and one transient line at the bottom (a
// progress bar). Messages are printed above that line. Any thread may call these functions.
#pragma once

#include <string>
#include <string_view>

namespace redco {

bool stderr_is_terminal();

// True for a terminal with colours, unless NO_COLOR (no-color.org) is set and not empty, or TERM is "dumb".
bool stderr_has_color();
bool stdout_has_color();

// Width of the terminal in columns; 80 if unknown.
int terminal_columns();

// Replaces the transient line; "" removes it. Does nothing if stderr is not a terminal.
void set_status_line(std::string_view text);

// Writes `text` and a newline to stderr, above the transient line. Errors are ignored, because there is no
// other place to report them.
void print_message(std::string_view text);

// Writes to standard error with as few system calls as possible, so that lines of several ranks do not mix.
void write_stderr(std::string_view text);

}  // namespace redco
