#include "launch/topology.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace redco {
namespace {

using testing::ElementsAre;
namespace fs = std::filesystem;

// A folder with made-up /proc and /sys files.
class FakeRoot {
 public:
  FakeRoot() {
    static int n = 0;
    root_ = fs::temp_directory_path() / fmt::format("redco-topology-{}-{}", getpid(), n++);
  }
  ~FakeRoot() { fs::remove_all(root_); }
  FakeRoot& file(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    return *this;
  }
  operator std::string() const { return root_.string(); }

 private:
  fs::path root_;
};

TEST(CpuList, Parses) {
  EXPECT_THAT(parse_cpu_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
  for (const char* bad : {"", "a", "3-1", "0-99999999", "-", "1,,2x"})
    EXPECT_TRUE(parse_cpu_list(bad).empty()) << bad;
}

TEST(PhysicalCores, SiblingsCountOnce) {
  FakeRoot r;
  for (int c = 0; c < 4; c++)
    r.file(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", c),
           c % 2 ? "1,3\n" : "0,2\n");
  EXPECT_EQ(count_physical_cores({0, 1, 2, 3}, r), 2);
  EXPECT_EQ(count_physical_cores({2}, r), 1);
  EXPECT_EQ(count_physical_cores({0, 2}, r), 1);
  EXPECT_EQ(count_physical_cores({8, 9}, r), 2);  // nothing known: each a core
}

TEST(CpuQuota, V2TakesTheLeastOfTheChain) {
  FakeRoot r;
  r.file("proc/self/cgroup", "0::/a/b\n").file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(cgroup_cpu_quota(r));
  r.file("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(r), 1.5);
  r.file("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(r), 0.5);
}

TEST(CpuQuota, V2InAContainerWhosePathIsElsewhere) {
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

TEST(CpuQuota, NonsenseIsNoQuota) {
  FakeRoot r;
  EXPECT_FALSE(cgroup_cpu_quota(r));
  r.file("proc/self/cgroup", "0::/a\n::\nx\n3:cpu\n");
  for (const char* bad : {"", "x y", "100000", "-5 100000", "100000 0", "99999999999999999999 1"})
    EXPECT_FALSE(cgroup_cpu_quota(r.file("sys/fs/cgroup/a/cpu.max", bad))) << bad;
}

TEST(Memory, CgroupV2LeavesOutDroppableCache) {
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

TEST(OomKills, AreCountedUpTheCgroups) {
  FakeRoot r;
  EXPECT_EQ(cgroup_oom_kills(r), 0);
  r.file("proc/self/cgroup", "0::/a/b\n4:memory:/m\n")
      .file("sys/fs/cgroup/a/b/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
      .file("sys/fs/cgroup/a/memory.events", "oom_kill 3\n")
      .file("sys/fs/cgroup/memory/m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  EXPECT_EQ(cgroup_oom_kills(r), 9);
}

TEST(Cma, YamaForbids) {
  FakeRoot r;
  EXPECT_FALSE(cma_allowed(r.file("proc/sys/kernel/yama/ptrace_scope", "2\n")));
  EXPECT_FALSE(cma_allowed(r.file("proc/sys/kernel/yama/ptrace_scope", "3\n")));
}

TEST(ThisMachine, IsPlausible) {
  const Machine m = this_machine();
  EXPECT_FALSE(m.hostname.empty());
  EXPECT_GE(m.online_cpus, m.allowed_cpus);
  EXPECT_GE(m.allowed_cpus, m.physical_cores);
  EXPECT_GE(m.physical_cores, m.usable_cores);
  EXPECT_GE(m.usable_cores, 1);
  EXPECT_GT(m.memory_total, 1 << 20);
  EXPECT_GE(m.memory_total, m.memory_available);
  EXPECT_GT(m.memory_available, 0);
  EXPECT_THAT(m.isa, testing::AnyOf("baseline", "avx2", "avx512"));
}

}  // namespace
}  // namespace redco
