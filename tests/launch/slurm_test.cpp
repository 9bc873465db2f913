#include "launch/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using testing::AllOf;
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

// `srun -N1 -n1 --pty bash` in a job of two nodes, as SLURM 22.05 sets its variables.
TEST(DetectSlurm, AStepMayBeSmallerThanItsJob) {
  Environment step{{"SLURM_JOB_ID", "7"},
                   {"SLURM_JOB_NODELIST", "n[1-2]"},
                   {"SLURM_JOB_CPUS_PER_NODE", "4,8"},
                   {"SLURM_TASKS_PER_NODE", "1"},
                   {"SLURM_STEP_ID", "0"},
                   {"SLURM_STEP_NODELIST", "n2"},
                   {"SLURM_STEP_NUM_TASKS", "1"},
                   {"SLURM_STEP_TASKS_PER_NODE", "1"}};
  auto job = detect_slurm(step);
  EXPECT_THAT(job->nodes, ElementsAre(Host{"n2", 1}));
  EXPECT_THAT(job->cpus, ElementsAre(8));
  EXPECT_TRUE(job->is_shell());
  step["SLURM_STEP_NODELIST"] = "n[1-2]";
  step["SLURM_STEP_TASKS_PER_NODE"] = "3,1";
  step["SLURM_STEP_NUM_TASKS"] = "4";
  job = detect_slurm(step);
  EXPECT_THAT(job->nodes, ElementsAre(Host{"n1", 3}, Host{"n2", 1}));
  EXPECT_FALSE(job->is_shell());
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

// A shell may outlive its allocation.
TEST(CheckAllocation, AJobThatHasEndedIsAnError) {
  const test::TempDir dir;
  const std::string before = std::getenv("PATH");
  setenv("PATH", (dir.path() + ":" + before).c_str(), 1);
  const auto message = [&](const std::string& answer) {
    test::spill(dir / "scontrol", "#!/bin/sh\n[ \"$*\" = 'show job -o 7' ] || exit 9\n" + answer);
    std::filesystem::permissions(dir / "scontrol", std::filesystem::perms::owner_all);
    try {
      check_allocation({{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n1"}, {"PATH", std::getenv("PATH")}});
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("echo 'JobId=7 JobName=a JobState=COMPLETED Reason=None'\n"),
              AllOf(HasSubstr("job 7 has ended (COMPLETED)"), HasSubstr("unset \"${!SLURM_JOB@}\"")));
  EXPECT_THAT(message("echo 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n"),
              HasSubstr("no longer known to SLURM"));
  EXPECT_EQ(message("echo 'JobId=7 JobName=a JobState=RUNNING Reason=None'\n"), "");
  // The array of the job has the same number as its last task.
  EXPECT_EQ(message("echo 'JobId=6 ArrayJobId=7 JobState=FAILED Reason=None'\n"
                    "echo 'JobId=7 ArrayJobId=7 JobState=RUNNING Reason=None'\n"),
            "");
  EXPECT_EQ(message("echo 'Unable to contact slurm controller' >&2\nexit 1\n"), "");
  setenv("PATH", before.c_str(), 1);
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

TEST(ArrayTasks, ShareTheModelOfAWorkdirThatNoTaskTrained) {
  const Environment task{{"SLURM_ARRAY_TASK_ID", "12"}};
  const auto has_run = [](bool has) { return [has](const std::string&) { return has; }; };
  EXPECT_EQ(trained_workdir_of_task("runs/a", task, has_run(true)), "runs/a/task-12");
  EXPECT_EQ(trained_workdir_of_task("runs/a", task, has_run(false)), "runs/a");
  EXPECT_EQ(trained_workdir_of_task("runs/%a", task, has_run(false)), "runs/12");
}

TEST(Restarts, ResumeNeverAppliesUntilTheJobHasBegunItsRun) {
  EXPECT_EQ(resume_of_start("never", "", {}), "never");
  EXPECT_EQ(resume_of_start("never", "7", {{"SLURM_RESTART_COUNT", "0"}, {"SLURM_JOB_ID", "7"}}), "never");
  Environment again{{"SLURM_RESTART_COUNT", "2"}, {"SLURM_JOB_ID", "7"}};
  EXPECT_EQ(resume_of_start("never", "7", again), "auto");
  EXPECT_EQ(resume_of_start("never", "6", again), "never");  // the run of an older job
  EXPECT_EQ(resume_of_start("never", "", again), "never");   // a run that no job began
  EXPECT_EQ(resume_of_start("auto", "6", again), "auto");
  EXPECT_EQ(resume_of_start("/some/checkpoint", "7", again), "/some/checkpoint");
  again["SLURM_CLUSTER_NAME"] = "dell";
  EXPECT_EQ(slurm_job_name(again), "dell/7");
  EXPECT_EQ(resume_of_start("never", "7", again), "never");
  EXPECT_EQ(resume_of_start("never", "dell/7", again), "auto");
}

}  // namespace
}  // namespace redco
