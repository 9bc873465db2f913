// mpirun's command line: its options as typed fields, and one function that renders them.
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
    std::vector<Host> hosts;          // slots: ranks on the host; mpirun's own host is first
    bool input = false;               // standard input goes to the first rank; otherwise no rank reads it
    std::optional<int> pinned_cores;  // cores of each rank; none: ranks are not pinned
    bool oversubscribe = false;       // more ranks than cores: waiting ranks yield
    std::map<std::string, std::string> mca;  // name -> value
  };

  std::string path = "mpirun";  // argv[0]; without a slash it is looked up in PATH
  Options options;
  // Variables that each rank gets in addition to `passed`.
  Environment environment;
  // Names of variables of this process or of own_environment that each rank gets. Their values do not appear
  // in the process list.
  std::set<std::string> passed;
  // Variables of mpirun itself in addition to this process's, and names that it does not inherit.
  Environment own_environment;
  std::set<std::string> dropped;
  std::vector<std::string> program;  // path and arguments

  // hostfile: the path of a file with hostfile_text(), in place of the list of hosts.
  std::vector<std::string> argv(const std::string& hostfile = "") const;
  // "node1 slots=2\n" for each host. "" for at most 64 hosts: an argument of the system is limited to 128
  // KiB.
  std::string hostfile_text() const;
};

}  // namespace redco
