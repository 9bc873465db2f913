// The hosts that a batch system other than SLURM gives a job: PBS (PBS_NODEFILE, a file with a host's name
// once per slot) and LSF (LSB_MCPU_HOSTS, "node1 4 node2 4", or else LSB_DJOB_HOSTFILE, a file like that of
// PBS).
#pragma once

#include <string>
#include <vector>

#include "launch/slurm.h"

namespace redco {

struct BatchHosts {
  std::vector<Host> hosts;  // empty outside of such a job
  std::string source;       // "PBS_NODEFILE"
};

// UsageError: the file cannot be read, or a value is no list of hosts.
BatchHosts batch_hosts(const Environment& environment);
// The same with SLURM. Empty in a shell of a SLURM step of one task, which counts as a machine.
BatchHosts allocated_hosts(const Environment& environment);

}  // namespace redco
