// Commands that use a trained checkpoint: with the workdir alone, with a job file or overrides that
// contradict the checkpoint, and without a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string last_error(const Ran& r) { return r.err.substr(r.err.rfind("error: ") + 7); }

class TrainedModel : public Cli {
 protected:
  // Warnings are one line each.
  void expect_warnings(const Ran& r, int n, const std::vector<std::string>& parts = {}) {
    EXPECT_EQ(lines_with(r.err, "warning: "), n) << r.err;
    for (const auto& p : parts) EXPECT_THAT(r.err, HasSubstr(p));
  }
};

// As in configs/seq2seq/translate.yaml, the file says bytes, but the training uses another tokenizer.
class Translation : public TrainedModel {
 protected:
  void SetUp() override {
    std::string pairs = "en\tde\n", text;
    for (int i = 0; i < 30; ++i) {
      const std::string n = std::to_string(i);
      pairs += "the number " + n + "\tdie zahl " + n + "\n";
      text += "the number " + n + " die zahl " + n + "\n";
    }
    write("pairs.tsv", pairs);
    write("text.txt", text);
    write("job.yaml",
          "pipeline: seq2seq\n"
          "model: {arch: bart, tokenizer: bytes, d_model: 32, encoder_layers: 1, decoder_layers: 1,\n"
          "  encoder_attention_heads: 4, decoder_attention_heads: 4, encoder_ffn_dim: 64, decoder_ffn_dim: "
          "64,\n"
          "  max_position_embeddings: 32}\n"
          "data: {train: pairs.tsv, eval: pairs.tsv, fields: {source: en, target: de}}\n"
          "train: {global_batch_size: 8, max_steps: 60, learning_rate: 1.0e-2, logging_steps: 20}\n"
          "predict: {max_new_tokens: 6}\n"
          "workdir: run\n");
    if (trained_) {
      fs::copy(*trained_ / "run", path("run"), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      fs::copy(*trained_ / "own", path("own"));
      return;
    }
    good({"tokenizer", "train", "text.txt", "--output", "own", "--vocab-size", "300", "--special", "<pad>",
          "</s>"});
    good({"train", "job.yaml", "model.tokenizer=own"});
    trained_ = std::make_unique<TempDir>(TempDir::in_memory);
    fs::copy(path("run"), *trained_ / "run", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::copy(path("own"), *trained_ / "own");
  }
  static void TearDownTestSuite() { trained_.reset(); }
  static inline std::unique_ptr<TempDir> trained_;

  const std::string prompt_ = "predict.prompt=the number 7", tokens_ = "predict.max_new_tokens=6";
};

TEST_F(Translation, TheTokenizerOfTheCheckpointIsUsed) {
  const Ran wanted = good({"predict", "job.yaml", "model.tokenizer=own", prompt_});
  EXPECT_THAT(wanted.out, HasSubstr("die zahl"));
  expect_warnings(wanted, 0);
  // The job file says bytes: one line names both.
  const Ran file = good({"predict", "job.yaml", prompt_});
  EXPECT_EQ(file.out, wanted.out);
  expect_warnings(file, 1, {"model.tokenizer is own, not bytes (job.yaml:2:", "step-00000060"});
  // The workdir alone, on one rank and on two.
  for (const std::string n : {"1", "2"}) {
    const Ran alone = good({"predict", "workdir=run", prompt_, tokens_, "parallel.n_ranks=" + n});
    EXPECT_EQ(alone.out, wanted.out) << n;
    expect_warnings(alone, 0);
  }
  EXPECT_EQ(good({"predict", "predict.checkpoint=run/checkpoints/last", prompt_, tokens_}).out, wanted.out);
  for (const auto& e : fs::directory_iterator(path("run/checkpoints")))  // no lease is left
    EXPECT_THAT(e.path().filename().string(), Not(::testing::StartsWith(".lease")));
  // The same files under another path, and without those of the training.
  fs::rename(path("own"), path("moved"));
  EXPECT_EQ(good({"predict", "workdir=run", prompt_, tokens_}).out, wanted.out);
  const Ran moved = good({"predict", "job.yaml", "model.tokenizer=moved", prompt_});
  EXPECT_EQ(moved.out, wanted.out);
  expect_warnings(moved, 0);
}

TEST_F(Translation, ContradictingOverridesAreErrors) {
  for (const std::string n : {"1", "2"})
    refused({"predict", "job.yaml", "model.tokenizer=bytes", prompt_, "parallel.n_ranks=" + n}, 2,
            {"contradict the checkpoint run/checkpoints/step-00000060",
             "override 'model.tokenizer=bytes': model.tokenizer is bytes, but the checkpoint has own",
             "model.path=run/checkpoints/step-00000060"});
  refused({"predict", "workdir=run", prompt_, "pipeline=lm"}, 2, {"pipeline is lm", "has seq2seq"});
  refused({"evaluate", "job.yaml", "model.tokenizer=own", "model.d_model=64"}, 2,
          {"model.d_model is 64", "has 32"});
  refused({"evaluate", "workdir=run", "data.eval=pairs.tsv", "data.fields.source=de"}, 2,
          {"data.fields.source is de", "has en"});
  refused({"predict", "workdir=run", prompt_, "model.path=elsewhere"}, 2, {"model.path is elsewhere"});
  refused({"predict", "workdir=run", prompt_, "model.random=true"}, 2,
          {"model.random=true", "run/checkpoints"});
  // As weights of any model the checkpoint decides nothing.
  good({"predict", "model.path=run/checkpoints/last", "pipeline=seq2seq", prompt_, tokens_});
}

TEST_F(Translation, EvaluateAndDataTakeColumnsFromTheCheckpoint) {
  const Json wanted = Json::parse(good({"evaluate", "job.yaml"}).out);
  const Ran alone = good({"evaluate", "workdir=run", "data.eval=pairs.tsv"});
  EXPECT_EQ(Json::parse(alone.out), wanted);
  expect_warnings(alone, 0);
  const Json rows = Json::parse(good({"data", "workdir=run", "data.train=pairs.tsv", "--json"}).out);
  EXPECT_THAT(rows["shown"][0]["samples"].dump(), HasSubstr("zahl"));
  EXPECT_LT(rows["longest_row"].get<int>(), 20);  // no bytes
  // The data of the training, which are gone.
  refused({"evaluate", "workdir=run"}, 2, {"training/job.yaml: data.eval[0]: ", "does not exist"});
}

TEST_F(Translation, FromAnotherFolder) {
  const std::string wanted = good({"predict", "workdir=run", prompt_, tokens_}).out;
  fs::create_directory(path("elsewhere"));
  fs::rename(path("run"), path("elsewhere/run"));
  fs::remove_all(path("own"));
  EXPECT_EQ(good({"predict", "workdir=elsewhere/run", prompt_, tokens_}).out, wanted);
}

TEST_F(Translation, ACheckpointWithoutASavedJobSuppliesItsWeightsAlone) {
  fs::copy(path("run/checkpoints/step-00000060"), path("folder"));
  const std::string wanted = good({"predict", "workdir=run", prompt_, tokens_}).out;
  EXPECT_EQ(good({"predict", "pipeline=seq2seq", "predict.checkpoint=./folder", prompt_, tokens_}).out,
            wanted);
  // What the job says holds: bytes are other ids, and it has no say in the tokenizer's place.
  const Ran bytes = good({"predict", "job.yaml", "predict.checkpoint=./folder", prompt_});
  EXPECT_NE(bytes.out, wanted);
  expect_warnings(bytes, 1, {"model.tokenizer=bytes", "is not the tokenizer of ./folder"});
}

TEST_F(Translation, ADamagedSavedJobIsAnError) {
  std::string yaml = read("run/checkpoints/step-00000060/training/job.yaml");
  yaml[yaml.find("bart")] = 'c';
  write("run/checkpoints/step-00000060/training/job.yaml", yaml);
  refused({"predict", "workdir=run", prompt_}, 3, {"training/job.yaml: damaged contents"});
}

TEST_F(TrainedModel, AWorkdirWithoutACheckpointIsAnError) {
  write("text.txt", some_text(40));
  write("job.yaml", kTinyJob);
  const std::string prompt = "predict.prompt=the";
  for (const std::string command : {"predict", "evaluate", "chat"})
    refused({command, "job.yaml", prompt, "data.eval=text.txt"}, 2,
            {"workdir=run (job.yaml:4:10) holds no checkpoint", "run/checkpoints does not exist",
             "redco train", "model.random=true"});
  fs::create_directories(path("run/checkpoints"));
  refused({"predict", "job.yaml", prompt}, 2, {"run/checkpoints has no finished one"});
  refused({"predict", "job.yaml", prompt, "workdir=~"}, 2, {"names no weights", "model.random=true"});
  refused({"predict", "job.yaml", prompt, "--dry-run"}, 2, {"holds no checkpoint"});
  refused({"predict", "job.yaml", prompt, "model.path=" REDCO_FIXTURES "/gpt2"}, 2, {"workdir=null"});
  refused(
      {"predict", "job.yaml", prompt, "workdir=~", "model.random=true", "model.path=" REDCO_FIXTURES "/gpt2"},
      2, {"model.random=true", "model.path", "keep one"});
  EXPECT_FALSE(has("run/log.txt"));
  // Where the job asks for it.
  const Words random = {"predict", "job.yaml", prompt, "model.random=true", "predict.max_new_tokens=3"};
  EXPECT_EQ(good(random).out, good(random).out);
  good({"evaluate", "job.yaml", "data.eval=text.txt", "model.random=true"});
  // Plans and benches need no weights.
  good({"plan", "job.yaml"});
  good({"bench", "job.yaml", "--steps", "1"});
}

TEST_F(TrainedModel, AnAdapterBringsItsBaseAndMayBeMoved) {
  fs::copy(REDCO_FIXTURES "/gpt2", path("base"));
  write("text.txt", some_text(40));
  write("job.yaml",
        "model: {path: base, tokenizer: bytes}\n"
        "data: {train: text.txt, max_length: 32}\n"
        "train: {global_batch_size: 8, max_steps: 4, learning_rate: 0.05, lora: {rank: 2}}\n"
        "workdir: run\n");
  good({"train", "job.yaml"});
  const Words alone = {"predict", "workdir=run", "predict.prompt=the", "predict.max_new_tokens=5"};
  const Words file = {"predict", "job.yaml", "predict.prompt=the", "predict.max_new_tokens=5"};
  const std::string wanted = good(alone).out;
  const Ran with_file = good(file);
  EXPECT_EQ(with_file.out, wanted);
  expect_warnings(with_file, 0);
  const Json evaluated = Json::parse(good({"evaluate", "workdir=run", "data.eval=text.txt"}).out);
  EXPECT_EQ(Json::parse(good({"evaluate", "job.yaml", "data.eval=text.txt"}).out)["loss"], evaluated["loss"]);
  good({"merge", "run", "--output", "merged"});
  EXPECT_EQ(good({"predict", "model.path=merged", "predict.prompt=the", "predict.max_new_tokens=5"}).out,
            wanted);
  // The base was moved: an override names the new folder.
  fs::rename(path("base"), path("moved"));
  const Ran gone = run(alone);
  EXPECT_EQ(gone.code, 2);
  EXPECT_THAT(last_error(gone), HasSubstr("give model.path"));
  Words moved = alone;
  moved.push_back("model.path=moved");
  const Ran r = good(moved);
  EXPECT_EQ(r.out, wanted);
  expect_warnings(r, 0);
  good({"merge", "run", "--base", "moved", "--output", "merged2"});
}

TEST_F(TrainedModel, ChatTakesTheTemplateFromTheCheckpointAndAnOverrideMayChangeIt) {
  write("template.jinja",
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{{ '\\n' }}{% endfor %}");
  write("other.jinja", "{% for m in messages %}{{ m.content }}{{ m.content }}{{ '\\n' }}{% endfor %}");
  write("chats.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}, {\"role\": \"assistant\", \"content\": "
        "\"cd\"}]}\n");
  write("job.yaml",
        "model: {arch: gpt2, tokenizer: bytes, n_layer: 1, n_embd: 16, n_head: 2, n_positions: 32}\n"
        "data: {train: chats.jsonl, chat_template: template.jinja}\n"
        "train: {global_batch_size: 1, max_steps: 10, learning_rate: 1.0e-2}\n"
        "predict: {max_new_tokens: 4}\n"
        "workdir: run\n");
  good({"train", "job.yaml"});
  const std::string tokens = "predict.max_new_tokens=4";
  const std::string wanted = good({"chat", "job.yaml"}, {}, "ab\n").out;
  fs::rename(path("template.jinja"), path("renamed.jinja"));
  EXPECT_EQ(good({"chat", "workdir=run", tokens}, {}, "ab\n").out, wanted);
  const Ran same = good({"chat", "job.yaml", "data.chat_template=renamed.jinja"}, {}, "ab\n");
  EXPECT_EQ(same.out, wanted);
  expect_warnings(same, 0);
  good({"chat", "workdir=run", tokens, "data.chat_template=other.jinja"}, {}, "ab\n");
  const Json shown = Json::parse(
      good({"data", "workdir=run", "data.train=chats.jsonl", "data.chat_template=other.jinja", "--json"})
          .out);
  EXPECT_THAT(shown["shown"][0]["samples"][0]["tokens"].dump(), HasSubstr("\"a\",\"b\",\"a\",\"b\""));
  write("job.yaml", "data: {chat_template: other.jinja}\nworkdir: run\n");
  const Ran file = good({"chat", "job.yaml", tokens}, {}, "ab\n");
  EXPECT_EQ(file.out, wanted);
  expect_warnings(file, 1, {"data.chat_template is template.jinja, not other.jinja"});
}

TEST_F(TrainedModel, LabelsAndColumnsOfAClassificationComeFromTheCheckpoint) {
  write("a.tsv", "what\tmood\nfine day\thappy\nbad day\tsad\nfine song\thappy\nbad song\tsad\n");
  write("job.yaml",
        "pipeline: classification\n"
        "model: {arch: bert, tokenizer: " REDCO_FIXTURES
        "/tokenizers/bert, hidden_size: 16, num_hidden_layers: 1,\n"
        "  num_attention_heads: 2, intermediate_size: 16, max_position_embeddings: 32}\n"
        "data: {train: a.tsv, fields: {text: what, label: mood}}\n"
        "train: {global_batch_size: 4, max_steps: 30, learning_rate: 1.0e-2}\n"
        "workdir: run\n");
  good({"train", "job.yaml"});
  write("in.jsonl", "{\"what\": \"fine day\"}\n{\"what\": \"bad song\"}\n");
  const Ran r = good({"predict", "workdir=run", "predict.input=in.jsonl"});
  EXPECT_EQ(r.out, good({"predict", "job.yaml", "predict.input=in.jsonl"}).out);
  EXPECT_THAT(r.out, AllOf(HasSubstr("happy"), HasSubstr("sad")));
  const Json e = Json::parse(good({"evaluate", "workdir=run", "data.eval=a.tsv"}).out);
  EXPECT_TRUE(e.contains("accuracy")) << e;
}

TEST_F(TrainedModel, AfterASignalTheMessageCountsTheAnswersInTheFile) {
  write("text.txt", some_text(40));
  write("job.yaml", kTinyJob);
  good({"train", "job.yaml", "train.max_steps=1"});
  std::string prompts;
  for (int i = 0; i < 4000; ++i) prompts += "{\"prompt\": \"the\"}\n";
  write("in.jsonl", prompts);
  const Words words = {"predict", "workdir=run", "predict.input=in.jsonl", "predict.output=out.jsonl",
                       "predict.max_new_tokens=25"};
  for (const std::string n : {"1", "2"}) {
    fs::remove(path("out.jsonl"));
    Words w = words;
    w.push_back("parallel.n_ranks=" + n);
    const pid_t pid = start(w);
    ASSERT_TRUE(until([&] { return has("out.jsonl") && fs::file_size(path("out.jsonl")) > 0; }))
        << read("stderr");
    kill(pid, SIGTERM);
    const Ran r = wait(pid);
    EXPECT_EQ(r.code, 8) << r.err;
    const std::string text = read("out.jsonl");
    const auto kept = std::count(text.begin(), text.end(), '\n');
    EXPECT_GT(kept, 0);
    EXPECT_THAT(
        r.err, ::testing::ContainsRegex("stopped by SIGTERM; out.jsonl holds [0-9]+ of 4000 predictions; the "
                                        "same command continues"));
  }
}

}  // namespace
}  // namespace redco::test
