// From a job to its plan: settings of the job, and assumptions for missing ones.
#include "commands/plan_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/report.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

PlanReport plan(const Words& more) {
  Words all = {"model.arch=gpt2", "model.vocab_size=32", "model.n_layer=1",
               "model.n_embd=8",  "model.n_head=2",      "model.n_positions=16"};
  all.insert(all.end(), more.begin(), more.end());
  return plan_job(job_of("", all));
}
std::string refused(const Words& more) {
  return usage_error([&] { plan(more); });
}

// In an allocation of SLURM train starts a rank for each task: the plan is that of these ranks.
TEST(PlanJob, AnAllocationGivesTheRanks) {
  const std::vector<std::pair<const char*, const char*>> slurm = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "2,1(x2)"}};
  for (const auto& [name, value] : slurm) setenv(name, value, 1);
  const PlanReport all = plan({"parallel.n_model_shards=2", "train.global_batch_size=6"});
  const PlanReport own = plan({"parallel.hosts=[a:3]", "train.global_batch_size=6"});
  for (const auto& [name, value] : slurm) unsetenv(name);
  EXPECT_EQ(all.setting.mesh.dp(), 2);
  EXPECT_EQ(all.setting.mesh.mp(), 2);
  EXPECT_EQ(all.ranks_per_host, 2);
  EXPECT_THAT(all.machines, HasSubstr("3 hosts"));
  EXPECT_EQ(own.setting.mesh.dp(), 3);
}

TEST(PlanJob, MeshAndBatchComeFromTheJob) {
  const PlanReport p = plan({"parallel.n_ranks=4", "parallel.n_model_shards=2", "train.global_batch_size=10",
                             "train.per_device_batch_size=2", "train.recompute=block"});
  EXPECT_EQ(p.setting.mesh.dp(), 2);
  EXPECT_EQ(p.setting.mesh.mp(), 2);
  EXPECT_EQ(p.setting.global_batch, 10);
  EXPECT_EQ(p.setting.per_device, 2);
  EXPECT_EQ(p.accumulation, 3);
  EXPECT_TRUE(p.setting.recompute);
  EXPECT_EQ(p.ranks_per_host, 4);
  EXPECT_THAT(p.machines, HasSubstr("this machine"));
}

// A large batch of answers needs more memory than a step of one row.
TEST(PlanJob, AnswersSampledBetweenTheStepsAreInItsMemory) {
  const Words grpo = {"pipeline=grpo", "grpo.num_generations=64", "grpo.max_new_tokens=8",
                      "train.global_batch_size=1"};
  const PlanReport few = plan(grpo);
  Words more = grpo;
  more.push_back("eval.per_device_batch_size=64");
  const PlanReport many = plan(more);
  EXPECT_EQ(few.memory.rollouts, 0);
  EXPECT_GT(many.memory.rollouts, 0);
  EXPECT_EQ(many.memory.total(), few.memory.total() + many.memory.rollouts);
  EXPECT_THAT(to_text(many), HasSubstr("generated answers"));
  EXPECT_THAT(many.notes, Contains(HasSubstr("answers of up to 8 tokens")));
}

TEST(PlanJob, AnswersOfEvaluationsAreInItsMemory) {
  const Words seq2seq = {"pipeline=seq2seq",
                         "model.path=" + std::string(REDCO_FIXTURES) + "/t5",
                         "model.tokenizer=bytes",
                         "data.eval=[builtin:chat]",
                         "data.max_length=16",
                         "train.global_batch_size=1",
                         "eval.per_device_batch_size=64",
                         "eval.generation.max_new_tokens=8"};
  const auto rollouts = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return plan_job(job_of("", words)).memory.rollouts;
  };
  EXPECT_EQ(rollouts(seq2seq, {}), 0);
  const i64 greedy = rollouts(seq2seq, {"eval.n_outputs=4"});
  EXPECT_GT(greedy, 0);
  EXPECT_GT(rollouts(seq2seq, {"eval.n_outputs=4", "eval.generation.num_beams=4"}), greedy);
  EXPECT_EQ(rollouts(seq2seq, {"eval.n_outputs=4", "data.eval=[]"}), 0);
}

TEST(PlanJob, ResizedEmbeddingsNeedTheTokenizer) {
  EXPECT_GT(plan_job(job_of("", {"model.path=" + std::string(REDCO_FIXTURES) + "/gpt2",
                                 "model.tokenizer=bytes", "model.resize_embeddings=true"}))
                .memory.parameters,
            0);
}

TEST(PlanJob, TasksOfTextsReadTheTokenizer) {
  for (const char* pipeline :
       {"embedding", "reranking", "token_classification", "question_answering", "multiple_choice"}) {
    const std::string labels = pipeline == std::string("reranking") ? "1" : "3";
    EXPECT_GT(plan_job(job_of("", {fmt::format("pipeline={}", pipeline),
                                   "model.path=" + std::string(REDCO_FIXTURES) + "/bert-sentence",
                                   "model.tokenizer=bytes", "model.num_labels=" + labels}))
                  .memory.parameters,
              0)
        << pipeline;
  }
}

TEST(PlanJob, AssumptionsAreListed) {
  const PlanReport p = plan({});
  EXPECT_EQ(p.length, 16);
  EXPECT_THAT(p.notes, Contains(HasSubstr("data.max_length is not given: the model's 16 positions")));
  EXPECT_THAT(p.notes, Contains(HasSubstr("no batch size is given: one row per replica assumed")));
  const PlanReport given = plan({"data.max_length=8", "train.global_batch_size=1"});
  EXPECT_EQ(given.length, 8);
  EXPECT_THAT(given.notes, Not(Contains(HasSubstr("is not given"))));
  EXPECT_LT(given.memory.activations, p.memory.activations);
  EXPECT_THAT(refused({"data.max_length=17"}), HasSubstr("is more than the model's 16 positions"));
}

TEST(PlanJob, HostsAreAssumedToEqualThisMachine) {
  const PlanReport p = plan({"parallel.hosts=[a:2, b]", "parallel.n_model_shards=3"});
  EXPECT_EQ(p.setting.mesh.mp(), 3);
  EXPECT_EQ(p.ranks_per_host, 2);
  EXPECT_THAT(p.machines, HasSubstr("2 hosts, taken to have"));
  EXPECT_GT(p.crossing_bytes, 0);  // the replica spans both hosts
  const test::TempDir dir;
  test::spill(dir / "hosts", "a:2\nb\n");
  const PlanReport same = plan({"parallel.hostfile=" + (dir / "hosts"), "parallel.n_model_shards=3"});
  EXPECT_EQ(same.machines, p.machines);
  EXPECT_EQ(same.crossing_bytes, p.crossing_bytes);
}

TEST(PlanJob, OnGivenDevicesMissingSettingsAreSearched) {
  const PlanReport open = plan({"plan.devices=1 x 4 x 1GiB"});
  EXPECT_TRUE(open.fits);
  EXPECT_EQ(open.memory_limit, i64{1} << 30);
  EXPECT_THAT(open.notes, Contains(HasSubstr("train.global_batch_size is not given")));
  const PlanReport fixed =
      plan({"plan.devices=1 x 4 x 1GiB", "parallel.n_ranks=2", "parallel.n_model_shards=2"});
  EXPECT_EQ(fixed.setting.mesh.ranks(), 2);
  EXPECT_EQ(fixed.setting.mesh.mp(), 2);
  EXPECT_THAT(refused({"plan.devices=1 x 4 x 1GiB", "parallel.n_ranks=5"}),
              HasSubstr("n_ranks=5 (override 'parallel.n_ranks=5') is more than the 4 devices"));
  EXPECT_THAT(refused({"plan.devices=1 x 4 x 1GiB", "parallel.n_model_shards=3"}),
              HasSubstr("n_ranks=4 (those of plan.devices) is not a multiple of parallel.n_model_shards=3 "
                        "(override 'parallel.n_model_shards=3'); use n_ranks 3, 6 or 9"));
}

TEST(PlanJob, TheReasonForTheMicroBatchIsNamed) {
  EXPECT_EQ(plan({"train.global_batch_size=8", "train.per_device_batch_size=2"}).why_batch,
            "train.per_device_batch_size");
  EXPECT_EQ(plan({"train.global_batch_size=8", "parallel.n_ranks=2"}).why_batch,
            "all rows of a replica: 8 / dp 2");
  const PlanReport open = plan({"plan.devices=1 x 1 x 1GiB"});
  EXPECT_THAT(open.why_batch, HasSubstr("the largest power of two"));
  EXPECT_THAT(to_text(open), HasSubstr(" per replica and micro-batch (the largest power of two"));
}

TEST(PlanJob, TheScheduleIsOneLine) {
  EXPECT_THAT(to_text(plan({"train.learning_rate=0.001", "train.warmup_ratio=0.1"})),
              HasSubstr("\nlearning rate: 0 to 0.001 until 10 % of the steps (linear), to 0 until the end "
                        "(linear)\n"));
  const std::string pieces = "train.schedule=[{until_step: 5, to: 1}, {shape: constant}]";
  EXPECT_EQ(plan({"train.learning_rate=0.001", pieces}).learning_rate,
            "0 to 0.001 until step 5 (linear), 0.001 until the end");
}

TEST(PlanJob, AJobThatDoesNotFitNamesTheDevicesThatItNeeds) {
  const auto xl = [](const std::string& devices) {
    return plan_job(job_of(
        "", {"model.preset=gpt2-xl", "data.max_length=64", "plan.devices=1 x " + devices + " x 4GiB"}));
  };
  const PlanReport two = xl("2");
  EXPECT_FALSE(two.fits);
  EXPECT_FALSE(two.smallest_n_model_shards);
  ASSERT_TRUE(two.devices_needed);
  // 1.56 G parameters with gradients and two moments: 16 bytes each, 5.8 times 4 GiB.
  EXPECT_GE(*two.devices_needed, 6);
  EXPECT_LE(*two.devices_needed, 12);
  const std::string text = to_text(two);
  EXPECT_THAT(text, HasSubstr(fmt::format("{} devices like these would hold the job", *two.devices_needed)));
  EXPECT_THAT(text, HasSubstr("total, fullest rank"));
  const PlanReport enough = xl(std::to_string(*two.devices_needed));
  EXPECT_TRUE(enough.fits);
  EXPECT_FALSE(enough.devices_needed);
}

}  // namespace
}  // namespace redco
