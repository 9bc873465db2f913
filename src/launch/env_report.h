// The report of `redco env` about a machine: for people, and as JSON for bug reports.
#pragma once

#include <string>
#include <vector>

#include "launch/choose_launcher.h"
#include "launch/topology.h"

namespace redco {

struct EnvReport {
  std::string version, build;  // "0.1.0"; compiler and build type
  Machine machine;
  std::string blas;                 // kernels::describe()
  std::string mpi;                  // mpi_version()
  std::string slurm;                // "job 17, 2 nodes, 4 tasks", "" outside an allocation
  std::string problem;              // mpi_mismatch(), "" if there is none
  std::string revision, libraries;  // source revision; linked libraries. "" if unknown
  // Measured on all usable cores by the caller, since launch does not see the kernels; 0: not measured.
  double sgemm_flops_per_s = 0, bf16_flops_per_s = 0, read_bytes_per_s = 0;
  std::vector<std::string> measured;  // lines about the stored measurements
};

// "GCC 12.2.0, optimized"
std::string build_description();

// The report of this process. The caller passes the strings of folders that launch does not see.
EnvReport collect_env(const std::string& version, const std::string& blas, const std::string& mpi,
                      const std::string& problem = "");
// Lines of "name   value"; ends with a line break.
std::string env_text(const EnvReport& r);
// One JSON object on one line, without a line break.
std::string env_json(const EnvReport& r);
}  // namespace redco
