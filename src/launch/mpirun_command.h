// mpirun's command line: what is asked of it as typed fields, and one function that renders them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/types.h"
#include "launch/host.h"
#include "launch/slurm.h"

namespace redco {

struct Mpirun {
  struct Options {
    i64 n_ranks = 1;
    std::vector<Host> hosts;          // slots: ranks there
    bool input = false;               // standard input goes to the first rank; otherwise nobody reads it
    std::optional<int> pinned_cores;  // of each rank; none: ranks are not pinned
    bool oversubscribe = false;       // more ranks than cores: ranks that wait yield
    std::map<std::string, std::string> mca;  // name -> value
  };

  std::string path = "mpirun";  // argv[0]; without a slash it is looked up in PATH
  Options options;
  // What each rank on each host gets, beside what is passed.
  Environment environment;
  // Names of this process's environment, or of own_environment, that each rank on each host gets. Their
  // values do not appear in the process list.
  std::set<std::string> passed;
  // Of mpirun itself, beside this process's environment, and names that it does not inherit.
  Environment own_environment;
  std::set<std::string> dropped;
  std::vector<std::string> program;  // path and arguments

  std::vector<std::string> argv() const;
};

}  // namespace redco
