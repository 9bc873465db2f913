// The standard streams: whether stderr is a terminal and shows colours, one transient line at its bottom (a
// progress bar), and what happens if nobody reads. Messages are printed above that line. Any thread may call
// these functions.
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

// Writes `text` and a newline to stderr, above the transient line.
void print_message(std::string_view text);

// Writes to standard error. A reader that stops or goes away does not hold up the caller
// (base/patient_writer.h).
void write_stderr(std::string_view text);
// Whether the reader of stderr has gone away.
bool stderr_is_lost();

// Writes text to standard output, and flushes it where its reader gets unfinished lines. If its reader has
// gone away (`| head`), the process ends like other programs do, by SIGPIPE. IoError.
void write_stdout(std::string_view text);
// Flushes what other functions have written. Errors as above.
void flush_stdout();

// Opens /dev/null for each standard stream that is closed: otherwise the next file or pipe would get its
// number, and messages would be written into it. Writing to a stdout that was closed fails. Call it first in
// main().
void open_standard_streams();

}  // namespace redco
