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
// Runs commands at the same time, at most 64 together, each for at most `seconds` after its start. A command
// that cannot be started, that is late, or that writes too much has a `problem`. A signal that was noted
// (end_requested()) ends all of them.
struct Answered {
  int code = 0;  // as Finished::code
  std::string out, err;
  std::string problem;  // "took longer than 10 s"; "" if it ended with 0
  bool late = false;
  double began = 0, seconds = 0;  // began: since 1970
};
std::vector<Answered> run_all(const std::vector<std::vector<std::string>>& commands,
                              const Environment& environment, double seconds, i64 max_bytes = i64{1} << 20);

// The environment that mpirun starts with.
Environment environment_of(const Mpirun& mpirun);

}  // namespace redco
