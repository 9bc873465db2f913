#include "launch/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace redco {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_EQ(job->step_tasks, 0);  // a batch shell, although it has SLURM_PROCID
}

TEST(DetectSlurm, CountsTheProcessesOfAStep) {
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
      HasSubstr("has 2 nodes, but SLURM_JOB_NODELIST='n[1-3]' has 3"));
  EXPECT_THAT(usage_error([] {
                detect_slurm({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[3-1]"}});
              }),
              HasSubstr("SLURM_JOB_NODELIST='n[3-1]': 'n[3-1]' has a bad range"));
}

TEST(Pmix, IsFoundInSrunsList) {
  EXPECT_TRUE(lists_pmix(
      "MPI plugin types are...\n\tcray_shasta\n\tnone\n\tpmi2\n\tpmix\nspecific pmix plugin versions "
      "available: pmix_v4\n"));
  EXPECT_FALSE(lists_pmix("MPI plugin types are...\n\tnone\n\tpmi2\n"));
  EXPECT_FALSE(lists_pmix("nopmix"));
}

TEST(ArrayTasks, EachHasItsOwnWorkdir) {
  EXPECT_EQ(workdir_of_task("runs/a", {}), "runs/a");
  EXPECT_EQ(workdir_of_task("runs/%a", {}), "runs/%a");
  const Environment task{{"SLURM_ARRAY_TASK_ID", "12"}};
  EXPECT_EQ(workdir_of_task("runs/a", task), "runs/a/task-12");
  EXPECT_EQ(workdir_of_task("runs/a/", task), "runs/a/task-12");
  EXPECT_EQ(workdir_of_task("runs/%a/b-%a", task), "runs/12/b-12");
  EXPECT_EQ(workdir_of_task("runs/a", {{"SLURM_ARRAY_TASK_ID", "../x"}}), "runs/a");
}

TEST(Restarts, ResumeNeverAppliesToTheFirstStartOnly) {
  EXPECT_EQ(resume_of_start("never", {}), "never");
  EXPECT_EQ(resume_of_start("never", {{"SLURM_RESTART_COUNT", "0"}}), "never");
  const Environment again{{"SLURM_RESTART_COUNT", "2"}};
  EXPECT_EQ(resume_of_start("never", again), "auto");
  EXPECT_EQ(resume_of_start("auto", again), "auto");
  EXPECT_EQ(resume_of_start("/some/checkpoint", again), "/some/checkpoint");
}

}  // namespace
}  // namespace redco
