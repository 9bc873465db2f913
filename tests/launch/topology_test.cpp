#include "launch/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>

#include "support/temp_dir.h"

namespace redco {
namespace {

// hwloc reads the setting once in a process: before any test asks for a topology.
const bool kQuiet = (hide_hwloc_warnings(), true);

// A topology of hwloc's synthetic kind in place of the machine's.
class Synthetic {
 public:
  explicit Synthetic(const char* description) {
    setenv("HWLOC_SYNTHETIC", description, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
  }
  ~Synthetic() {
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
  }
};

// The affinity mask of this thread, lowered to its first CPU while this lives.
class OneCpu {
 public:
  OneCpu() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++)
      if (CPU_ISSET(c, &before_)) CPU_SET(c, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCpu() { sched_setaffinity(0, sizeof before_, &before_); }
  int before() const { return CPU_COUNT(&before_); }

 private:
  cpu_set_t before_;
};

TEST(Cpus, HardwareThreadsOfACoreCountOnce) {
  const int cpus = cpus_of_process().allowed;
  const Synthetic smt("core:512 pu:2");
  const Cpus c = cpus_of_process();
  EXPECT_EQ(c.allowed, cpus);
  EXPECT_GE(c.cores, (cpus + 1) / 2);
  EXPECT_LE(c.cores, cpus);
  const Synthetic wide("core:1 pu:1024");
  EXPECT_EQ(cpus_of_process().cores, 1);
}

TEST(Cpus, TheAffinityMaskApplies) {
  const OneCpu one;
  const Cpus c = cpus_of_process();
  EXPECT_EQ(c.allowed, 1);
  EXPECT_EQ(c.cores, 1);
  EXPECT_TRUE(c.can_set);
  const Machine m = this_machine();
  EXPECT_EQ(m.usable_cores, 1);
  EXPECT_EQ(m.can_bind, one.before() == 1 && m.online_cpus == 1);
}

TEST(Cpus, HwlocIsQuietWithoutSys) {
  ASSERT_TRUE(kQuiet);
  test::TempDir empty;
  setenv("HWLOC_FSROOT", empty.path().c_str(), 1);
  setenv("HWLOC_THISSYSTEM", "1", 1);
  testing::internal::CaptureStderr();
  const Cpus c = cpus_of_process();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  unsetenv("HWLOC_FSROOT");
  unsetenv("HWLOC_THISSYSTEM");
  EXPECT_GE(c.allowed, c.cores);
  EXPECT_GE(c.cores, 1);
}

TEST(Cpus, TheEnvironmentIsRestored) {
  setenv("HWLOC_PLUGINS_PATH", "/somewhere", 1);
  cpus_of_process();
  EXPECT_STREQ(getenv("HWLOC_PLUGINS_PATH"), "/somewhere");
  unsetenv("HWLOC_PLUGINS_PATH");
  cpus_of_process();
  EXPECT_EQ(getenv("HWLOC_PLUGINS_PATH"), nullptr);
}

TEST(Cma, YamaForbidsFromScope2On) {
  test::TempDir root;
  std::filesystem::create_directories(root / "proc/sys/kernel/yama");
  const auto scope = [&](int n) {
    std::ofstream(root / "proc/sys/kernel/yama/ptrace_scope") << n << "\n";
    return cma_allowed(root.path());
  };
  EXPECT_EQ(scope(1), scope(0));
  EXPECT_FALSE(scope(2));
  EXPECT_FALSE(scope(3));
}

TEST(ThisMachine, ValuesAreConsistent) {
  const Machine m = this_machine();
  EXPECT_FALSE(m.hostname.empty());
  EXPECT_GE(m.online_cpus, m.allowed_cpus);
  EXPECT_GE(m.allowed_cpus, m.physical_cores);
  EXPECT_GE(m.physical_cores, m.usable_cores);
  EXPECT_GE(m.usable_cores, 1);
  EXPECT_GT(m.memory_total, 1 << 20);
  EXPECT_GE(m.memory_total, m.memory_available);
  EXPECT_GT(m.memory_available, 0);
  EXPECT_THAT(m.isa, testing::AnyOf("baseline", "avx2", "avx512", "neon"));
}

}  // namespace
}  // namespace redco
