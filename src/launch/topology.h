// What this machine lets a job use: physical cores (from hwloc: affinity mask and cpuset applied), CPU quota
// and memory (launch/resource_limits.h), instruction set.
#pragma once

#include <optional>
#include <string>

#include "base/types.h"

namespace redco {

struct Machine {
  std::string hostname;
  std::string cpu;              // CPU model, "AMD EPYC"; "" if unknown
  std::string isa;              // baseline, avx2, avx512 or neon: of src/kernels
  int online_cpus = 1;          // logical CPUs of the machine
  int allowed_cpus = 1;         // logical CPUs in the affinity mask
  int physical_cores = 1;       // physical cores with a CPU in the mask
  std::optional<double> quota;  // cgroup CPU quota, in CPUs
  int usable_cores = 1;      // min(physical_cores, floor(quota)), at least 1: the cores that threads may use
  i64 memory_total = 0;      // bytes: the machine's memory, or the cgroup's limit if that is lower
  i64 memory_available = 0;  // bytes available now without swapping
  bool can_bind = true;      // sched_setaffinity works, and the mask holds all CPUs
  bool cma = true;           // ranks can read each other's memory (process_vm_readv)
};

// Takes 1 to 3 ms. REQUIRES: no other thread uses the environment (getenv, setenv).
Machine this_machine();

// The part of Machine that hwloc knows.
struct Cpus {
  std::string model;    // "" if unknown
  int allowed = 1;      // logical CPUs in the affinity mask
  int cores = 1;        // physical cores with a CPU in the mask; where nothing is known, each CPU is a core
  bool can_set = true;  // the affinity can be set
};
Cpus cpus_of_process();

// Whether a process may read another process's memory (Yama, seccomp). `root` is as in resource_limits.h.
bool cma_allowed(const std::string& root);

// Hides hwloc's warnings about a system that it cannot read, like a container without /sys, here and in child
// processes: hwloc writes them to stderr, also from inside Open MPI. HWLOC_HIDE_ERRORS set by the user stays.
// Call it first in main().
void hide_hwloc_warnings();

}  // namespace redco
