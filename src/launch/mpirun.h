// From what the job asks for and where this process is to what is run: this process alone, or mpirun with its
// options and environment. Pure: nothing is started and nothing read but the hostfile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/host.h"
#include "launch/mpirun_command.h"
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
  Environment for_ranks;                // parallel.environment (parse_environment)
  std::string mpirun = "mpirun";        // Mpirun::path (find_mpirun)
  bool rank = false;                    // this process is a rank: mpirun or srun started it
  bool root = false;                    // geteuid() == 0
  HostFacts here;                       // facts_of(this_machine())
  std::map<std::string, HostFacts>
      facts;  // of other hosts, by the names in hosts (probe_hosts); may be empty
};

struct LaunchPlan {
  // rank: this process is one already (mpirun or srun started it); alone: the job has one rank and runs here;
  // mpirun: this process starts the ranks.
  enum class Way { alone, rank, mpirun } way = Way::alone;
  i64 n_ranks = 1;
  std::vector<Host> hosts;              // slots: ranks there; empty when way is rank
  std::optional<int> threads_per_rank;  // none: each rank finds it out, as not all hosts are known here
  bool bound = false;                   // each rank is pinned to its cores
  // What each rank has, beside what it inherits: for this process to set where it is one.
  Environment environment;
  Mpirun mpirun;                   // for way mpirun, without the program
  std::vector<std::string> notes;  // for the log
};

// UsageError: more ranks than slots, hosts together with hostfile, n_ranks no multiple of n_model_shards, a
// launch by srun without PMIx or by another MPI.
LaunchPlan plan_launch(const LaunchRequest& request);

// mpirun for one process a host, without the program (`redco env --json`).
Mpirun plan_probe(const std::vector<Host>& hosts, const LaunchRequest& request);

}  // namespace redco
