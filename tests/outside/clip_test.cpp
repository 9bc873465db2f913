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

// `redco data`: the examples of open(), source() and evaluation().
TEST_F(ClipOutside, DataShowsTheExamplesOfThePipeline) {
  const auto shows = [](const std::string& words, const std::vector<std::string>& texts) {
    const Ran r = command("data " + words);
    EXPECT_EQ(r.code, 0) << words << r.said;
    for (const std::string& text : texts) EXPECT_THAT(r.said, HasSubstr(text)) << words;
  };
  shows("clip.yaml --show 2", {"row 1 of 40\n  a: 6 values: -1 ", "  b: 6 values: ", "row 2 of 40",
                               "the batch that collate() makes of 2 rows\n  a: f32 (2, 6)\n  b: f32 (2, 6)\n"
                               "  weight of the term loss: 2\n"});
  const Ran json = command("data clip.yaml --show 2 --json 2>/dev/null");
  ASSERT_EQ(json.code, 0) << json.said;
  const Json j = Json::parse(json.said);
  EXPECT_EQ(j["rows"], 40);
  EXPECT_EQ(j["shown"][1]["values"]["a"].size(), 6u);
  EXPECT_EQ(j["batch"]["fields"]["b"], "f32 (2, 6)");
  shows("job.yaml pipeline=./so/maml.so", {"row 1 of 20", "query_x: 6 values: ", "query_x: f32 (3, 6, 1)"});
  shows("job.yaml pipeline=./so/maml.so --split eval", {"row 1 of 5"});
  shows("job.yaml pipeline=./so/actor_critic.so train.global_batch_size=8", {"row 1 of 32"});
  shows("job.yaml pipeline=./so/layout.so model.tokenizer=bytes",
        {"rows of 1 to 4 ids",
         "row 2 of 12\n  point: 2 ids: 1 1\n    '\\x01\\x01'\n  here: 4 values: 1 1 0 0\n"});
  shows(
      "job.yaml pipeline=./so/zloss/zloss.so model.arch=gpt2 model.n_layer=1 model.n_head=2 model.n_embd=16 "
      "model.tokenizer=bytes data.train=views.jsonl data.format=text data.max_length=16",
      {"the loss counts the tokens in [brackets]"});
  const Ran none = command("data job.yaml pipeline=./so/layout.so --split eval");
  EXPECT_EQ(none.code, 2) << none.said;
  EXPECT_THAT(none.said, HasSubstr("data.eval is missing"));
}

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
