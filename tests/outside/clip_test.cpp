// A user's contrastive pipeline: equal for every mesh and micro-batch size, resumed to the byte, planned,
// checked and evaluated.
#include "outside_testing.h"

namespace redco::test {
namespace {

class ClipOutside : public Outside {
 protected:
  void SetUp() override {
    ASSERT_TRUE(std::filesystem::exists(*dir_ / "so/clip.so"));
    std::string lines;
    for (int i = 0; i < 40; ++i) {
      const auto view = [&](int factor) {
        std::string s;
        for (int k = 0; k < 6; ++k)
          s += (k ? ", " : "") + std::to_string((i * factor * (k + 3) + 7 * k) % 23 / 11.0 - 1);
        return "[" + s + "]";
      };
      lines += R"({"a": )" + view(5) + R"(, "b": )" + view(9) + "}\n";
    }
    spill(*dir_ / "views.jsonl", lines);
    spill(*dir_ / "clip.yaml",
          "pipeline: ./so/clip.so\n"
          "data: {train: views.jsonl, eval: views.jsonl}\n"
          "parallel: {threads_per_rank: 1}\n"
          "train: {global_batch_size: 16, per_device_batch_size: 8, max_steps: 6, learning_rate: 3.0e-3,\n"
          "        schedule: constant, warmup_ratio: 0, clip_grad_norm: 1.0, logging_steps: 1, seed: 3}\n");
  }
  static Ran command(const std::string& words) {
    return shell(dir_->path(), "timeout 120 prefix/bin/redco " + words);
  }
  static void trains(const std::string& workdir, const std::string& words) {
    const Ran r = command("train clip.yaml workdir=" + workdir + " " + words);
    ASSERT_EQ(r.code, 0) << words << "\n" << r.said;
  }
};

TEST_F(ClipOutside, ALossOfTheWholeBatchDoesNotDependOnItsCut) {
  trains("clip", "");
  const auto one = losses("clip");
  ASSERT_EQ(one.count({6, "eval_loss"}), 1u);
  const std::map<std::string, std::string> others = {
      {"2x1", mesh(2, 1)},
      {"1x2", mesh(1, 2)},
      {"zero3", mesh(2, 1) + " train.per_device_batch_size=3 parallel.shard_parameters=true"},
      {"whole", "train.per_device_batch_size=16"},
      {"single", "train.per_device_batch_size=1"}};
  for (const auto& [what, more] : others) {
    trains("clip-" + what, more);
    const auto other = losses("clip-" + what);
    ASSERT_EQ(other.size(), one.size()) << what;
    for (const auto& [key, value] : one)
      EXPECT_NEAR(other.at(key), value, 1e-4 * std::abs(value) + 1e-6)
          << what << ", step " << key.first << ", " << key.second;
  }
  // Another number of negatives is another loss.
  trains("clip-8", "train.global_batch_size=8");
  EXPECT_LT(losses("clip-8").at({1, "loss"}), 0.9 * one.at({1, "loss"}));
}

TEST_F(ClipOutside, AllCommandsKnowIt) {
  trains("clip-resumed", "train.max_steps=3");
  trains("clip-resumed", "");
  trains("clip-straight", "");
  for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
    EXPECT_TRUE(slurp(*dir_ / ("clip-resumed/checkpoints/last/" + file)) ==
                slurp(*dir_ / ("clip-straight/checkpoints/last/" + file)))
        << file;
  for (const std::string& words :
       {std::string("validate clip.yaml"), "plan clip.yaml " + mesh(2, 1), std::string("check clip.yaml")}) {
    const Ran r = command(words);
    EXPECT_EQ(r.code, 0) << words << "\n" << r.said;
  }
  const Ran e = command("evaluate clip.yaml workdir=clip-straight");
  ASSERT_EQ(e.code, 0) << e.said;
  EXPECT_NEAR(Json::parse(e.said.substr(e.said.find('{')))["loss"].get<double>(),
              losses("clip-straight").at({6, "eval_loss"}), 1e-5);
}

}  // namespace
}  // namespace redco::test
