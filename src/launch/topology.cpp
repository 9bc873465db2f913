#include "launch/topology.h"

#include <hwloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>

#include "base/process.h"
#include "launch/resource_limits.h"

namespace redco {

namespace {

std::string isa_of_this_cpu() {
#if defined(__aarch64__)
  return "neon";
#else
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return "avx512";
  if (__builtin_cpu_supports("x86-64-v3")) return "avx2";
  return "baseline";
#endif
}

constexpr const char* kHideErrors = "HWLOC_HIDE_ERRORS";
constexpr const char* kPluginsPath = "HWLOC_PLUGINS_PATH";

// hwloc's plugins look for GPUs and load their drivers' libraries: several ms, on some machines seconds. An
// empty path keeps them out of the topologies that are loaded while this lives.
class NoPlugins {
 public:
  NoPlugins() {
    if (const char* before = std::getenv(kPluginsPath)) before_ = before;
    setenv(kPluginsPath, "", 1);
  }
  ~NoPlugins() {
    if (before_)
      setenv(kPluginsPath, before_->c_str(), 1);
    else
      unsetenv(kPluginsPath);
  }
  NoPlugins(const NoPlugins&) = delete;
  NoPlugins& operator=(const NoPlugins&) = delete;

 private:
  std::optional<std::string> before_;
};

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using CpuSet = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

// Packages, cores and logical CPUs only. Null if hwloc fails. with_cpuid: also asks the CPUs themselves, by
// running on each of them, which is slow on large machines.
Topology load_topology(bool with_cpuid) {
  const NoPlugins no_plugins;
  hwloc_topology_t t = nullptr;
  if (hwloc_topology_init(&t) != 0) return {nullptr, hwloc_topology_destroy};
  Topology topology(t, hwloc_topology_destroy);
  if (!with_cpuid) hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE})
    hwloc_topology_set_type_filter(t, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(t) != 0) topology.reset();
  return topology;
}

}  // namespace

Cpus cpus_of_process() {
  Cpus cpus{"", usable_cpus(), usable_cpus(), false};
  Topology topology = load_topology(false);
  if (!topology || hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) <= 0)
    topology = load_topology(true);  // a container without /sys
  if (!topology) return cpus;
  hwloc_topology_t t = topology.get();
  if (const hwloc_obj_t package = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0))
    if (const char* model = hwloc_obj_get_info_by_name(package, "CPUModel")) cpus.model = model;
  const CpuSet mask(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  if (!mask || hwloc_get_cpubind(t, mask.get(), HWLOC_CPUBIND_THREAD) != 0) return cpus;
  cpus.can_set = hwloc_set_cpubind(t, mask.get(), HWLOC_CPUBIND_THREAD) == 0;
  cpus.allowed = std::max(1, hwloc_bitmap_weight(mask.get()));
  cpus.cores = 0;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, core));)
    cpus.cores += hwloc_bitmap_intersects(core->cpuset, mask.get());
  if (cpus.cores == 0) cpus.cores = cpus.allowed;
  return cpus;
}

void hide_hwloc_warnings() { setenv(kHideErrors, "2", 0); }

bool cma_allowed(const std::string& root) {
  // Open MPI lifts Yama's scope 1 (children only) itself. Nobody can lift 2 and 3.
  int scope = 0;
  std::ifstream(root + "/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope > 1) return false;
  // A container's seccomp filter refuses the call for every target, also for this process.
  int from = 42, to = 0;
  const iovec local{&to, sizeof to}, remote{&from, sizeof from};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof from) &&
         to == from;
}

Machine this_machine() {
  Machine m;
  m.hostname = host_name();
  m.isa = isa_of_this_cpu();
  m.online_cpus = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const Cpus cpus = cpus_of_process();
  m.cpu = cpus.model;
  m.allowed_cpus = cpus.allowed;
  m.physical_cores = cpus.cores;
  m.can_bind = cpus.can_set && m.allowed_cpus >= m.online_cpus;
  m.quota = cgroup_cpu_quota("");
  m.usable_cores = m.physical_cores;
  if (m.quota) m.usable_cores = std::clamp(static_cast<int>(*m.quota + 1e-6), 1, m.physical_cores);
  read_memory("", m.memory_total, m.memory_available);
  m.cma = cma_allowed("");
  return m;
}

}  // namespace redco
