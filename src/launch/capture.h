// Runs a command and captures its standard output.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "launch/mpirun_command.h"

namespace redco {

// The standard output of a command (argv[0] is looked up in PATH). Error(rank_failed) with its stderr if it
// ends with another status than 0, takes longer than `seconds`, or writes more than max_bytes.
std::string output_of(const std::vector<std::string>& argv, double seconds, i64 max_bytes = i64{1} << 20);
// The same for mpirun's program on all its hosts. The error explains why a host could not start it, in place
// of mpirun's own text.
std::string output_under_mpirun(const Mpirun& mpirun, double seconds, i64 max_bytes = i64{1} << 20);

// The environment that mpirun starts with.
Environment environment_of(const Mpirun& mpirun);

}  // namespace redco
