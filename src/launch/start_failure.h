// Why ranks could not be started: from the text of ssh and mpirun to one line with the remedy.
#pragma once

#include <string>
#include <string_view>

namespace redco {

// Whether a line is ssh's or a remote shell's report of a failed start: "ssh: connect to host ...", "...
// orted: command not found".
bool is_start_failure_line(std::string_view line);

// `text`: what ssh and mpirun wrote to stderr. Returns host, reason and remedy; for unknown text a check that
// works for every host.
std::string explain_start_failure(std::string_view text);

}  // namespace redco
