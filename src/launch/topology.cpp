#include "launch/topology.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "base/process.h"

namespace redco {

namespace {

// Files of /proc and /sys have no size; at most 64 KiB are read. "" where it can't be.
std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(1 << 16, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return text;
}

std::optional<i64> number(std::string_view s) {
  i64 n = 0;
  const std::size_t begin = s.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return std::nullopt;
  const auto [end, error] = std::from_chars(s.data() + begin, s.data() + s.size(), n);
  if (error != std::errc() || (end != s.data() + s.size() && *end != '\n' && *end != ' '))
    return std::nullopt;
  return n;
}

// The number after `key` at the beginning of a line.
std::optional<i64> field(const std::string& text, const std::string& key) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, key.size(), key) == 0) return number(std::string_view(line).substr(key.size()));
  return std::nullopt;
}

// The folders of this process's cgroup and its ancestors for a controller: v2's where the controller is
// there, else v1's. In a container the path of /proc/self/cgroup may not exist under /sys/fs/cgroup; then
// only the top is looked at.
struct CgroupFolders {
  std::vector<std::string> v2, v1;
};

std::vector<std::string> chain(const std::string& top, std::string path) {
  std::vector<std::string> folders;
  if (path.find("..") != std::string::npos) path = "/";
  for (int depth = 0; depth < 64 && path.size() > 1; depth++) {
    folders.push_back(top + path);
    path.resize(path.rfind('/'));
  }
  folders.push_back(top);
  return folders;
}

CgroupFolders cgroup_folders(const std::string& root, const std::string& controller) {
  CgroupFolders all;
  std::istringstream in(slurp(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(in, line);) {  // hierarchy:controllers:path
    const std::size_t a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    const std::string names = line.substr(a + 1, b - a - 1), path = line.substr(b + 1);
    if (names.empty()) {
      all.v2 = chain(root + "/sys/fs/cgroup", path);
    } else if (("," + names + ",").find("," + controller + ",") != std::string::npos) {
      all.v1 = chain(root + "/sys/fs/cgroup/" + controller, path);
      if (names != controller)
        for (auto& f : chain(root + "/sys/fs/cgroup/" + names, path)) all.v1.push_back(std::move(f));
    }
  }
  return all;
}

std::string isa_of_this_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return "avx512";
  if (__builtin_cpu_supports("x86-64-v3")) return "avx2";
#endif
  return "baseline";
}

}  // namespace

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const std::size_t dash = part.find('-');
    const auto from = number(part.substr(0, dash));
    const auto to = dash == std::string::npos ? from : number(part.substr(dash + 1));
    if (!from || !to || *from < 0 || *to < *from || *to > 1 << 16) return {};
    for (i64 c = *from; c <= *to; c++) cpus.push_back(static_cast<int>(c));
  }
  return cpus;
}

int count_physical_cores(const std::vector<int>& cpus, const std::string& root) {
  std::set<int> cores;
  for (int cpu : cpus) {
    const auto siblings = parse_cpu_list(
        slurp(fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", root, cpu)));
    cores.insert(siblings.empty() ? cpu : *std::min_element(siblings.begin(), siblings.end()));
  }
  return static_cast<int>(cores.size());
}

std::optional<double> cgroup_cpu_quota(const std::string& root) {
  std::optional<double> least;
  const auto lower = [&](i64 quota, i64 period) {
    if (quota <= 0 || period <= 0) return;
    const double cpus = static_cast<double>(quota) / static_cast<double>(period);
    if (!least || cpus < *least) least = cpus;
  };
  const CgroupFolders folders = cgroup_folders(root, "cpu");
  for (const auto& f : folders.v2) {  // "50000 100000" or "max 100000"
    const std::string text = slurp(f + "/cpu.max");
    const std::size_t space = text.find(' ');
    if (space == std::string::npos) continue;
    const auto quota = number(text.substr(0, space)), period = number(text.substr(space + 1));
    if (quota && period) lower(*quota, *period);
  }
  for (const auto& f : folders.v1) {
    const auto quota = number(slurp(f + "/cpu.cfs_quota_us")),
               period = number(slurp(f + "/cpu.cfs_period_us"));
    if (quota && period) lower(*quota, *period);  // -1: none
  }
  return least;
}

std::optional<MemoryLimit> cgroup_memory(const std::string& root) {
  std::optional<MemoryLimit> tightest;
  const auto take = [&](std::optional<i64> limit, std::optional<i64> used, std::optional<i64> cache) {
    if (!limit || *limit <= 0 || *limit > i64{1} << 60) return;  // v1 says none by a huge number
    const MemoryLimit m{*limit, std::max<i64>(0, used.value_or(0) - cache.value_or(0))};
    if (!tightest || m.limit - m.used < tightest->limit - tightest->used) tightest = m;
  };
  const CgroupFolders folders = cgroup_folders(root, "memory");
  for (const auto& f : folders.v2)
    take(number(slurp(f + "/memory.max")), number(slurp(f + "/memory.current")),
         field(slurp(f + "/memory.stat"), "inactive_file "));
  for (const auto& f : folders.v1)
    take(number(slurp(f + "/memory.limit_in_bytes")), number(slurp(f + "/memory.usage_in_bytes")),
         field(slurp(f + "/memory.stat"), "total_inactive_file "));
  return tightest;
}

i64 cgroup_oom_kills(const std::string& root) {
  i64 kills = 0;
  const CgroupFolders folders = cgroup_folders(root, "memory");
  for (const auto& f : folders.v2) kills += field(slurp(f + "/memory.events"), "oom_kill ").value_or(0);
  for (const auto& f : folders.v1) kills += field(slurp(f + "/memory.oom_control"), "oom_kill ").value_or(0);
  return kills;
}

void read_memory(const std::string& root, i64& total, i64& available) {
  const std::string info = slurp(root + "/proc/meminfo");
  total = field(info, "MemTotal:").value_or(0) * 1024;
  available = field(info, "MemAvailable:").value_or(0) * 1024;
  if (const auto c = cgroup_memory(root)) {
    if (total == 0 || c->limit < total) total = c->limit;
    available = std::min(available == 0 ? c->limit : available, std::max<i64>(0, c->limit - c->used));
  }
}

bool cma_allowed(const std::string& root) {
  // Yama's 1 (children only) is lifted by Open MPI itself, 2 and 3 can't be.
  if (number(slurp(root + "/proc/sys/kernel/yama/ptrace_scope")).value_or(0) > 1) return false;
  // A container's seccomp filter refuses the call whatever the target: EPERM on ourselves too.
  int from = 42, to = 0;
  const iovec local{&to, sizeof to}, remote{&from, sizeof from};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(sizeof from) &&
         to == from;
}

Machine this_machine() {
  Machine m;
  m.hostname = host_name();
  m.isa = isa_of_this_cpu();
  std::istringstream info(slurp("/proc/cpuinfo"));
  for (std::string line; m.cpu.empty() && std::getline(info, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      m.cpu = line.substr(line.find(": ") + 2);
  m.online_cpus = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));

  std::vector<int> cpus;
  for (int most = 1024; most <= 1 << 16; most *= 2) {  // the kernel refuses masks smaller than its own
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(most));
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    CPU_ZERO_S(bytes, set);
    const bool read = sched_getaffinity(0, bytes, set) == 0;
    for (int c = 0; read && c < most; c++)
      if (CPU_ISSET_S(static_cast<std::size_t>(c), bytes, set)) cpus.push_back(c);
    if (read) m.can_bind = sched_setaffinity(0, bytes, set) == 0;
    CPU_FREE(set);
    if (read) break;
  }
  if (cpus.empty()) {
    m.can_bind = false;
    for (int c = 0; c < m.online_cpus; c++) cpus.push_back(c);
  }
  m.allowed_cpus = static_cast<int>(cpus.size());
  if (m.allowed_cpus < m.online_cpus) m.can_bind = false;
  m.physical_cores = std::max(1, count_physical_cores(cpus, ""));
  m.quota = cgroup_cpu_quota("");
  m.usable_cores = m.physical_cores;
  if (m.quota) m.usable_cores = std::clamp(static_cast<int>(*m.quota + 1e-6), 1, m.physical_cores);
  read_memory("", m.memory_total, m.memory_available);
  m.cma = cma_allowed("");
  return m;
}

}  // namespace redco
