#include "launch/mpirun.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/error_text.h"

namespace redco {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Way = LaunchPlan::Way;

HostFacts facts(const std::string& name, int cores, const std::string& isa = "avx512",
                const std::string& cpu = "X") {
  return {name, cores, isa, cpu, true, true};
}

// A machine `here` of 8 cores, nothing special in the environment.
LaunchRequest request() {
  LaunchRequest r;
  r.here = facts("here", 8);
  return r;
}

std::string line(const LaunchPlan& p) { return fmt::format("{}", fmt::join(p.argv, " ")); }

const std::string kSsh = "--mca plm_rsh_args -o BatchMode=yes -o ConnectTimeout=10";
const std::string kKeepalive =
    "--mca oob_tcp_keepalive_time 30 --mca oob_tcp_keepalive_intvl 10 --mca oob_tcp_keepalive_probes 3";

TEST(PlanLaunch, OneRankRunsHere) {
  const auto p = plan_launch(request());
  EXPECT_EQ(p.way, Way::alone);
  EXPECT_EQ(p.n_ranks, 1);
  EXPECT_EQ(p.threads_per_rank, 8);
  EXPECT_THAT(p.hosts, ElementsAre(Host{"localhost", 1}));
  EXPECT_THAT(p.argv, IsEmpty());
  EXPECT_THAT(p.notes, IsEmpty());
}

TEST(PlanLaunch, LocalRanksThatFillTheMachineArePinned) {
  auto r = request();
  r.n_model_shards = 2;
  const auto p = plan_launch(r);
  EXPECT_EQ(p.way, Way::mpirun);
  EXPECT_EQ(p.n_ranks, 2);
  EXPECT_EQ(p.threads_per_rank, 4);
  EXPECT_TRUE(p.bound);
  EXPECT_EQ(
      line(p),
      "mpirun -n 2 --host localhost:2 --stdin none --map-by slot:PE=4 --bind-to core -x OMP_NUM_THREADS=4 -x "
      "OMP_WAIT_POLICY=passive -x GOMP_SPINCOUNT=10000");
  EXPECT_THAT(p.environment, ElementsAre(Pair("OMP_NUM_THREADS", "4"), Pair("OMP_WAIT_POLICY", "passive"),
                                         Pair("GOMP_SPINCOUNT", "10000")));
}

TEST(PlanLaunch, SmallJobsAreNotPinned) {
  auto r = request();
  r.n_ranks = 2;
  r.threads_per_rank = 2;  // half of the machine: a second such job would get the same cores
  const auto p = plan_launch(r);
  EXPECT_FALSE(p.bound);
  EXPECT_EQ(
      line(p),
      "mpirun -n 2 --host localhost:2 --stdin none --map-by slot --bind-to none -x OMP_NUM_THREADS=2 -x "
      "OMP_WAIT_POLICY=passive -x GOMP_SPINCOUNT=0");
}

TEST(PlanLaunch, MoreThreadsThanCoresShareThem) {
  auto r = request();
  r.here = facts("here", 2);
  r.n_ranks = 4;
  const auto p = plan_launch(r);
  EXPECT_EQ(p.threads_per_rank, 1);  // at least one
  EXPECT_EQ(line(p),
            "mpirun -n 4 --host localhost:4 --stdin none --map-by slot --bind-to none --oversubscribe -x "
            "OMP_NUM_THREADS=1 -x OMP_WAIT_POLICY=passive -x GOMP_SPINCOUNT=0");
  EXPECT_THAT(p.notes, ElementsAre(HasSubstr("4 ranks x 1 threads share the 2 usable cores of localhost")));
}

TEST(PlanLaunch, RootContainerWithoutBindingOrCma) {
  auto r = request();
  r.root = true;
  r.here.can_bind = false;
  r.here.cma = false;
  r.n_ranks = 2;
  const auto p = plan_launch(r);
  EXPECT_FALSE(p.bound);
  EXPECT_EQ(line(p),
            "mpirun -n 2 --host localhost:2 --stdin none --map-by slot --bind-to none --mca "
            "btl_vader_single_copy_mechanism none -x OMP_NUM_THREADS=4 -x OMP_WAIT_POLICY=passive -x "
            "GOMP_SPINCOUNT=0");
  EXPECT_THAT(p.environment, Contains(Pair("OMPI_ALLOW_RUN_AS_ROOT", "1")));
  EXPECT_THAT(p.environment, Contains(Pair("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")));
  EXPECT_THAT(p.notes, ElementsAre(HasSubstr("aren't pinned"), HasSubstr("can't read each other's memory")));
}

TEST(PlanLaunch, SeveralHosts) {
  auto r = request();
  r.hosts = {"here:2", "b:2", "c:2"};
  r.n_ranks = 4;  // overrides the sum of slots; c isn't needed
  r.facts = {{"b", facts("b.example.org", 4)}};
  r.environment = {{"LD_LIBRARY_PATH", "/opt/lib"}, {"OMP_WAIT_POLICY", "active"}};
  const auto p = plan_launch(r);
  EXPECT_EQ(p.n_ranks, 4);
  EXPECT_THAT(p.hosts, ElementsAre(Host{"here", 2}, Host{"b", 2}));
  EXPECT_EQ(p.threads_per_rank, 2);  // b's share
  EXPECT_EQ(line(p), "mpirun -n 4 --host here:2,b:2 --stdin none --map-by slot:PE=2 --bind-to core " +
                         kKeepalive + " " + kSsh +
                         " -x OMP_NUM_THREADS=2 -x GOMP_SPINCOUNT=10000 -x LD_LIBRARY_PATH");
}

TEST(PlanLaunch, UnknownHostsLeaveTheThreadsToTheRanks) {
  auto r = request();
  r.hosts = {"here:4", "b:4"};
  const auto p = plan_launch(r);
  EXPECT_EQ(p.n_ranks, 8);
  EXPECT_FALSE(p.threads_per_rank);
  EXPECT_FALSE(p.bound);
  EXPECT_THAT(line(p), HasSubstr("--map-by slot --bind-to none"));
  EXPECT_THAT(line(p), testing::Not(HasSubstr("OMP_NUM_THREADS")));
}

TEST(PlanLaunch, HostsThatDifferAgreeOnTheLeastKernels) {
  auto r = request();
  r.hosts = {"here:1", "b:1"};
  r.facts = {{"b", facts("b", 8, "avx2", "Y")}};
  auto p = plan_launch(r);
  EXPECT_THAT(p.environment, Contains(Pair("REDCO_ISA", "avx2")));
  EXPECT_THAT(p.environment, Contains(Pair("OPENBLAS_CORETYPE", "Haswell")));
  EXPECT_THAT(p.notes, ElementsAre(HasSubstr("CPUs differ (X; Y)")));
  r.facts = {
      {"b", facts("b", 8, "avx512", "Y")}};  // same set, other model: OpenBLAS would choose other kernels
  p = plan_launch(r);
  EXPECT_THAT(p.environment, Contains(Pair("OPENBLAS_CORETYPE", "SkylakeX")));
  r.facts = {{"b", facts("b", 8)}};
  p = plan_launch(r);
  EXPECT_THAT(line(p), testing::Not(HasSubstr("CORETYPE")));
}

TEST(PlanLaunch, OneRemoteRankNeedsMpirun) {
  auto r = request();
  r.hosts = {"b"};
  EXPECT_EQ(plan_launch(r).way, Way::mpirun);
  r.hosts = {"here"};
  EXPECT_EQ(plan_launch(r).way, Way::alone);
}

TEST(PlanLaunch, FaultTimeoutIsTheKeepalive) {
  auto r = request();
  r.hosts = {"here", "b"};
  r.fault_timeout = 12;
  EXPECT_THAT(line(plan_launch(r)),
              HasSubstr("oob_tcp_keepalive_time 6 --mca oob_tcp_keepalive_intvl 2 --mca "
                        "oob_tcp_keepalive_probes 3"));
  r.fault_timeout = 0.1;
  EXPECT_THAT(line(plan_launch(r)), HasSubstr("oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1"));
}

TEST(PlanLaunch, Hostfile) {
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("redco-hostfile-{}", getpid());
  std::ofstream(path) << "here slots=2\nb slots=2\n";
  auto r = request();
  r.hostfile = path;
  r.n_model_shards = 2;
  EXPECT_EQ(plan_launch(r).n_ranks, 4);
  r.hosts = {"x"};
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("hosts and hostfile are both given"));
  std::filesystem::remove(path);
  r.hosts.clear();
  EXPECT_THROW(plan_launch(r), UsageError);
}

Environment slurm() {
  return {{"SLURM_JOB_ID", "7"},
          {"SLURM_JOB_NODELIST", "n[1-2]"},
          {"SLURM_TASKS_PER_NODE", "2(x2)"},
          {"SLURM_JOB_CPUS_PER_NODE", "4(x2)"}};
}

TEST(PlanLaunch, SlurmAllocationGivesRanksAndCores) {
  auto r = request();
  r.environment = slurm();
  r.n_model_shards = 2;
  auto p = plan_launch(r);
  EXPECT_EQ(p.n_ranks, 4);
  EXPECT_EQ(p.threads_per_rank, 2);
  EXPECT_EQ(line(p), "mpirun -n 4 --host n1:2,n2:2 --stdin none --map-by slot --bind-to none " + kKeepalive +
                         " -x OMP_NUM_THREADS=2 -x OMP_WAIT_POLICY=passive -x GOMP_SPINCOUNT=0");
  r.environment["SLURM_CPUS_PER_TASK"] = "1";
  EXPECT_EQ(plan_launch(r).threads_per_rank, 1);
  r.n_model_shards = 3;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("the allocation's tasks=4 is no multiple of "
                                                              "n_model_shards=3; use 3 or 6"));
  r.n_ranks = 6;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("n_ranks=6 but the 2 hosts have 4 slots"));
}

TEST(PlanLaunch, RanksAreRecognized) {
  auto r = request();
  r.n_model_shards = 2;
  r.environment = {{"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_EQ(plan_launch(r).way, Way::rank);
  EXPECT_EQ(plan_launch(r).n_ranks, 2);
  r.environment = slurm();
  r.environment["PMIX_RANK"] = "1";
  r.environment["SLURM_STEP_ID"] = "0";
  r.environment["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_EQ(plan_launch(r).way, Way::rank);
}

TEST(PlanLaunch, LaunchesWithoutAConnectionAreErrors) {
  auto r = request();
  r.environment = slurm();
  r.environment["SLURM_STEP_ID"] = "0";
  r.environment["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_THAT(usage_error([&] { plan_launch(r); }),
              HasSubstr("srun started 4 processes that are not connected by MPI; "
                        "use `srun --mpi=pmix"));
  r.environment = {{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}};
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("another MPI's launcher started 4"));
}

TEST(PlanLaunch, BadNumbers) {
  auto r = request();
  r.n_model_shards = 4;
  r.n_ranks = 6;
  EXPECT_EQ(usage_error([&] { plan_launch(r); }),
            "[parallel] n_ranks=6 is no multiple of n_model_shards=4; use 4 or 8");
  r.n_ranks = 2;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }),
              HasSubstr("n_ranks=2 is no multiple of n_model_shards=4"));
  r.n_ranks.reset();
  r.hosts = {"a:3", "b:2"};
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("slots=5 is no multiple of n_model_shards=4"));
  r.hosts = {"a:4"};
  r.n_ranks = 8;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("n_ranks=8 but the 1 host has 4 slots"));
}

TEST(ProbeArgv, OneProcessAHost) {
  EXPECT_EQ(
      fmt::format("{}", fmt::join(probe_argv({{"a", 8}, {"b", 4}}, request()), " ")),
      "mpirun -n 2 --host a:1,b:1 --stdin none --map-by slot --bind-to none " + kKeepalive + " " + kSsh);
}

}  // namespace
}  // namespace redco
