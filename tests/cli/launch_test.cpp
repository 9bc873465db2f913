// The environment of the ranks after a launch, for one rank and several.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/sanitized.h"
#include "cli/cli_testing.h"

namespace redco::test {
namespace {

class Launch : public Cli {
 protected:
  void SetUp() override {
    write("text.txt", some_text(60));
    write("job.yaml", kTinyJob);
  }
};

std::string host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// The ranks' error about an invalid value shows that the value has reached them.
TEST_F(Launch, TheEnvironmentOfTheJobReachesOneRankAndSeveral) {
  for (const char* shards : {"parallel.n_model_shards=1", "parallel.n_model_shards=2"}) {
    const Words words{"train", "job.yaml", "parallel.environment.REDCO_ISA=of-the-job", shards};
    const Ran r = run(words, {{"REDCO_ISA", "inherited"}});
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_THAT(r.err, HasSubstr("REDCO_ISA=of-the-job; expected ")) << shards;
  }
  refused({"train", "job.yaml", "parallel.environment={A-B: x}"}, 2,
          {"environment.A-B", "is not the name of an environment variable"});
}

// By the process that starts the ranks: the host does not exist.
TEST_F(Launch, WeightsOfAnotherModelAreFoundBeforeRanksStart) {
  write("weights.yaml", "model: {path: " + std::string(REDCO_FIXTURES) +
                            "/gpt2, tokenizer: bytes, n_layer: 3}\n"
                            "data: {train: text.txt}\ntrain: {global_batch_size: 2}\nworkdir: run\n");
  for (const char* hosts : {"parallel.hosts=[nowhere.invalid:2]", "parallel.hosts=[]"}) {
    refused({"train", "weights.yaml", hosts}, 3, {"of the model's tensors are missing: transformer.h.2."});
    EXPECT_FALSE(has("run"));
  }
}

// `srun --pty bash` with PMIx: a shell that looks like rank 0 of 1.
TEST_F(Launch, AShellInAStepOfOneTaskStartsRanks) {
  const Ran r = good({"train", "job.yaml", "parallel.n_model_shards=2", "train.max_steps=1"},
                     {{"PMIX_RANK", "0"},
                      {"PMIX_NAMESPACE", "slurm.pmix.7.0"},
                      {"PMIX_SERVER_URI2", "pmix-server.1;tcp4://127.0.0.1:1"},
                      {"SLURM_JOB_ID", "7"},
                      {"SLURM_JOB_NODELIST", "n1"},
                      {"SLURM_TASKS_PER_NODE", "1"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_THAT(r.err, HasSubstr("dp 1 x mp 2"));
}

// An mpirun of another library is not used, even if it is first in PATH.
TEST_F(Launch, AnMpirunOfAnotherLibraryIsNotUsed) {
  write("mpirun", "#!/bin/sh\necho HYDRA\nexit 1\n");
  std::filesystem::permissions(path("mpirun"), std::filesystem::perms::owner_all);
  good({"train", "job.yaml", "parallel.n_model_shards=2", "train.max_steps=1"},
       {{"PATH", dir_.path() + ":" + std::getenv("PATH")}});
}

// SLURM_ARRAY_TASK_ID gives each task a workdir, and SLURM_RESTART_COUNT makes a restart resume.
TEST_F(Launch, EachTaskOfAJobArrayHasItsOwnWorkdir) {
  const Words words{"train", "job.yaml", "checkpoint.resume=never"};
  Words two = words, four = words;
  two.push_back("train.max_steps=2");
  four.push_back("train.max_steps=4");
  const Ran first = good(two, {{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_JOB_ID", "71"}});
  EXPECT_EQ(lines_with(first.err, "its workdir is run/task-3"), 1);
  EXPECT_TRUE(has("run/task-3/checkpoints/last"));
  const Ran again =
      good(four, {{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_RESTART_COUNT", "1"}, {"SLURM_JOB_ID", "71"}});
  EXPECT_EQ(lines_with(again.err, "checkpoint.resume=never applies to the first start"), 1);
  EXPECT_TRUE(has("run/task-3/checkpoints/step-00000002"));  // never would have removed it
  EXPECT_TRUE(has("run/task-3/checkpoints/step-00000004"));
  // Other commands use the task's model too.
  const Ran predicted = good({"predict", "job.yaml", "--prompt", "the"}, {{"SLURM_ARRAY_TASK_ID", "3"}});
  EXPECT_EQ(lines_with(predicted.err, "its workdir is run/task-3"), 1);
}

// A job that was killed before it began its run starts again: the run in the workdir is that of another job.
TEST_F(Launch, ARestartedJobDoesNotResumeTheRunOfAnotherJob) {
  good({"train", "job.yaml", "train.max_steps=2"}, {{"SLURM_JOB_ID", "70"}});
  const Ran r = good({"train", "job.yaml", "train.max_steps=1", "checkpoint.resume=never"},
                     {{"SLURM_JOB_ID", "71"}, {"SLURM_RESTART_COUNT", "1"}});
  EXPECT_THAT(r.err, HasSubstr("done: 1 step"));
  EXPECT_FALSE(has("run/checkpoints/step-00000002"));
  // The same job again: now its run is there.
  const Ran again = good({"train", "job.yaml", "train.max_steps=3", "checkpoint.resume=never"},
                         {{"SLURM_JOB_ID", "71"}, {"SLURM_RESTART_COUNT", "2"}});
  EXPECT_THAT(again.err, HasSubstr("resuming from run/checkpoints/step-00000001"));
}

TEST_F(Launch, CheckpointsAreSavedAfterSomeMinutes) {
  for (const std::string shards : {"1", "2"}) {
    good({"train", "job.yaml", "workdir=run" + shards, "train.max_steps=3", "checkpoint.every_minutes=1.0e-9",
          "checkpoint.keep_last=9", "parallel.n_model_shards=" + shards});
    for (const char* step : {"1", "2", "3"})
      EXPECT_TRUE(has("run" + shards + "/checkpoints/step-0000000" + step));
  }
}

// `redco train 2>&1 | head -n 1` and `| tee` that a Ctrl-C ends first: the run goes on, and the log says why
// the terminal shows nothing more.
TEST_F(Launch, AReaderOfMessagesThatGoesAwayEndsNothing) {
  for (const char* shards : {"1", "2"}) {
    const std::string dir = std::string("run") + shards;
    const Ran r = run_shell(std::string("{ '") + REDCO_BINARY + "' train job.yaml workdir=" + dir +
                            " parallel.n_model_shards=" + shards + " 2>&1; echo $? > code; } | head -n 1");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(read("code"), "0\n");
    EXPECT_TRUE(has(dir + "/checkpoints/step-00000020")) << read(dir + "/log.txt");
    EXPECT_EQ(lines_with(read(dir + "/log.txt"), "nobody reads standard error any more"), 1);
  }
}

// Data go to stdout: there a reader that goes away ends the command quietly, as in other programs.
TEST_F(Launch, ACommandWhoseDataNobodyReadsEndsQuietly) {
  good({"train", "job.yaml", "train.max_steps=1"});
  const Ran r = run_shell(std::string("{ '") + REDCO_BINARY +
                          "' predict job.yaml --prompt fox; echo $? > code; } | true");
  EXPECT_EQ(read("code"), "141\n") << r.err;
  EXPECT_THAT(r.err, Not(HasSubstr("error:")));
}

// The next file would get the number of a closed standard stream, and messages would be written into it.
TEST_F(Launch, ClosedStandardStreamsAreNoProblem) {
  const std::string redco = std::string("'") + REDCO_BINARY + "' ";
  EXPECT_EQ(run_shell(redco + "train job.yaml >&- 2>&-").code, 0);
  EXPECT_TRUE(has("run/checkpoints/step-00000020"));
  EXPECT_EQ(run_shell(redco + "train job.yaml workdir=two parallel.n_model_shards=2 <&- >&- 2>&-").code, 0);
  EXPECT_TRUE(has("two/checkpoints/step-00000020"));
  const Ran r = run_shell("timeout 30 " + redco + "chat job.yaml data.chat_template=builtin:chat <&-");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(run_shell(redco + "predict job.yaml --prompt fox >&-").code, 7);
}

// The check precedes all allocations.
TEST_F(Launch, ATrainingRunThatDoesNotFitNamesTheHost) {
  refused({"train", "job.yaml", "model.n_embd=65536", "model.n_layer=200"}, 4,
          {"[memory] a rank needs", host() + " has", "free for 1 rank"});
}

#if !REDCO_SANITIZED  // the sanitizers need terabytes of it
// BLAS and the threads need address space besides the tensors; without the check they would wait for it
// forever.
TEST_F(Launch, TooLittleAddressSpaceIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little{rlim_t{800} << 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  const Ran r = run({"train", "job.yaml", "train.max_steps=1"});
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(r.code, 4) << r.err;
  EXPECT_THAT(r.err, HasSubstr("[memory]"));
}
#endif

}  // namespace
}  // namespace redco::test
