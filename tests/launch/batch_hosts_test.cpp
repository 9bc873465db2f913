#include "launch/batch_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "launch/choose_launcher.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(BatchHosts, AreThoseOfPbsAndLsf) {
  const test::TempDir dir;
  write_file_durable(dir / "nodes", "n1\nn1\nn2.example.net\nn1\nn2.example.net\n");
  const BatchHosts pbs = batch_hosts({{"PBS_NODEFILE", dir / "nodes"}});
  EXPECT_EQ(pbs.source, "PBS_NODEFILE");
  EXPECT_THAT(pbs.hosts, ElementsAre(Host{"n1", 3}, Host{"n2.example.net", 2}));
  const BatchHosts lsf = batch_hosts({{"LSB_MCPU_HOSTS", "n1 4 n2 8 n1 1"}});
  EXPECT_EQ(lsf.source, "LSB_MCPU_HOSTS");
  EXPECT_THAT(lsf.hosts, ElementsAre(Host{"n1", 5}, Host{"n2", 8}));
  EXPECT_THAT(batch_hosts({{"LSB_MCPU_HOSTS", ""}}).hosts, IsEmpty());
  const BatchHosts file = batch_hosts({{"LSB_DJOB_HOSTFILE", dir / "nodes"}});
  EXPECT_EQ(file.source, "LSB_DJOB_HOSTFILE");
  EXPECT_THAT(file.hosts, ElementsAre(Host{"n1", 3}, Host{"n2.example.net", 2}));
}

TEST(BatchHosts, DamagedListsAreErrors) {
  const test::TempDir dir;
  write_file_durable(dir / "nodes", "\n");
  write_file_durable(dir / "odd", "a,b\n");
  const auto message = [](const Environment& e) { return usage_error([&] { batch_hosts(e); }); };
  EXPECT_THAT(message({{"PBS_NODEFILE", dir / "nodes"}}), HasSubstr("names no host; expected one a line"));
  EXPECT_THAT(message({{"PBS_NODEFILE", dir / "odd"}}), HasSubstr("PBS_NODEFILE: 'a,b' is not a host name"));
  for (const char* bad : {"n1", "n1 x", "n1 4 n2", "n1 0", "n1 -1", "n1 99999999999999999999"})
    EXPECT_THAT(message({{"LSB_MCPU_HOSTS", bad}}), HasSubstr("expected 'node1 4 node2 4'")) << bad;
}

// The shell of a job that has ended.
TEST(BatchHosts, AFileThatIsGoneIsAnErrorWithItsVariable) {
  EXPECT_THAT(usage_error([&] {
                batch_hosts({{"PBS_NODEFILE", "/none/nodes"}});
              }),
              HasSubstr("PBS_NODEFILE=/none/nodes: this file does not exist"));
}

TEST(BatchHosts, AllocationsOfAllSystems) {
  Environment e = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}};
  EXPECT_THAT(allocated_hosts(e).hosts, ElementsAre(Host{"n1", 2}, Host{"n2", 2}));
  EXPECT_THAT(allocated_hosts({{"LSB_MCPU_HOSTS", "n1 4"}}).hosts, ElementsAre(Host{"n1", 4}));
  e = {{"SLURM_JOB_ID", "7"},
       {"SLURM_JOB_NODELIST", "n1"},
       {"SLURM_TASKS_PER_NODE", "1"},
       {"SLURM_STEP_ID", "0"},
       {"SLURM_STEP_NUM_TASKS", "1"}};
  EXPECT_THAT(allocated_hosts(e).hosts, IsEmpty());
}

TEST(BatchHosts, AJobWithoutHostsRunsOnThem) {
  LaunchRequest r;
  r.hosts = {"n1:3", "n2:2"};
  r.hosts_source = "PBS_NODEFILE";
  r.here = {.name = "n1", .cores = 4};
  const LaunchPlan plan = plan_launch(r);
  EXPECT_EQ(plan.n_ranks, 5);
  EXPECT_THAT(plan.notes, Contains("5 ranks on 2 hosts of PBS_NODEFILE"));
  r.n_model_shards = 2;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("n_ranks=5 (the slots in PBS_NODEFILE)"));
}

}  // namespace
}  // namespace redco
