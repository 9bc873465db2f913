#include "launch/choose_launcher.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/error_text.h"

namespace redco {
namespace {

using testing::AllOf;
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

// A machine `here` with 8 cores and an empty environment.
LaunchRequest request() {
  LaunchRequest r;
  r.here = facts("here", 8);
  return r;
}

std::string line(const LaunchPlan& p) { return fmt::format("{}", fmt::join(p.mpirun.argv(), " ")); }

const std::string kSsh = "--mca plm_rsh_args -o BatchMode=yes -o ConnectTimeout=10";
const std::string kKeepalive =
    "--mca oob_tcp_keepalive_intvl 10 --mca oob_tcp_keepalive_probes 3 --mca oob_tcp_keepalive_time 30";

TEST(PlanLaunch, OneRankRunsInThisProcess) {
  const auto p = plan_launch(request());
  EXPECT_EQ(p.way, Way::alone);
  EXPECT_EQ(p.n_ranks, 1);
  EXPECT_EQ(p.threads_per_rank, 8);
  EXPECT_THAT(p.hosts, ElementsAre(Host{"localhost", 1}));
  EXPECT_THAT(p.notes, IsEmpty());
}

TEST(PlanLaunch, RanksThatFillTheMachineArePinned) {
  auto r = request();
  r.n_model_shards = 2;
  const auto p = plan_launch(r);
  EXPECT_EQ(p.way, Way::mpirun);
  EXPECT_EQ(p.n_ranks, 2);
  EXPECT_EQ(p.threads_per_rank, 4);
  EXPECT_TRUE(p.bound);
  EXPECT_EQ(line(p),
            "mpirun --stdin none --map-by slot:PE=4 --bind-to core -n 2 --host localhost:2 -x "
            "GOMP_SPINCOUNT=10000 -x OMP_NUM_THREADS=4 -x OMP_WAIT_POLICY=passive");
  EXPECT_THAT(p.environment, ElementsAre(Pair("GOMP_SPINCOUNT", "10000"), Pair("OMP_NUM_THREADS", "4"),
                                         Pair("OMP_WAIT_POLICY", "passive")));
}

TEST(PlanLaunch, SmallJobsAreNotPinned) {
  auto r = request();
  r.n_ranks = 2;
  r.threads_per_rank = 2;  // half of the machine: a second job would be pinned to the same cores
  const auto p = plan_launch(r);
  EXPECT_FALSE(p.bound);
  EXPECT_EQ(line(p),
            "mpirun --stdin none --map-by slot --bind-to none -n 2 --host localhost:2 -x "
            "GOMP_SPINCOUNT=1000 -x OMP_NUM_THREADS=2 -x OMP_WAIT_POLICY=passive");
}

TEST(PlanLaunch, MoreThreadsThanCoresOversubscribe) {
  auto r = request();
  r.here = facts("here", 2);
  r.n_ranks = 4;
  const auto p = plan_launch(r);
  EXPECT_EQ(p.threads_per_rank, 1);  // at least one
  EXPECT_EQ(line(p),
            "mpirun --stdin none --map-by slot --bind-to none --oversubscribe -n 4 --host localhost:4 -x "
            "GOMP_SPINCOUNT=0 -x OMP_NUM_THREADS=1 -x OMP_WAIT_POLICY=passive");
  EXPECT_THAT(p.notes, ElementsAre(HasSubstr("4 ranks x 1 thread share the 2 usable cores of localhost")));
}

TEST(PlanLaunch, RootContainerWithoutBindingOrCma) {
  auto r = request();
  r.root = true;
  r.here.can_bind = false;
  r.here.cma = false;
  r.n_ranks = 2;
  const auto p = plan_launch(r);
  EXPECT_FALSE(p.bound);
  EXPECT_EQ(
      line(p),
      "mpirun --stdin none --map-by slot --bind-to none --mca btl_vader_single_copy_mechanism none -n 2 "
      "--host localhost:2 -x GOMP_SPINCOUNT=1000 -x OMP_NUM_THREADS=4 -x "
      "OMP_WAIT_POLICY=passive");
  EXPECT_THAT(p.mpirun.own_environment,
              ElementsAre(Pair("OMPI_ALLOW_RUN_AS_ROOT", "1"), Pair("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")));
  EXPECT_THAT(p.notes, ElementsAre(HasSubstr("are not pinned")));
}

TEST(PlanLaunch, SeveralHosts) {
  auto r = request();
  r.hosts = {"here:2", "b:2", "c:2"};
  r.n_ranks = 4;  // overrides the sum of slots; c is not needed
  r.facts = {{"b", facts("b.example.org", 4)}};
  r.environment = {{"LD_LIBRARY_PATH", "/opt/lib"}, {"OMP_WAIT_POLICY", "active"}};
  const auto p = plan_launch(r);
  EXPECT_EQ(p.n_ranks, 4);
  EXPECT_THAT(p.hosts, ElementsAre(Host{"here", 2}, Host{"b", 2}));
  EXPECT_EQ(p.threads_per_rank, 2);  // b: 4 cores / 2 ranks
  EXPECT_EQ(
      line(p),
      "mpirun --stdin none --map-by slot:PE=2 --bind-to core " + kKeepalive + " " + kSsh +
          " -n 4 --host here:2,b:2 -x GOMP_SPINCOUNT=10000 -x OMP_NUM_THREADS=2 -x LD_LIBRARY_PATH -x OMP_WAIT_POLICY");
}

// Open MPI 4 cuts names at the first dot: it would start both ranks on the first host.
TEST(PlanLaunch, NamesThatDifferAfterTheFirstDotAreTwoHosts) {
  auto r = request();
  r.hosts = {"w.1.example.net:1", "w.2.example.net:1"};
  EXPECT_THAT(line(plan_launch(r)), HasSubstr("--mca orte_keep_fqdn_hostnames 1"));
  r.hosts = {"10.0.0.1:1", "10.0.0.2:1"};
  EXPECT_THAT(line(plan_launch(r)), testing::Not(HasSubstr("fqdn")));
}

TEST(PlanLaunch, ArgumentsOfTheUserForSshStay) {
  auto r = request();
  r.hosts = {"here", "b"};
  r.environment = {{"OMPI_MCA_plm_rsh_args", "-p 2222"}};
  EXPECT_THAT(line(plan_launch(r)), HasSubstr("plm_rsh_args -p 2222 -o BatchMode=yes -o ConnectTimeout=10"));
  r.environment = {{"OMPI_MCA_plm_rsh_agent", "/opt/rsh"}, {"OMPI_MCA_plm_rsh_args", "-x"}};
  EXPECT_THAT(line(plan_launch(r)), testing::Not(HasSubstr("plm_rsh_args")));
}

TEST(PlanLaunch, RanksOnUnknownHostsDecideTheThreads) {
  auto r = request();
  r.hosts = {"here:4", "b:4"};
  const auto p = plan_launch(r);
  EXPECT_EQ(p.n_ranks, 8);
  EXPECT_FALSE(p.threads_per_rank);
  EXPECT_FALSE(p.bound);
  EXPECT_THAT(line(p), HasSubstr("--map-by slot --bind-to none"));
  EXPECT_THAT(line(p), testing::Not(HasSubstr("OMP_NUM_THREADS")));
}

TEST(PlanLaunch, OpenMpi5GetsTheLaunchAgentByItsName) {
  auto r = request();
  r.hosts = {"here:1", "b:1"};
  r.environment["OMPI_MCA_plm_rsh_agent"] = "/opt/redco agent";
  EXPECT_THAT(plan_launch(r).mpirun.own_environment,
              Contains(Pair("PRTE_MCA_plm_ssh_agent", "/opt/redco agent")));
}

TEST(PlanLaunch, DifferentArm64HostsUseTheKernelsOfArmv8) {
  auto r = request();
  r.here = facts("here", 8, "neon", "Neoverse-N1");
  r.hosts = {"here:1", "b:1"};
  r.facts = {{"b", facts("b", 8, "neon", "Neoverse-V2")}};
  const auto p = plan_launch(r);
  EXPECT_THAT(p.environment, Contains(Pair("REDCO_ISA", "neon")));
  EXPECT_THAT(p.environment, Contains(Pair("OPENBLAS_CORETYPE", "ARMV8")));
}

TEST(PlanLaunch, DifferentHostsUseTheLowestInstructionSet) {
  auto r = request();
  r.hosts = {"here:1", "b:1"};
  r.facts = {{"b", facts("b", 8, "avx2", "Y")}};
  auto p = plan_launch(r);
  EXPECT_THAT(p.environment, Contains(Pair("REDCO_ISA", "avx2")));
  EXPECT_THAT(p.environment, Contains(Pair("OPENBLAS_CORETYPE", "Haswell")));
  EXPECT_THAT(p.notes, ElementsAre(HasSubstr("CPUs differ (X; Y)")));
  r.facts = {
      {"b", facts("b", 8, "avx512", "Y")}};  // same set, other CPU model: OpenBLAS would use other kernels
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

TEST(PlanLaunch, FaultTimeoutSetsTheKeepalive) {
  auto r = request();
  r.hosts = {"here", "b"};
  r.fault_timeout = 12;
  EXPECT_THAT(line(plan_launch(r)),
              HasSubstr("oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3 --mca "
                        "oob_tcp_keepalive_time 6"));
  r.fault_timeout = 0.1;
  EXPECT_THAT(line(plan_launch(r)),
              AllOf(HasSubstr("oob_tcp_keepalive_time 1 "), HasSubstr("oob_tcp_keepalive_intvl 1 ")));
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
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("hosts and hostfile are both set"));
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
  EXPECT_EQ(
      line(p),
      "mpirun --stdin none --map-by slot --bind-to none " + kKeepalive +
          " -n 4 --host n1:2,n2:2 -x GOMP_SPINCOUNT=1000 -x OMP_NUM_THREADS=2 -x OMP_WAIT_POLICY=passive -x "
          "SLURM_JOB_ID");
  r.environment["SLURM_CPUS_PER_TASK"] = "1";
  EXPECT_EQ(plan_launch(r).threads_per_rank, 1);
  r.n_model_shards = 3;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }),
              HasSubstr("n_ranks=4 (the tasks of the allocation) is not a multiple of n_model_shards=3; use "
                        "n_ranks 3, 6 or 9"));
  r.n_ranks = 6;
  EXPECT_THAT(
      usage_error([&] { plan_launch(r); }),
      HasSubstr("n_ranks=6, but the SLURM allocation has 4 tasks; request more tasks (--ntasks 6), or use "
                "at most 4 ranks"));
}

TEST(PlanLaunch, ARankIsRecognized) {
  auto r = request();
  r.n_model_shards = 2;
  r.environment = {{"OMPI_COMM_WORLD_SIZE", "2"}};
  r.rank = true;
  r.for_ranks = {{"HF_HOME", "/models"}};
  EXPECT_EQ(plan_launch(r).way, Way::rank);
  EXPECT_EQ(plan_launch(r).n_ranks, 2);
  EXPECT_THAT(plan_launch(r).environment, ElementsAre(Pair("HF_HOME", "/models")));
}

// `srun --pty bash` with --mpi=pmix: the shell is "rank 0 of 1" to PMIx, and has the step's variables.
TEST(PlanLaunch, AShellInAStepOfOneTaskStartsItsRanks) {
  auto r = request();
  r.environment = {{"SLURM_JOB_ID", "7"},
                   {"SLURM_JOB_NODELIST", "n1"},
                   {"SLURM_TASKS_PER_NODE", "1"},
                   {"SLURM_JOB_CPUS_PER_NODE", "4"},
                   {"SLURM_STEP_ID", "0"},
                   {"SLURM_STEP_NUM_TASKS", "1"},
                   {"PMIX_RANK", "0"},
                   {"PMIX_NAMESPACE", "slurm.pmix.7.0"},
                   {"SLURM_STEPID", "0"},
                   {"PMIX_MCA_gds", "hash"},
                   {"SLURM_RESTART_COUNT", "1"}};
  EXPECT_EQ(plan_launch(r).way, Way::alone);
  EXPECT_EQ(plan_launch(r).threads_per_rank, 4);
  r.n_model_shards = 2;
  const auto p = plan_launch(r);
  EXPECT_EQ(p.way, Way::mpirun);
  EXPECT_THAT(p.hosts, ElementsAre(Host{"localhost", 2}));
  EXPECT_EQ(p.threads_per_rank, 2);
  EXPECT_THAT(line(p), HasSubstr("--mca ess ^slurm --mca plm ^slurm --mca ras ^slurm"));
  EXPECT_THAT(p.mpirun.dropped, ElementsAre("PMIX_NAMESPACE", "PMIX_RANK", "SLURM_STEPID", "SLURM_STEP_ID",
                                            "SLURM_STEP_NUM_TASKS", "SLURM_TASKS_PER_NODE"));
  // With several tasks the allocation's tasks are the ranks.
  r.environment["SLURM_TASKS_PER_NODE"] = "4";
  EXPECT_EQ(plan_launch(r).n_ranks, 4);
}

TEST(PlanLaunch, RanksInheritWhatChangesTheirResults) {
  auto r = request();
  r.n_model_shards = 2;
  r.environment = {{"REDCO_ISA", "avx2"},      {"OPENBLAS_CORETYPE", "Haswell"},
                   {"OMP_NUM_THREADS", "7"},   {"OMP_PROC_BIND", "close"},
                   {"HF_TOKEN", "secret"},     {"PATH", "/bin"},
                   {"REDCO_MARK_ERRORS", "1"}, {"REDCO_STARTED", "1"}};
  r.for_ranks = {{"OMP_PROC_BIND", "spread"}, {"MY_SETTING", "a; b='c'"}};
  EXPECT_THAT(line(plan_launch(r)),
              testing::EndsWith(" -x GOMP_SPINCOUNT=10000 -x MY_SETTING=a; b='c' -x OMP_NUM_THREADS=4 -x "
                                "OMP_PROC_BIND=spread -x OMP_WAIT_POLICY=passive -x HF_TOKEN -x "
                                "OPENBLAS_CORETYPE -x REDCO_ISA"));
  r.hosts = {"here:1", "b:1"};
  r.facts = {{"b", facts("b", 8, "baseline", "Y")}};
  const auto p = plan_launch(r);
  EXPECT_THAT(line(p), HasSubstr(" -x PATH -x REDCO_ISA"));
  EXPECT_THAT(line(p), testing::Not(HasSubstr("REDCO_ISA=")));  // the user's value stays
  EXPECT_THAT(p.notes, Contains(HasSubstr("all ranks use avx2 kernels")));
  EXPECT_THAT(p.notes, Contains(HasSubstr("REDCO_ISA=avx2 is set in the environment")));
  EXPECT_THAT(p.notes, Contains(HasSubstr("OPENBLAS_CORETYPE=")));
}

TEST(PlanLaunch, UnconnectedProcessesAreErrors) {
  auto r = request();
  r.environment = slurm();
  r.environment["SLURM_STEP_ID"] = "0";
  r.environment["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_THAT(usage_error([&] { plan_launch(r); }),
              HasSubstr("srun started 4 processes without connecting them by MPI; "
                        "use `srun --mpi=pmix"));
  r.environment = {{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}};
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("the launcher of another MPI started 4"));
}

TEST(PlanLaunch, BadNumbers) {
  auto r = request();
  r.n_model_shards = 4;
  r.n_ranks = 6;
  EXPECT_EQ(usage_error([&] { plan_launch(r); }),
            "[mesh] n_ranks=6 is not a multiple of n_model_shards=4; use n_ranks 4, 8 or 12, or "
            "n_model_shards 1, 2, 3, 6");
  r.n_ranks = 2;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }),
              HasSubstr("n_ranks=2 is not a multiple of n_model_shards=4"));
  r.n_ranks.reset();
  r.hosts = {"a:3", "b:2"};
  EXPECT_THAT(usage_error([&] { plan_launch(r); }),
              HasSubstr("n_ranks=5 (the slots of the hosts) is not a multiple of n_model_shards=4"));
  r.hosts = {"a:4"};
  r.n_ranks = 8;
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("n_ranks=8, but the 1 host has 4 slots"));
}

TEST(PlanLaunch, AHeterogeneousSlurmJobIsRefused) {
  auto r = request();
  r.environment = {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n1"}, {"SLURM_HET_SIZE", "2"}};
  EXPECT_THAT(usage_error([&] { plan_launch(r); }), HasSubstr("heterogeneous job (SLURM_HET_SIZE=2)"));
  r.environment["SLURM_HET_SIZE"] = "1";
  plan_launch(r);
}

// A step of one task in a job of two nodes: the ranks' environment must not contradict itself.
TEST(PlanLaunch, AShellInAStepDropsTheTasksOfTheStep) {
  auto r = request();
  r.environment = {
      {"SLURM_JOB_ID", "7"},         {"SLURM_JOB_NODELIST", "n[1-2]"},   {"SLURM_STEP_ID", "0"},
      {"SLURM_STEP_NODELIST", "n1"}, {"SLURM_STEP_TASKS_PER_NODE", "1"}, {"SLURM_TASKS_PER_NODE", "1"},
      {"SLURM_STEP_NUM_TASKS", "1"}};
  r.n_ranks = 2;
  const auto p = plan_launch(r);
  EXPECT_EQ(p.way, LaunchPlan::Way::mpirun);
  Environment left = r.environment;
  for (const std::string& name : p.mpirun.dropped) left.erase(name);
  EXPECT_EQ(detect_slurm(left)->nodes.size(), 2u);  // consistent
}

TEST(PlanLaunch, NetworksOfAllHostsGoToMpirun) {
  auto r = request();
  r.hosts = {"here:1", "b:1"};
  r.networks = {"10.0.0.0/16", "10.1.0.0/16"};
  EXPECT_THAT(line(plan_launch(r)), HasSubstr("--mca btl_tcp_if_include 10.0.0.0/16,10.1.0.0/16"));
  EXPECT_THAT(line(plan_launch(r)), HasSubstr("--mca oob_tcp_if_include 10.0.0.0/16,10.1.0.0/16"));
  r.in_networks = false;  // started on a host outside of them
  EXPECT_THAT(line(plan_launch(r)), testing::Not(HasSubstr("oob_tcp_if_include")));
  r.in_networks = true;
  r.environment["OMPI_MCA_btl_tcp_if_include"] = "eth7";  // the user's choice
  EXPECT_THAT(line(plan_launch(r)), testing::Not(HasSubstr("btl_tcp_if_include")));
  r.networks.clear();
  r.left_out = {"172.17.0.0/16"};
  EXPECT_THAT(line(plan_launch(r)), testing::Not(HasSubstr("btl_tcp_if_exclude")));
  EXPECT_THAT(line(plan_launch(r)), HasSubstr("--mca oob_tcp_if_exclude 127.0.0.0/8,172.17.0.0/16"));
}

TEST(Mpirun, InputAndProgram) {
  Mpirun m;
  m.path = "/opt/openmpi/bin/mpirun";
  m.options.hosts = {{"a", 1}};
  m.options.input = true;
  m.environment = {{"A", "1"}};
  m.passed = {"A", "B"};
  m.program = {"redco", "chat", "a b"};
  EXPECT_EQ(
      fmt::format("{}", fmt::join(m.argv(), "|")),
      "/opt/openmpi/bin/mpirun|--stdin|0|--map-by|slot|--bind-to|none|-n|1|--host|a:1|-x|A=1|-x|B|redco|"
      "chat|a b");
  EXPECT_EQ(m.hostfile_text(), "");
}

TEST(Mpirun, ManyHostsAreAFile) {
  Mpirun m;
  for (int i = 1; i <= 1000; ++i) m.options.hosts.push_back({fmt::format("node{}", i), 2});
  m.options.n_ranks = 2000;
  const std::string text = m.hostfile_text();
  EXPECT_TRUE(text.starts_with("node1 slots=2\nnode2 slots=2\n")) << text.substr(0, 50);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1000);
  const std::string words = fmt::format("{}", fmt::join(m.argv("/proc/self/fd/9"), "|"));
  EXPECT_THAT(words, HasSubstr("|-n|2000|--hostfile|/proc/self/fd/9"));
  EXPECT_LT(words.size(), 200);
}

}  // namespace
}  // namespace redco
