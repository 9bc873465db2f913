#include "launch/keepers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace redco {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::SizeIs;

const std::vector<std::string> kWords{"keep", "KEY", "60"};

LaunchPlan plan_on(const std::vector<std::string>& hosts) {
  LaunchPlan p;
  for (const std::string& h : hosts) p.hosts.push_back({.name = h, .slots = 1});
  return p;
}

TEST(KeeperCommands, OneOnThisMachine) {
  const auto c = keeper_commands({}, {}, plan_on({"localhost"}), "redco", kWords);
  ASSERT_THAT(c, SizeIs(1));
  EXPECT_THAT(c[0], ElementsAre("sh", "-c", testing::HasSubstr("redco")));
}

// ssh may not be allowed between nodes of an allocation, and mpirun's step has all of their cores.
TEST(KeeperCommands, OneStepOnTheNodesOfAnAllocation) {
  const auto c = keeper_commands({}, {}, plan_on({"n1", "n2", "n3"}), "/opt/redco", kWords);
  ASSERT_THAT(c, SizeIs(1));
  EXPECT_EQ(c[0][0], "srun");
  for (const char* word :
       {"--overlap", "--nodes=3", "--ntasks=3", "--nodelist=n1,n2,n3", "--input=all", "--no-kill"})
    EXPECT_THAT(c[0], Contains(word));
  EXPECT_EQ(std::vector<std::string>(c[0].end() - 4, c[0].end()),
            (std::vector<std::string>{"/opt/redco", "keep", "KEY", "60"}));
}

// Each keeper has a pipe. The usual soft limit of 1024 descriptors is too low for 1,000 hosts and their
// ranks.
TEST(Keepers, RaiseTheLimitOfOpenFiles) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  if (before.rlim_max != RLIM_INFINITY && before.rlim_max < 2000) GTEST_SKIP() << "ulimit -Hn is too low";
  rlimit low{512, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &low);
  LaunchPlan plan = plan_on({"n1"});
  plan.n_ranks = 1000;
  LaunchRequest request;
  request.environment["PATH"] = "";  // no ssh: no keeper is started
  {
    const Keepers keepers(request, {{.name = "n1"}, {.name = "n2"}}, plan, "redco", "KEY");
    rlimit now{};
    getrlimit(RLIMIT_NOFILE, &now);
    EXPECT_GE(now.rlim_cur, 1000u + 2u);
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace redco
