// Environments of plugins (tests/outside/project/environments.cpp): used by the pipeline rl like redco's own.
#include <filesystem>

#include "outside_testing.h"

namespace redco::test {
namespace {

class Environments : public Outside {
 protected:
  static void SetUpTestSuite() {
    Outside::SetUpTestSuite();
    if (HasFatalFailure()) return;
    spill(
        *dir_ / "corridor.yaml",
        "plugins: ./so/environments.so\n"
        "pipeline: rl\n"
        "rl: {algorithm: ppo, env: corridor, n_envs: 8, n_steps: 32, update_epochs: 4, n_eval_episodes: 20,\n"
        "     hidden_sizes: [16], gamma: 0.9}\n"
        "parallel: {threads_per_rank: 1}\n"
        "train: {global_batch_size: 64, n_epochs: 20, learning_rate: 1.0e-2, schedule: constant,\n"
        "        warmup_ratio: 0, seed: 3}\n");
    spill(
        *dir_ / "windy.yaml",
        "plugins: ./so/environments.so\n"
        "pipeline: rl\n"
        "rl: {algorithm: ddpg, env: windy, n_envs: 4, n_steps: 16, gradient_steps: 64, buffer_size: 10000,\n"
        "     learning_starts: 1000, n_eval_episodes: 10, hidden_sizes: [32, 32], activation: relu,\n"
        "     noise_std: 0.2, gamma: 0.9, tau: 0.01}\n"
        "parallel: {threads_per_rank: 1}\n"
        "train: {global_batch_size: 64, n_epochs: 20, learning_rate: 1.0e-3, schedule: constant,\n"
        "        warmup_ratio: 0, weight_decay: 0, clip_grad_norm: ~, seed: 3}\n");
  }
  static Ran command(const std::string& words) {
    return shell(dir_->path(), "timeout 120 prefix/bin/redco " + words);
  }
  static void trains(const std::string& job, const std::string& workdir, const std::string& words) {
    const Ran r = command("train " + job + " workdir=" + workdir + " " + words);
    ASSERT_EQ(r.code, 0) << words << "\n" << r.said;
  }
  // The last value in metrics.jsonl.
  static double last(const std::string& workdir, const std::string& metric) {
    double value = NAN;
    std::istringstream log(slurp(*dir_ / (workdir + "/metrics.jsonl")));
    for (std::string line; std::getline(log, line);)
      if (const Json j = Json::parse(line); j.contains(metric)) value = j[metric].get<double>();
    return value;
  }
};

TEST_F(Environments, PpoLearnsOnAnyMesh) {
  trains("corridor.yaml", "ppo", "");
  // Seven steps at most: 1 for the end on the right, -0.01 for each step before it.
  EXPECT_GT(last("ppo", "eval_mean_return"), 0.9);
  for (const auto& [what, where] :
       std::map<std::string, std::string>{{"2x1", mesh(2, 1)}, {"1x2", mesh(1, 2)}}) {
    trains("corridor.yaml", "ppo-" + what, where + " train.n_epochs=2");
    trains("corridor.yaml", "ppo-one-" + what, "train.n_epochs=2");
    EXPECT_NEAR(last("ppo-" + what, "eval_mean_return"), last("ppo-one-" + what, "eval_mean_return"), 1e-6);
  }
  const Ran answers = shell(dir_->path(),
                            "printf '{\"observation\": [0.2, 1]}\\n{\"seed\": 7}\\n' > asked.jsonl && "
                            "prefix/bin/redco predict corridor.yaml workdir=ppo predict.input=asked.jsonl "
                            "predict.output=env-answers.jsonl");
  ASSERT_EQ(answers.code, 0) << answers.said;
  EXPECT_THAT(slurp(*dir_ / "env-answers.jsonl"), HasSubstr("\"terminated\":true"));
}

TEST_F(Environments, AResumedRunEqualsAnUninterruptedRun) {
  for (const std::string job : {"corridor.yaml", "windy.yaml"}) {
    const std::string straight = job + "-straight", resumed = job + "-resumed";
    trains(job, straight, "train.n_epochs=4");
    trains(job, resumed, "train.n_epochs=2");
    trains(job, resumed, "train.n_epochs=4");
    for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
      EXPECT_TRUE(slurp(*dir_ / (straight + "/checkpoints/last/" + file)) ==
                  slurp(*dir_ / (resumed + "/checkpoints/last/" + file)))
          << job << ": " << file;
  }
}

TEST_F(Environments, DdpgLearns) {
  trains("windy.yaml", "ddpg", "eval.at_start=true");
  std::istringstream log(slurp(*dir_ / "ddpg/metrics.jsonl"));
  double first = NAN;
  for (std::string line; std::getline(log, line) && std::isnan(first);)
    if (const Json j = Json::parse(line); j.contains("eval_mean_return"))
      first = j["eval_mean_return"].get<double>();
  EXPECT_LT(first, -5);
  EXPECT_GT(last("ddpg", "eval_mean_return"), -1);  // three seeds: about -0.35
}

TEST_F(Environments, MistakesAreNamed) {
  const std::map<std::string, std::string> why = {
      {"nan", "observe() left observation[1] as "},
      {"short", "observe() left observation[1] as nan"},
      {"long", "observe() wrote outside of the 2 numbers of its observation"},
      {"nan_reward", "step() returned the reward nan after the action ["},
      {"throws", "step() failed: no way"},
      {"endless", "time_limit_ is 0; expected 1 to "},
      {"no_range", "action_low_ is 0 and action_high_ is 0; expected"}};
  for (const auto& [name, said] : why) {
    const Ran r = command("train corridor.yaml workdir=refused rl.env=" + name);
    EXPECT_EQ(r.code, 2) << name << r.said;
    EXPECT_THAT(r.said, HasSubstr("[env] " + name + " (./so/environments.so): " + said));
    EXPECT_EQ(r.said.find("error:"), r.said.rfind("error:")) << r.said;
  }
  const Ran typo = command("train corridor.yaml workdir=refused rl.env=corridr");
  EXPECT_EQ(typo.code, 2) << typo.said;
  EXPECT_THAT(typo.said, HasSubstr("[env] unknown environment 'corridr'; did you mean corridor?"));
  const Ran none = command("predict workdir=ppo");
  EXPECT_EQ(none.code, 2) << none.said;
}

}  // namespace
}  // namespace redco::test
