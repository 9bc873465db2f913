// A program that runs to its end.
#pragma once

#include <string>
#include <vector>

namespace redco {

// Runs a program of $PATH, or of a path, with these arguments. Its stdout and stderr go to the file `log`.
// Returns its exit status, 128 + the signal that ended it, or -errno if it does not start.
int run_program(const std::vector<std::string>& command, const std::string& log);

}  // namespace redco
