// CPU quota and memory that the system grants this process: cgroups (v1 and v2) and /proc/meminfo. `root` is
// "", or a folder with such files in tests. A file that cannot be read limits nothing; it is not an error.
#pragma once

#include <optional>
#include <string>

#include "base/types.h"

namespace redco {

// The lowest CPU quota of this process's cgroup and its ancestors, in CPUs; nullopt without a quota.
std::optional<double> cgroup_cpu_quota(const std::string& root);

struct MemoryLimit {
  i64 limit, used;  // bytes; used: without the page cache that the kernel can drop
};
// The limit that leaves the least free memory, of this process's cgroup and its ancestors.
std::optional<MemoryLimit> cgroup_memory(const std::string& root);

// What keeps this process from starting one more thread: "the cgroup allows 64 threads (pids.max)"; "" if no
// limit is reached.
std::string thread_limit(const std::string& root);

// Raises the soft limit of open files to n, at most to the hard limit. A failure changes nothing.
void allow_open_files(i64 n);
inline constexpr i64 kOtherOpenFiles = 256;  // of a launcher, besides connections and pipes

// How many processes the kernel has killed for lack of memory in this process's cgroup and its ancestors; 0
// if unknown.
i64 cgroup_oom_kills(const std::string& root);

// MemTotal and MemAvailable of /proc/meminfo in bytes, lowered to the cgroup's limit.
void read_memory(const std::string& root, i64& total, i64& available);

}  // namespace redco
