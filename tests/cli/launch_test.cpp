// What a launch gives its ranks, however many there are.
#include <cstdlib>

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

// A word that the kernels refuse shows that it has reached the ranks.
TEST_F(Launch, TheEnvironmentOfTheJobReachesOneRankAndSeveral) {
  for (const char* shards : {"parallel.n_model_shards=1", "parallel.n_model_shards=2"}) {
    const Words words{"train", "job.yaml", "parallel.environment.REDCO_ISA=of-the-job", shards};
    const Ran r = run(words, {{"REDCO_ISA", "inherited"}});
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_THAT(r.err, HasSubstr("REDCO_ISA=of-the-job is none of")) << shards;
  }
  refused({"train", "job.yaml", "parallel.environment={A-B: x}"}, 2,
          {"environment.A-B", "is no name of an environment variable"});
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

// One that PATH names first, and that is not of the linked library, is not used.
TEST_F(Launch, AnotherMpirunInPathDoesNoHarm) {
  write("mpirun", "#!/bin/sh\necho HYDRA\nexit 1\n");
  std::filesystem::permissions(path("mpirun"), std::filesystem::perms::owner_all);
  good({"train", "job.yaml", "parallel.n_model_shards=2", "train.max_steps=1"},
       {{"PATH", dir_.path() + ":" + std::getenv("PATH")}});
}

}  // namespace
}  // namespace redco::test
