// What `redco env` tells about a machine: for people, for bug reports, and (as JSON) for the launcher, which
// asks each host before it plans.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/mpirun.h"
#include "launch/topology.h"

namespace redco {

struct EnvReport {
  std::string version, build;  // "0.1.0"; compiler and build type
  Machine machine;
  std::string blas;                 // kernels::describe()
  std::string mpi;                  // mpi_version()
  std::string slurm;                // "job 17, 2 nodes, 4 tasks", "" outside of an allocation
  std::string problem;              // mpi_mismatch(), "" when all is well
  std::string revision, libraries;  // of the source; what it is linked with. "" where unknown
  // Measured on all usable cores, by folders that launch doesn't know; 0: not measured.
  double sgemm_flops_per_s = 0, read_bytes_per_s = 0;
};

// "GCC 12.2.0, optimized"
std::string build_description();

// Gathers it for this process. The strings come from folders that launch doesn't know.
EnvReport collect_env(const std::string& version, const std::string& blas, const std::string& mpi,
                      const std::string& problem = "");
// Lines of "name   value"; ends with a line break.
std::string env_text(const EnvReport& r);
// One JSON object on one line, without a line break.
std::string env_json(const EnvReport& r);
// The facts of the hosts from the output of `redco env --json` under mpirun: one JSON object a line, others
// are skipped. ContentsError when a line that begins with '{' isn't such an object.
std::vector<HostFacts> parse_env_lines(const std::string& output);
// Asks each of the request's other hosts by running `program env --json` there, once each, in parallel. The
// keys are the names in `hosts`. Error(rank_failed) with ssh's or mpirun's words when a host can't be
// reached, or when not all have answered within fault_timeout, at least 12 s and at most 60 s.
std::map<std::string, HostFacts> probe_hosts(const LaunchRequest& request, const std::string& program);

}  // namespace redco
