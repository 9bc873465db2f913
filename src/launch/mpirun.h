// From what the job asks for and where this process is to what is run: this process alone, or mpirun's exact
// command line and environment. Pure: nothing is started and nothing read but the hostfile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/host.h"
#include "launch/slurm.h"
#include "launch/topology.h"

namespace redco {

// What a launch needs to know about a host.
struct HostFacts {
  std::string name;
  int cores = 0;         // usable physical cores; 0: unknown
  std::string isa, cpu;  // as in Machine; "" unknown
  bool can_bind = true, cma = true;
};
HostFacts facts_of(const Machine& m);

struct LaunchRequest {
  i64 n_model_shards = 1;
  std::optional<i64> n_ranks;           // none: slots of the hosts, the SLURM allocation, or n_model_shards
  std::vector<std::string> hosts;       // parallel.hosts
  std::optional<std::string> hostfile;  // parallel.hostfile
  std::optional<i64> threads_per_rank;  // none: auto
  double fault_timeout = 60;            // seconds after which a silent host counts as lost; 0: never
  Environment environment;              // current_environment()
  bool root = false;                    // geteuid() == 0
  HostFacts here;                       // facts_of(this_machine())
  std::map<std::string, HostFacts>
      facts;  // of other hosts, by the names in hosts (probe_hosts); may be empty
};

struct LaunchPlan {
  // rank: this process is one already (mpirun or srun started it); alone: the job has one rank and runs here;
  // mpirun: this process starts the ranks with argv and environment.
  enum class Way { alone, rank, mpirun } way = Way::alone;
  i64 n_ranks = 1;
  std::vector<Host> hosts;              // slots: ranks there; empty when way is rank
  std::optional<int> threads_per_rank;  // none: each rank finds it out, as not all hosts are known here
  bool bound = false;                   // each rank is pinned to its cores
  std::vector<std::string> argv;        // mpirun and its options; the program and its arguments follow
  std::vector<std::pair<std::string, std::string>> environment;  // to set for mpirun, or for this process
  std::vector<std::string> notes;                                // for the log
};

// UsageError: more ranks than slots, hosts together with hostfile, n_ranks no multiple of n_model_shards, a
// launch by srun without PMIx or by another MPI.
LaunchPlan plan_launch(const LaunchRequest& request);

// mpirun's command line for one process a host: program and arguments follow (`redco env --json`).
std::vector<std::string> probe_argv(const std::vector<Host>& hosts, const LaunchRequest& request);

}  // namespace redco
