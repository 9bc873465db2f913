#include "launch/resource_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace redco {

namespace {

// The text of a file of /proc or /sys, at most 64 KiB: such files have no size. "" if it cannot be read.
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

// The folders of this process's cgroup and its ancestors, for one controller. In a container the path of
// /proc/self/cgroup may not exist under /sys/fs/cgroup; then only the top folder has values.
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

}  // namespace

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
    if (quota && period) lower(*quota, *period);  // -1: no quota
  }
  return least;
}

std::optional<MemoryLimit> cgroup_memory(const std::string& root) {
  std::optional<MemoryLimit> tightest;
  const auto take = [&](std::optional<i64> limit, std::optional<i64> used, std::optional<i64> cache) {
    if (!limit || *limit <= 0 || *limit > i64{1} << 60) return;  // v1 writes a huge number for no limit
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

std::string thread_limit(const std::string& root) {
  const CgroupFolders folders = cgroup_folders(root, "pids");
  for (const auto* all : {&folders.v2, &folders.v1})
    for (const auto& f : *all) {
      const auto most = number(slurp(f + "/pids.max")), now = number(slurp(f + "/pids.current"));
      if (most && now && *now >= *most)
        return fmt::format("the cgroup allows {} processes and threads (pids.max)", *most);
    }
  // "Max processes   63412   63412   processes": of all processes of the user.
  const auto most = field(slurp(root + "/proc/self/limits"), "Max processes ");
  const auto mine = field(slurp(root + "/proc/self/status"), "Uid:");
  if (!most || !mine) return "";
  i64 threads = 0;
  std::error_code none;
  for (const auto& p : std::filesystem::directory_iterator(root + "/proc", none)) {
    const std::string status = slurp(p.path().string() + "/status");
    if (field(status, "Uid:") == mine) threads += field(status, "Threads:").value_or(0);
  }
  return threads >= *most ? fmt::format("the user may have {} processes and threads (ulimit -u)", *most) : "";
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

void allow_open_files(i64 n) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(n)) return;
  limit.rlim_cur = std::min(static_cast<rlim_t>(n), limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace redco
