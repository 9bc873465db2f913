// What this machine lets a job use: cores (affinity mask, cgroup quota, thread siblings), memory (cgroup
// limit, MemAvailable), instruction set. Read from /proc and /sys; `root` is "" in earnest and a folder with
// such files in tests. What can't be read is left out of the minimum, never an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct Machine {
  std::string hostname;
  std::string cpu;              // "AMD EPYC", "" where unknown
  std::string isa;              // baseline, avx2 or avx512: what src/kernels is compiled for
  int online_cpus = 1;          // logical CPUs of the machine
  int allowed_cpus = 1;         // of the affinity mask
  int physical_cores = 1;       // physical cores under the mask: siblings count once
  std::optional<double> quota;  // CPUs that the cgroup allows at a time
  int usable_cores = 1;      // min(physical_cores, floor(quota)), at least 1: what threads are planned with
  i64 memory_total = 0;      // bytes of the machine, or the cgroup's limit if that is less
  i64 memory_available = 0;  // bytes that can be had without swapping, now
  bool can_bind = true;      // sched_setaffinity works, and the mask holds all CPUs
  bool cma = true;           // ranks can read each other's memory (process_vm_readv)
};

Machine this_machine();

// The pieces, for tests.
// CPUs of a list as "0-3,8"; empty where it is none.
std::vector<int> parse_cpu_list(const std::string& text);
// Physical cores among `cpus`, by topology/thread_siblings_list under root; each CPU is a core where that is
// missing.
int count_physical_cores(const std::vector<int>& cpus, const std::string& root);
// The least CPU quota from this process's cgroup up to the root, v2 or v1.
std::optional<double> cgroup_cpu_quota(const std::string& root);
struct MemoryLimit {
  i64 limit, used;  // used: without the page cache that can be dropped
};
// The cgroup that leaves the least free memory; nullopt where none limits.
std::optional<MemoryLimit> cgroup_memory(const std::string& root);
// Processes that the kernel has killed so far for lack of memory, in this process's cgroup and those above
// it; 0 where that can not be read.
i64 cgroup_oom_kills(const std::string& root);
// MemTotal and MemAvailable of /proc/meminfo, lowered to the cgroup's.
void read_memory(const std::string& root, i64& total, i64& available);
// "" or what Yama and the kernel say: whether one process may read another's memory.
bool cma_allowed(const std::string& root);

}  // namespace redco
