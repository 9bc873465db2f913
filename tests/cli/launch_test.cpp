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
    EXPECT_THAT(r.err, HasSubstr("REDCO_ISA=of-the-job; expected baseline, avx2, avx512, avx512_bf16 or amx"))
        << shards;
  }
  refused({"train", "job.yaml", "parallel.environment={A-B: x}"}, 2,
          {"environment.A-B", "is not the name of an environment variable"});
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
  const Ran first = good(two, {{"SLURM_ARRAY_TASK_ID", "3"}});
  EXPECT_EQ(lines_with(first.err, "its workdir is run/task-3"), 1);
  EXPECT_TRUE(has("run/task-3/checkpoints/last"));
  const Ran again = good(four, {{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_RESTART_COUNT", "1"}});
  EXPECT_EQ(lines_with(again.err, "checkpoint.resume=never applies to the first start"), 1);
  EXPECT_TRUE(has("run/task-3/checkpoints/step-00000002"));  // never would have removed it
  EXPECT_TRUE(has("run/task-3/checkpoints/step-00000004"));
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
