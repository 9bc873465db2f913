// The shipped algorithms (dpo, distillation, grpo, contrastive), as the program runs them: the same
// losses on every mesh and for any micro-batch, and a resumed run equals an uninterrupted one.
#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using AlgorithmJson = nlohmann::json;

struct AlgorithmJob {
  std::string name;   // shipped, and the name of the test
  std::string start;  // a shipped job of lm that makes the other model, or the first one; "": none
  std::vector<std::string> words;
  std::vector<std::string> models = {};  // folders of a checkpoint's further weights
};

class Algorithms : public Cli, public testing::WithParamInterface<AlgorithmJob> {
 protected:
  static std::string job_file(const std::string& job) { return REDCO_SOURCE_DIR "/configs/" + job + ".yaml"; }
  void SetUp() override {
    if (!GetParam().start.empty())
      good({"train", job_file(GetParam().start), "train.max_steps=30", "train.logging_steps=30",
            "parallel.threads_per_rank=1", "workdir=start"});
  }
  void trains(const std::string& workdir, const Words& more) {
    Words w = {"train", job_file(GetParam().name), "workdir=" + workdir, "train.logging_steps=1",
               "parallel.threads_per_rank=1"};
    const auto key = [](const std::string& word) { return word.substr(0, word.find('=')); };
    for (const std::string& word : GetParam().words)  // `more` replaces them
      if (std::ranges::none_of(more, [&](const std::string& m) { return key(m) == key(word); }))
        w.push_back(word);
    w.insert(w.end(), more.begin(), more.end());
    good(w);
  }
  // {step, name} -> value, without times and memory.
  std::map<std::pair<int, std::string>, double> numbers(const std::string& workdir) {
    std::map<std::pair<int, std::string>, double> out;
    std::istringstream lines(read(workdir + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const AlgorithmJson j = AlgorithmJson::parse(line);
      for (const auto& [name, value] : j.items())
        for (const std::string part : {"loss", "accuracy", "margin", "reward", "kl", "entropy", "clipped"})
          if (name.find(part) != std::string::npos) out[{j["step"], name}] = value;
    }
    return out;
  }
};

TEST_P(Algorithms, EqualOnEveryMesh) {
  trains("one", {"train.max_steps=4"});
  const auto one = numbers("one");
  ASSERT_EQ(one.count({4, "loss"}), 1u);
  const std::map<std::string, Words> others = {
      {"2x1", {"parallel.n_ranks=2", "parallel.n_model_shards=1"}},
      {"1x2", {"parallel.n_ranks=2", "parallel.n_model_shards=2"}},
      {"zero3", {"parallel.n_ranks=2", "parallel.n_model_shards=1", "parallel.shard_parameters=true"}},
      {"accumulated", {"train.per_device_batch_size=3"}}};
  for (const auto& [what, words] : others) {
    Words w = {"train.max_steps=4"};
    w.insert(w.end(), words.begin(), words.end());
    trains(what, w);
    const auto other = numbers(what);
    ASSERT_EQ(other.size(), one.size()) << what;
    // Sums in another order: about 1e-6 of a term of order 1. The losses of grpo are such sums near 0.
    for (const auto& [key, value] : one)
      EXPECT_NEAR(other.at(key), value, 1e-4 * std::abs(value) + 2e-6)
          << what << ", step " << key.first << ", " << key.second;
  }
}

TEST_P(Algorithms, AResumedRunEqualsAnUninterruptedOne) {
  // A schedule over all steps would differ.
  const auto steps = [](int n) {
    return Words{"train.max_steps=" + std::to_string(n), "train.schedule=constant", "train.warmup_ratio=0"};
  };
  trains("straight", steps(5));
  trains("resumed", steps(3));
  trains("resumed", steps(5));
  std::vector<std::string> files = {"model.safetensors", "training/optimizer.safetensors",
                                    "training/state.json"};
  for (const std::string& folder : GetParam().models) files.push_back(folder + "/model.safetensors");
  // No further weights are saved.
  std::size_t saved = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::filesystem::canonical(dir_ / "resumed/checkpoints/last")))
    saved += entry.path().extension() == ".safetensors";
  EXPECT_EQ(saved + 1, files.size());
  for (const std::string& file : files)
    EXPECT_TRUE(read("straight/checkpoints/last/" + file) == read("resumed/checkpoints/last/" + file))
        << file;
}

// An epoch of one step: each checkpoint is at an epoch's end, so the resumed run makes the next rollouts.
TEST_F(Cli, RolloutsResumeAtTheEndOfAnEpoch) {
  write("t.jsonl",
        "{\"prompt\": \"ab\", \"completion\": \"1\"}\n{\"prompt\": \"cd\", \"completion\": \"2\"}\n");
  write("job.yaml",
        "pipeline: grpo\n"
        "model: {arch: gpt2, tokenizer: bytes, n_embd: 16, n_layer: 1, n_head: 2, n_positions: 40}\n"
        "data: {train: t.jsonl}\n"
        "grpo: {reward: contains, max_new_tokens: 6, num_generations: 4, prompts_per_epoch: 2,\n"
        "  dynamic_sampling_rounds: 2, soft_punish_cache: 6}\n"
        "train: {global_batch_size: 8, schedule: constant, warmup_ratio: 0}\n"
        "parallel: {threads_per_rank: 1}\n");
  good({"train", "job.yaml", "train.max_steps=3", "workdir=straight"});
  good({"train", "job.yaml", "train.max_steps=1", "workdir=resumed"});
  good({"train", "job.yaml", "train.max_steps=3", "workdir=resumed"});
  for (const std::string file : {"model.safetensors", "training/state.json"})
    EXPECT_TRUE(read("straight/checkpoints/last/" + file) == read("resumed/checkpoints/last/" + file))
        << file;
  // No answer of a random model is right, so both groups are replaced twice; most answers are too long.
  const std::string metrics = read("straight/metrics.jsonl");
  EXPECT_THAT(metrics, HasSubstr("\"resampled_groups\":4"));
  EXPECT_THAT(metrics, HasSubstr("\"overlong_penalty\":-"));
}

// The text model of `models:` has the tokenizer.
TEST_F(Cli, DataOfANamedModelsTokenizerAreShownAndBuilt) {
  const std::string job = REDCO_SOURCE_DIR "/configs/contrastive/shapes.yaml";
  EXPECT_NE(good({"data", job}).out.find("4000 images with captions"), std::string::npos);
  good({"data", "build", job, "data.cache=cache"});
}

// A checkpoint is a folder of sentence-transformers. A stopped embed continues, and ends with a matrix.
TEST_F(Cli, EmbeddingsBecomeAMatrix) {
  const std::string job = REDCO_SOURCE_DIR "/configs/embedding/paraphrases.yaml";
  good({"train", job, "train.max_steps=1", "train.global_batch_size=4", "train.per_device_batch_size=4",
        "eval.every_n_epochs=~", "eval.metrics=[loss]", "checkpoint.save_best_by=~",
        "parallel.threads_per_rank=1", "embedding.pooling=cls", "workdir=run"});
  EXPECT_THAT(read("run/checkpoints/last/1_Pooling/config.json"),
              HasSubstr("\"pooling_mode_cls_token\": true"));
  std::string texts;
  for (int i = 0; i < 5; ++i) texts += "{\"text\": \"text " + std::to_string(i) + "\"}\n";
  spill(dir_ / "texts.jsonl", texts);
  const Words words = {"embed", "workdir=run", "predict.input=texts.jsonl", "predict.output=e.npy",
                       "parallel.threads_per_rank=1"};
  good(words);
  EXPECT_EQ(read("e.npy").size(), 128 + 5 * 64 * sizeof(float));
  const Ran again = run(words);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("e.npy exists. predict.overwrite=true replaces it"));
  const AlgorithmJson one = AlgorithmJson::parse(
      good({"embed", "model.path=run/checkpoints/last", "--prompt", "text 3", "parallel.threads_per_rank=1"})
          .out);
  const std::string matrix = read("e.npy");
  float first = 0;
  std::memcpy(&first, matrix.data() + 128 + 3 * 64 * sizeof(float), sizeof first);
  EXPECT_NEAR(one.at("embedding").at(0).get<float>(), first, 1e-6);
  EXPECT_THAT(run({"embed", REDCO_SOURCE_DIR "/configs/lm/markov.yaml", "--prompt", "a"}).err,
              HasSubstr("redco embed needs pipeline: embedding"));
}

// Embeddings are not a text that follows the prompt.
TEST_F(Cli, AnAnswerWithoutATextIsPrintedAsJson) {
  const std::string job = REDCO_SOURCE_DIR "/configs/contrastive/shapes.yaml";
  good({"train", job, "train.max_steps=1", "train.global_batch_size=4", "train.per_device_batch_size=4",
        "eval.every_n_epochs=~", "eval.metrics=[loss]", "checkpoint.save_best_by=~",
        "parallel.threads_per_rank=1", "workdir=towers"});
  const AlgorithmJson answer =
      AlgorithmJson::parse(good({"predict", job, "workdir=towers", "predict.prompt=a red circle"}).out);
  EXPECT_EQ(answer.at("text_embedding").size(), 64u);
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, Algorithms,
    testing::Values(
        AlgorithmJob{"dpo/preferences", "", {"train.global_batch_size=8", "eval.every_n_epochs=~"}},
        AlgorithmJob{"distillation/markov",
                     "lm/markov",
                     {"train.global_batch_size=8", "eval.every_n_epochs=~",
                      "models.teacher={path: start/checkpoints/last}"}},
        AlgorithmJob{
            "contrastive/shapes",
            "",
            {"train.global_batch_size=8", "train.per_device_batch_size=4", "eval.every_n_epochs=~",
             "eval.metrics=[loss]", "checkpoint.save_best_by=~", "models.text.hidden_dropout_prob=0.1"},
            {"models/text", "models/extra"}},
        AlgorithmJob{"embedding/paraphrases",
                     "",
                     {"train.global_batch_size=8", "train.per_device_batch_size=4", "eval.every_n_epochs=~",
                      "eval.metrics=[loss]", "checkpoint.save_best_by=~", "model.hidden_dropout_prob=0.1"}},
        // Two steps an epoch: the third begins inside of one.
        AlgorithmJob{"grpo/arithmetic",
                     "grpo/warm_start",
                     {"model.path=start/checkpoints/last", "grpo.prompts_per_epoch=8",
                      "train.global_batch_size=32", "train.n_epochs=~", "eval.every_n_epochs=~",
                      "grpo.beta=0.1", "models.reference={path: start/checkpoints/last}",
                      "grpo.dynamic_sampling_rounds=1", "grpo.soft_punish_cache=2"}}),
    [](const auto& info) { return info.param.name.substr(0, info.param.name.find('/')); });

}  // namespace
}  // namespace redco::test
