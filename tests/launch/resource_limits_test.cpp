#include "launch/resource_limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

namespace redco {
namespace {

// A folder with fake /proc and /sys files.
class FakeRoot {
 public:
  FakeRoot& file(const std::string& path, const std::string& text) {
    const std::filesystem::path full = dir_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
    return *this;
  }
  operator std::string() const { return dir_.path(); }

 private:
  test::TempDir dir_;
};

TEST(CpuQuota, V2TakesTheLowestOfAllAncestors) {
  FakeRoot r;
  r.file("proc/self/cgroup", "0::/a/b\n").file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(cgroup_cpu_quota(r));
  r.file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(r), 1.5);
  r.file("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(r), 0.5);
}

TEST(CpuQuota, V2InAContainerUsesTheTopFolder) {
  FakeRoot r;
  r.file("proc/self/cgroup", "0::/../../docker/x\n").file("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(r), 4);
}

TEST(CpuQuota, V1) {
  FakeRoot r;
  r.file("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/job\n")
      .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n")
      .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(cgroup_cpu_quota(r));
  r.file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(cgroup_cpu_quota(r), 2);
}

TEST(CpuQuota, UnreadableFilesSetNoQuota) {
  FakeRoot r;
  EXPECT_FALSE(cgroup_cpu_quota(r));
  r.file("proc/self/cgroup", "0::/a\n::\nx\n3:cpu\n");
  for (const char* bad : {"", "x y", "100000", "-5 100000", "100000 0", "99999999999999999999 1"})
    EXPECT_FALSE(cgroup_cpu_quota(r.file("sys/fs/cgroup/a/cpu.max", bad))) << bad;
}

TEST(Memory, CgroupV2SubtractsTheDroppableCache) {
  FakeRoot r;
  r.file("proc/self/cgroup", "0::/a\n")
      .file("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 100 kB\nMemAvailable:    800 kB\n");
  i64 total = 0, available = 0;
  read_memory(r, total, available);
  EXPECT_EQ(total, 1024000);
  EXPECT_EQ(available, 819200);
  r.file("sys/fs/cgroup/a/memory.max", "500000\n")
      .file("sys/fs/cgroup/a/memory.current", "300000\n")
      .file("sys/fs/cgroup/a/memory.stat", "anon 100000\ninactive_file 200000\n");
  read_memory(r, total, available);
  EXPECT_EQ(total, 500000);
  EXPECT_EQ(available, 400000);
  r.file("sys/fs/cgroup/a/memory.max", "max\n");
  read_memory(r, total, available);
  EXPECT_EQ(total, 1024000);
}

TEST(Memory, CgroupV1) {
  FakeRoot r;
  r.file("proc/self/cgroup", "4:memory:/m\n")
      .file("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n")
      .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .file("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "600000\n")
      .file("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "700000\n");
  i64 total = 0, available = 0;
  read_memory(r, total, available);
  EXPECT_EQ(total, 600000);
  EXPECT_EQ(available, 0);
}

TEST(OomKills, AreSummedOverTheAncestors) {
  FakeRoot r;
  EXPECT_EQ(cgroup_oom_kills(r), 0);
  r.file("proc/self/cgroup", "0::/a/b\n4:memory:/m\n")
      .file("sys/fs/cgroup/a/b/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
      .file("sys/fs/cgroup/a/memory.events", "oom_kill 3\n")
      .file("sys/fs/cgroup/memory/m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  EXPECT_EQ(cgroup_oom_kills(r), 9);
}

}  // namespace
}  // namespace redco
