#include "launch/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace redco {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Nodelist, Expands) {
  EXPECT_THAT(expand_nodelist("n1"), ElementsAre("n1"));
  EXPECT_THAT(expand_nodelist("n[1-3,07],m2"), ElementsAre("n1", "n2", "n3", "n07", "m2"));
  EXPECT_THAT(expand_nodelist("redco-n[08-11]"),
              ElementsAre("redco-n08", "redco-n09", "redco-n10", "redco-n11"));
  EXPECT_THAT(expand_nodelist("r[1-2]n[3-4]x"), ElementsAre("r1n3x", "r1n4x", "r2n3x", "r2n4x"));
}

TEST(Nodelist, BadOnes) {
  for (const char* bad : {"", ",", "a,", "n[1-3", "n[]", "n[3-1]", "n[a]", "n[1,]", "n[1-99999999]",
                          "[1-300]x[1-300]", "n[-1]", "n[1-2-3]", "n]"})
    EXPECT_THAT(usage_error([&] {
                  const auto names = expand_nodelist(bad);
                  if (std::string_view(bad) == "n]") throw UsageError("SLURM_JOB_NODELIST: {}", names.size());
                }),
                HasSubstr("SLURM_JOB_NODELIST"))
        << bad;
}

TEST(Counts, Expand) {
  EXPECT_THAT(expand_counts("2(x3),1", "V"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_counts("16", "V"), ElementsAre(16));
  for (const char* bad : {"", "x", "2(x", "2(x3", "2(x0)", "2(x-1)", "2(x99999999)", "2,", "-1", "1e3"})
    EXPECT_THAT(usage_error([&] { expand_counts(bad, "SLURM_TASKS_PER_NODE"); }),
                HasSubstr("SLURM_TASKS_PER_NODE='"))
        << bad;
}

TEST(DetectSlurm, Allocation) {
  EXPECT_FALSE(detect_slurm({}));
  EXPECT_FALSE(detect_slurm({{"SLURM_JOB_ID", "7"}}));
  const auto job = detect_slurm({{"SLURM_JOB_ID", "7"},
                                 {"SLURM_JOB_NODELIST", "n[1-2]"},
                                 {"SLURM_TASKS_PER_NODE", "2(x2)"},
                                 {"SLURM_JOB_CPUS_PER_NODE", "4,8"},
                                 {"SLURM_CPUS_PER_TASK", "2"},
                                 {"SLURM_NTASKS", "4"},
                                 {"SLURM_PROCID", "0"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->id, "7");
  EXPECT_THAT(job->nodes, ElementsAre(Host{"n1", 2}, Host{"n2", 2}));
  EXPECT_THAT(job->cpus, ElementsAre(4, 8));
  EXPECT_EQ(job->cpus_per_task, 2);
  EXPECT_EQ(job->step_tasks, 0);  // a batch shell, though it has SLURM_PROCID
}

TEST(DetectSlurm, StepOfSeveralProcesses) {
  const auto job = detect_slurm({{"SLURM_JOB_ID", "7"},
                                 {"SLURM_JOB_NODELIST", "n1"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_EQ(job->step_tasks, 4);
}

TEST(DetectSlurm, ContradictionsAreErrors) {
  EXPECT_THAT(
      usage_error([] {
        detect_slurm(
            {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}});
      }),
      HasSubstr("has 2 nodes, SLURM_JOB_NODELIST='n[1-3]' 3"));
}

TEST(Pmix, IsListed) {
  EXPECT_TRUE(lists_pmix(
      "MPI plugin types are...\n\tcray_shasta\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions "
      "available: pmix_v4\n"));
  EXPECT_FALSE(lists_pmix("MPI plugin types are...\n\tnone\n\tpmi2\n"));
  EXPECT_FALSE(lists_pmix("nopmix"));
}

TEST(ArrayTasks, EachHasAWorkdir) {
  EXPECT_EQ(workdir_of_task("runs/a", {}), "runs/a");
  EXPECT_EQ(workdir_of_task("runs/%a", {}), "runs/%a");
  const Environment task{{"SLURM_ARRAY_TASK_ID", "12"}};
  EXPECT_EQ(workdir_of_task("runs/a", task), "runs/a/task-12");
  EXPECT_EQ(workdir_of_task("runs/a/", task), "runs/a/task-12");
  EXPECT_EQ(workdir_of_task("runs/%a/b-%a", task), "runs/12/b-12");
  EXPECT_EQ(workdir_of_task("runs/a", {{"SLURM_ARRAY_TASK_ID", "../x"}}), "runs/a");
}

TEST(Restarts, NeverResumesHoldsForTheFirstStart) {
  EXPECT_EQ(resume_of_start("never", {}), "never");
  EXPECT_EQ(resume_of_start("never", {{"SLURM_RESTART_COUNT", "0"}}), "never");
  const Environment again{{"SLURM_RESTART_COUNT", "2"}};
  EXPECT_EQ(resume_of_start("never", again), "auto");
  EXPECT_EQ(resume_of_start("auto", again), "auto");
  EXPECT_EQ(resume_of_start("/some/checkpoint", again), "/some/checkpoint");
}

}  // namespace
}  // namespace redco
