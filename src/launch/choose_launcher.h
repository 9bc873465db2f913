// Plans a launch: from the job's settings and this process's environment to the way the ranks run: in this
// process alone, or under mpirun with options and environment. Starts nothing and reads only the hostfile.
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

// The properties of a host that a launch depends on.
struct HostFacts {
  std::string name;
  int cores = 0;         // usable physical cores; 0: unknown
  std::string isa, cpu;  // as in Machine; "" if unknown
  bool can_bind = true, cma = true;
};
HostFacts facts_of(const Machine& m);

struct LaunchRequest {
  i64 n_model_shards = 1;
  std::optional<i64> n_ranks;      // none: slots of the hosts, tasks of the allocation, or n_model_shards
  std::vector<std::string> hosts;  // parallel.hosts
  std::string hosts_source;        // "": the job; else what gave the hosts (launch/batch_hosts.h)
  std::optional<std::string> hostfile;  // parallel.hostfile
  std::optional<i64> threads_per_rank;  // none: auto
  double fault_timeout = 60;            // s after which a silent host counts as lost; 0: never
  Environment environment;              // current_environment()
  Environment for_ranks;                // parallel.environment (parse_environment)
  std::string mpirun = "mpirun";        // Mpirun::path (find_mpirun)
  bool rank = false;                    // this process is a rank: mpirun or srun started it
  bool root = false;                    // geteuid() == 0
  bool joined = false;                  // the hosts were joined without ssh (launch/join/server.h)
  HostFacts here;                       // facts_of(this_machine())
  std::map<std::string, HostFacts>
      facts;  // of other hosts, by the names in hosts (launch/preflight.h); may be empty
  // Networks for the messages of ranks and daemons, "10.77.0.0/24" (networks_to_choose()); empty: all.
  std::vector<std::string> networks;
  bool in_networks = true;            // this host, from which the daemons are started, has addresses in them
  std::vector<std::string> left_out;  // or the ones not to use (networks_to_leave_out())
};

// Null: the host is unknown here.
const HostFacts* facts_for(const LaunchRequest& request, const std::string& host);

struct LaunchPlan {
  // rank: mpirun or srun started this process as a rank; alone: the job has one rank and runs in this
  // process; mpirun: this process starts the ranks.
  enum class Way { alone, rank, mpirun } way = Way::alone;
  i64 n_ranks = 1;
  std::vector<Host> hosts;              // slots: ranks on the host; empty when way is rank
  std::optional<int> threads_per_rank;  // none: some hosts are unknown here, so the ranks decide
  bool bound = false;                   // each rank is pinned to its cores
  // Variables that each rank gets in addition to the inherited ones. When way is alone, this process sets
  // them.
  Environment environment;
  Mpirun mpirun;                   // for way mpirun, without the program
  std::vector<std::string> notes;  // for the log
};

// The arguments of ssh: those of the user, then the ones that let ssh fail instead of asking for a password
// or waiting for minutes. "" with another program than ssh, which would not know them.
std::string ssh_arguments(const Environment& environment);

// UsageError: more ranks than slots, hosts together with hostfile, n_ranks not divisible by n_model_shards, a
// launch by srun without PMIx or by another MPI.
LaunchPlan plan_launch(const LaunchRequest& request);

}  // namespace redco
