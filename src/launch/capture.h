// Runs a command and captures its output.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "launch/mpirun_command.h"

namespace redco {

// The standard output of a command (argv[0] is looked up in PATH). Error(rank_failed) with its stderr if it
// ends with another status than 0, takes longer than `seconds`, or writes more than max_bytes.
std::string output_of(const std::vector<std::string>& argv, double seconds, i64 max_bytes = i64{1} << 20);
// Runs a command to its end, without a limit of time, with this environment. It is ended if it writes more
// than max_bytes.
struct Finished {
  int code = 0;  // exit status; 128 + signal if a signal ended it
  std::string out, err;
};
Finished run_to_end(const std::vector<std::string>& argv, const Environment& environment,
                    i64 max_bytes = i64{1} << 26);
// The same as output_of() for mpirun's program on all its hosts. The error explains why a host could not
// start it, in place of mpirun's own text.
std::string output_under_mpirun(const Mpirun& mpirun, double seconds, i64 max_bytes = i64{1} << 20);

// The environment that mpirun starts with.
Environment environment_of(const Mpirun& mpirun);

}  // namespace redco
