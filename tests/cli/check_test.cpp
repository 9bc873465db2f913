// `redco check` on shipped jobs: equal on every mesh, with dropout, rollouts and sharded state. Mistakes of a
// user's pipeline are in tests/outside/check_test.cpp.
#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using CheckJson = nlohmann::json;

class CheckCommand : public Cli {
 protected:
  static std::string job_file(const std::string& job) { return REDCO_SOURCE_DIR "/configs/" + job + ".yaml"; }
  // All combinations of the default meshes and sizes are equal, and the gradients aren't 0.
  CheckJson equal(const Words& words) {
    Words w = {"check", "parallel.threads_per_rank=1", "--json"};
    w.insert(w.end(), words.begin(), words.end());
    const CheckJson j = CheckJson::parse(good(w).out);
    EXPECT_TRUE(j["passed"]);
    EXPECT_EQ(j["runs"].size(), 6u);
    for (const CheckJson& run : j["runs"])
      EXPECT_EQ(run["verdict"], &run == &j["runs"][0] ? "reference" : "equal") << run.dump(1);
    EXPECT_GT(j["runs"][0]["grad_norm"].get<double>(), 0);
    return j;
  }
};

TEST_F(CheckCommand, ALanguageModelWithDropoutIsEqual) {
  write("text.txt", some_text(60));
  write("job.yaml", kTinyJob);  // with GPT-2's dropout
  const Ran r = good({"check", "job.yaml", "parallel.threads_per_rank=1"});
  EXPECT_THAT(r.out, HasSubstr("one step of pipeline lm: 8 rows of at most 32 tokens, fp32"));
  EXPECT_THAT(r.out, HasSubstr("passed: 5 of 5 combinations equal the reference"));
  EXPECT_EQ(lines_with(r.out, "  equal "), 5) << r.out;
  EXPECT_EQ(lines_with(r.err, "[check] "), 6) << r.err;
  EXPECT_FALSE(has("run/checkpoints"));
  EXPECT_FALSE(has("run/log.txt"));
  const CheckJson j = equal({"job.yaml", "workdir=~", "data.group_by_length=true"});
  EXPECT_EQ(j["runs"][0]["weights"]["loss"], 8 * 32);
}

TEST_F(CheckCommand, ShardedStateAndBf16AreEqual) {
  write("text.txt", some_text(60));
  write("job.yaml", kTinyJob);
  equal({"job.yaml", "parallel.shard_parameters=true", "train.recompute=block"});
  const CheckJson j = equal({"job.yaml", "train.compute_dtype=bf16", "model.weight_dtype=bf16"});
  EXPECT_GT(j["tolerance"].get<double>(), 1e-2);
}

TEST_F(CheckCommand, PreferencesAreEqual) {
  equal({job_file("dpo/preferences"), "train.global_batch_size=8", "workdir=dpo"});
  equal({job_file("dpo/preferences"), "train.global_batch_size=8", "dpo.loss_type=orpo", "workdir=orpo"});
  equal({job_file("dpo/judged"), "train.global_batch_size=8", "workdir=kto"});
  equal({job_file("reward/preferences"), "train.global_batch_size=8", "workdir=reward"});
}

TEST_F(CheckCommand, TasksOfMamlAreEqual) {
  equal({job_file("maml/sinusoid"), "train.global_batch_size=8", "workdir=maml"});
}

// The rollouts of the first combination are in the record; another mesh would sample other answers.
TEST_F(CheckCommand, RolloutsAreRecorded) {
  equal({job_file("rl/cartpole_ppo"), "workdir=ppo"});
  good({"train", job_file("grpo/warm_start"), "train.max_steps=20", "checkpoint.every_n_steps=10",
        "train.logging_steps=20", "eval.every_n_steps=~", "parallel.threads_per_rank=1", "workdir=start"});
  // The reference differs from the policy, so the KL term has a gradient, whatever the rewards are.
  const CheckJson j = equal({job_file("grpo/arithmetic"), "model.path=start/checkpoints/last",
                             "grpo.prompts_per_epoch=4", "train.global_batch_size=16", "grpo.beta=0.1",
                             "models.reference={path: start/checkpoints/step-00000010}", "workdir=grpo"});
  EXPECT_GT(j["runs"][0]["terms"]["kl"].get<double>(), 0);
  EXPECT_EQ(j["note"], "");
}

TEST_F(CheckCommand, GradientsOfZeroAreNoted) {
  const Ran r = good({"check", job_file("grpo/arithmetic"), "model.path=~", "model.arch=gpt2",
                      "model.tokenizer=bytes", "model.n_layer=1", "model.n_embd=16", "model.n_head=2",
                      "model.n_positions=32", "grpo.prompts_per_epoch=2", "train.global_batch_size=4",
                      "workdir=~", "--meshes", "1x1", "--micro", "2,4"});
  EXPECT_THAT(r.out, HasSubstr("note: all gradients are 0, so they prove nothing"));
}

TEST_F(CheckCommand, BadJobsAreRefusedAsByTrain) {
  write("text.txt", some_text(60));
  write("job.yaml", kTinyJob);
  refused({"check", "job.yaml", "--meshes", "2"}, 2, {"--meshes 2: '2' is not a mesh; expected DPxMP"});
  refused({"check", "job.yaml", "--micro", "0"}, 2, {"--micro 0: '0' is not a number of rows"});
  refused({"check", "job.yaml", "train.sed=1"}, 2, {"train.sed", "did you mean train.seed"});
  refused({"check", "job.yaml", "data.train=nowhere.txt"}, 2, {"nowhere.txt does not exist"});
  refused({"check", "job.yaml", "train.global_batch_size=~"}, 2, {"train.global_batch_size is missing"});
  write("bad.jsonl", "{\"text\": 1}\n");
  refused({"check", "job.yaml", "data.train=bad.jsonl", "--meshes", "1x1,2x1", "--micro", "4"}, 3,
          {"bad.jsonl"});
  refused({"check", "job.yaml", "--meshes", "9x1,10x1"}, 2,
          {"[check] no combination ran", "9x1 micro 1: not possible: the step has 8 rows"});
  refused({"__check", "a", "b"}, 2, {"__check runs a combination of redco check"});
}

TEST_F(CheckCommand, ASignalEndsTheRuns) {
  write("text.txt", some_text(2000));
  write("job.yaml", kTinyJob);
  const pid_t pid =
      start({"check", "job.yaml", "train.global_batch_size=4096", "--meshes", "2x1", "--micro", "1"},
            {{"TMPDIR", dir_.path()}});
  ASSERT_TRUE(until([&] { return !std::filesystem::is_empty(dir_.path()) && has("run/cache"); }));
  kill(pid, SIGTERM);
  const Ran r = wait(pid);
  EXPECT_EQ(r.code, 8) << r.err;
  EXPECT_THAT(r.err, HasSubstr("SIGTERM"));
}

}  // namespace
}  // namespace redco::test
