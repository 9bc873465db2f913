// The error stream as a person sees it: whether it is a terminal, may have colours, and one transient line at
// its bottom (a progress bar) that messages push down instead of tearing. Safe to use from several threads.
#pragma once

#include <string>
#include <string_view>

namespace redco {

bool stderr_is_terminal();

// A terminal that knows colours, and neither NO_COLOR (no-color.org: set and not empty) nor TERM=dumb says
// otherwise.
bool stderr_has_color();
bool stdout_has_color();

// Columns of the terminal, 80 where unknown.
int terminal_columns();

// Replaces the transient line; "" takes it away. Nothing happens where stderr is no terminal.
void set_status_line(std::string_view text);

// Writes `text` and a newline to stderr, above the transient line. A failing stderr is ignored: there is
// nobody left to tell.
void print_message(std::string_view text);

}  // namespace redco
