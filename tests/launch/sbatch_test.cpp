#include "launch/sbatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "launch/capture.h"
#include "support/error_text.h"

namespace redco {
namespace {

using testing::HasSubstr;
using testing::Not;

SbatchRequest sbatch_request() {
  SbatchRequest r;
  r.job_name = "gpt2-dart";
  r.program = "/opt/redco/bin/redco";
  r.job_file = "/data/my job's.yaml";
  r.overrides = {"train.max_steps=10", "parallel.sharding_rules=[{match: \".*\", spec: [mp, ~]}]"};
  r.nodes = 2;
  r.ranks = 4;
  r.threads_per_rank = 8;
  r.time_limit = "1-12:00:00";
  r.partition = "cpu";
  return r;
}

TEST(Sbatch, Directives) {
  auto r = sbatch_request();
  r.memory_per_node = 4096;
  r.account = "lab";
  r.output = "/scratch/my logs/%x-%j.out";
  EXPECT_THAT(make_sbatch_script(r), HasSubstr("#!/bin/bash\n"
                                               "#SBATCH --job-name=gpt2-dart\n"
                                               "#SBATCH --nodes=2\n"
                                               "#SBATCH --ntasks=4\n"
                                               "#SBATCH --ntasks-per-node=2\n"
                                               "#SBATCH --cpus-per-task=8\n"
                                               "#SBATCH --partition=cpu\n"
                                               "#SBATCH --account=lab\n"
                                               "#SBATCH --time=1-12:00:00\n"
                                               "#SBATCH --mem=4096M\n"
                                               "#SBATCH --output=\"/scratch/my logs/%x-%j.out\"\n"
                                               "#SBATCH --open-mode=append\n"
                                               "#SBATCH --signal=B:USR1@120\n"
                                               "#SBATCH --requeue\n"));
}

// SLURM ignores a signal that is due before the job's start: the job would end unsaved.
TEST(Sbatch, TheSignalComesAfterTheStart) {
  for (const auto& [limit, seconds] : std::vector<std::pair<std::string, i64>>{{"1", 30},
                                                                               {"0:30", 30},
                                                                               {"3", 90},
                                                                               {"4", 120},
                                                                               {"0:01:01", 60},
                                                                               {"1-0", 120},
                                                                               {"0-0:3", 90},
                                                                               {"0-0:0:59", 30},
                                                                               {"90:30", 120},
                                                                               {"48:00:00", 120},
                                                                               {"1-23:59", 120},
                                                                               {"UNLIMITED", 120},
                                                                               {"infinite", 120},
                                                                               {"0", 120}})
    EXPECT_EQ(save_seconds(limit, 120), seconds) << limit;
  for (const char* bad : {"", "1-", "-1", "1:2:3:4", "x", "1:", "1-2-3", "1.5"})
    EXPECT_THAT(usage_error([&] { save_seconds(bad, 120); }), HasSubstr("bad time limit")) << bad;
}

TEST(Sbatch, TheCommandIsQuoted) {
  EXPECT_THAT(make_sbatch_script(sbatch_request()),
              HasSubstr("command=(/opt/redco/bin/redco train '/data/my job'\\''s.yaml' train.max_steps=10 "
                        "'parallel.sharding_rules=[{match: \".*\", spec: [mp, ~]}]')\n"));
}

TEST(Sbatch, Launchers) {
  auto r = sbatch_request();
  EXPECT_THAT(make_sbatch_script(r), HasSubstr("if srun --mpi=list 2>&1 | grep -qw"));
  r.launcher = SbatchRequest::Launcher::srun;
  EXPECT_THAT(make_sbatch_script(r), HasSubstr("\nlaunch=(srun --mpi=pmix --kill-on-bad-exit=1 "
                                               "--cpus-per-task=\"$SLURM_CPUS_PER_TASK\")\n"));
  r.launcher = SbatchRequest::Launcher::mpirun;
  EXPECT_THAT(make_sbatch_script(r), HasSubstr("\nlaunch=()"));
  EXPECT_THAT(make_sbatch_script(r), Not(HasSubstr("srun --mpi")));
  r.requeue = false;
  EXPECT_THAT(make_sbatch_script(r), HasSubstr("#SBATCH --no-requeue\n"));
  EXPECT_THAT(make_sbatch_script(r), Not(HasSubstr("scontrol")));
}

TEST(Sbatch, BadFields) {
  const auto message = [](const std::function<void(SbatchRequest&)>& change) {
    auto r = sbatch_request();
    change(r);
    return usage_error([&] { make_sbatch_script(r); });
  };
  EXPECT_THAT(message([](auto& r) { r.job_name = "a\n#SBATCH --uid=0"; }), HasSubstr("job-name='a"));
  EXPECT_THAT(message([](auto& r) { r.job_name = "\"x"; }), HasSubstr("contains a quote"));
  EXPECT_THAT(message([](auto& r) { r.output = "a'b"; }), HasSubstr("output="));
  EXPECT_THAT(message([](auto& r) { r.job_name = ""; }), HasSubstr("job-name is empty"));
  EXPECT_THAT(message([](auto& r) { r.nodes = 0; }), HasSubstr("nodes=0 is out of range"));
  EXPECT_THAT(message([](auto& r) { r.ranks = 1; }), HasSubstr("ranks=1 is out of range; expected 2"));
  EXPECT_THAT(message([](auto& r) { r.threads_per_rank = 0; }), HasSubstr("threads_per_rank=0"));
  EXPECT_THAT(message([](auto& r) { r.save_seconds = 70000; }), HasSubstr("save_seconds=70000"));
  EXPECT_THAT(message([](auto& r) { r.memory_per_node = 0; }), HasSubstr("memory_per_node=0"));
  EXPECT_THAT(message([](auto& r) { r.job_file = ""; }), HasSubstr("no job file"));
  for (const char* bad : {"", "soon", "1h", "-5", "1:2:3:4", "1-2-3", "5:", "1 2", "10:99:99", "10:60",
                          "1:60:00", "1-24", "1-0:60", "1-0:0:60"})
    EXPECT_THAT(message([&](auto& r) { r.time_limit = bad; }), HasSubstr("time limit '")) << bad;
}

// The script itself, run by bash with fake SLURM commands.
class ScriptRun : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::temp_directory_path() / fmt::format("redco-sbatch-{}", getpid());
    std::filesystem::create_directories(dir_);
    executable("scontrol",
               "#!/bin/bash\n"
               "[ \"$1\" = show ] && exec cat \"$DIR/state\"\n"
               "echo \"$@\" >> \"$DIR/scontrol.log\"\n");
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void executable(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    std::filesystem::permissions(dir_ / name, std::filesystem::perms::owner_all);
  }
  // The output of `scontrol show job`.
  void state(const std::string& text) { std::ofstream(dir_ / "state") << text; }
  // Runs the script with `program` as redco; sends a signal to the batch shell once the program has written
  // `ready`.
  int run(const std::string& program, bool signal, const char* name = "USR1") {
    executable("redco", "#!/bin/bash\n" + program);
    auto r = sbatch_request();
    r.program = (dir_ / "redco").string();
    r.launcher = SbatchRequest::Launcher::mpirun;
    std::ofstream(dir_ / "job.sh") << make_sbatch_script(r);
    const std::string d = dir_.string();
    const std::string outer = fmt::format(
        "export DIR='{0}' PATH='{0}':$PATH SLURM_JOB_ID=17 SLURM_CPUS_PER_TASK=1 {2}\nbash '{0}/job.sh' "
        "2>/dev/null &\n"
        "{1}wait $!\necho $? > '{0}/code'\n",
        d,
        signal ? fmt::format(
                     "for i in {{1..500}}; do [ -e '{0}/ready' ] && break; sleep 0.01; done; kill -{1} $!\n",
                     d, name)
               : "",
        array_);
    output_of({"bash", "-c", outer}, 20);
    int code = -1;
    std::ifstream(dir_ / "code") >> code;
    return code;
  }
  std::string text(const std::string& name) {
    std::ifstream in(dir_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path dir_;
  std::string array_;  // more variables of the job
};

TEST_F(ScriptRun, CodesPassThrough) {
  EXPECT_EQ(run("exit 0\n", false), 0);
  EXPECT_EQ(run("exit 3\n", false), 3);
  EXPECT_EQ(run("exit 8\n", false), 8);  // no signal before the time limit: no requeue
  EXPECT_EQ(run("kill -9 $$\n", false), 5);
  EXPECT_EQ(run("exit 127\n", false), 127);  // the program does not exist
  EXPECT_EQ(text("scontrol.log"), "");
}

TEST_F(ScriptRun, ASignalSavesAndRequeues) {
  EXPECT_EQ(run("trap 'echo saved > \"$DIR/saved\"; exit 8' USR1\ntouch \"$DIR/ready\"\nfor i in {1..1000}; "
                "do sleep "
                "0.01; done\nexit 1\n",
                true),
            0)
      << text("log");
  EXPECT_EQ(text("saved"), "saved\n");
  EXPECT_EQ(text("scontrol.log"), "requeue 17\n");
}

// The last task of an array has the number of the array, which names all tasks for scontrol.
TEST_F(ScriptRun, ATaskOfAnArrayRequeuesOnlyItself) {
  array_ = "SLURM_ARRAY_JOB_ID=17 SLURM_ARRAY_TASK_ID=2";
  EXPECT_EQ(run("trap 'exit 8' USR1\ntouch \"$DIR/ready\"\nfor i in {1..1000}; do sleep 0.01; done\nexit 1\n",
                true),
            0);
  EXPECT_EQ(text("scontrol.log"), "requeue 17_2\n");
}

// scancel: SIGTERM, and SIGKILL after KillWait. The ranks save, and the job stays cancelled.
TEST_F(ScriptRun, SigtermSaves) {
  state("JobState=CANCELLED PreemptTime=None");
  EXPECT_EQ(run("trap 'echo saved > \"$DIR/saved\"; exit 8' USR1\ntrap 'exit 1' TERM\ntouch "
                "\"$DIR/ready\"\nfor i in {1..1000}; do sleep 0.01; done\nexit 1\n",
                true, "TERM"),
            8);
  EXPECT_EQ(text("saved"), "saved\n");
  EXPECT_EQ(text("scontrol.log"), "");
}

// A preemption with a GraceTime may signal the ranks only.
TEST_F(ScriptRun, APreemptedJobIsRequeued) {
  for (const char* code : {"8", "5"}) {
    state("JobState=CANCELLED PreemptTime=2030-01-01T00:00:00");
    EXPECT_EQ(run(std::string("exit ") + code + "\n", false), std::atoi(code));
    EXPECT_EQ(text("scontrol.log"), "");
    state("   JobState=RUNNING Reason=None\n   PreemptTime=2030-01-01T00:00:00 SuspendTime=None\n");
    EXPECT_EQ(run(std::string("exit ") + code + "\n", false), 0);
    EXPECT_EQ(text("scontrol.log"), "requeue 17\n");
    std::filesystem::remove(dir_ / "scontrol.log");
    EXPECT_EQ(run("exit 3\n", false), 3);
  }
  EXPECT_EQ(text("scontrol.log"), "");
}

TEST_F(ScriptRun, AFailedSaveIsNotRequeued) {
  EXPECT_EQ(run("trap 'exit 7' USR1\ntouch \"$DIR/ready\"\nfor i in {1..1000}; do sleep 0.01; done\n", true),
            7);
  EXPECT_EQ(text("scontrol.log"), "");
}

TEST_F(ScriptRun, AJobThatFinishesAfterTheSignalKeepsItsCode) {
  EXPECT_EQ(run("trap '' USR1\ntouch \"$DIR/ready\"\nsleep 0.2\nexit 0\n", true), 0);
  EXPECT_EQ(text("scontrol.log"), "");
}

}  // namespace
TEST(Sbatch, NodesThatShareAHostnameDoNotShareMemoryFiles) {
  SbatchRequest r = sbatch_request();
  r.nodes = 2;
  r.ranks = 4;
  EXPECT_THAT(make_sbatch_script(r), HasSubstr("export OMPI_MCA_btl=self,tcp"));
  r.ranks = 2;  // one rank per node shares no memory
  EXPECT_THAT(make_sbatch_script(r), Not(HasSubstr("OMPI_MCA_btl")));
}

}  // namespace redco
