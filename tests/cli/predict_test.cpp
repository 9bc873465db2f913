// Prompts in, answers out: from a checkpoint, from a folder, on every mesh.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using nlohmann::json;

class Predict : public Cli {
 protected:
  void SetUp() override {
    write("text.txt", some_text(120));
    write("job.yaml", kTinyJob);
    good({"train", "job.yaml", "train.learning_rate=1e-2", "train.max_steps=40"});
  }
};

TEST_F(Predict, GreedyIsTheSameOnEveryMesh) {
  write("prompts.jsonl",
        "{\"id\": \"first\", \"prompt\": \"the quick\"}\n"
        "{\"prompt\": \"a\"}\n\n"
        "{\"id\": {\"n\": 3}, \"prompt\": \"over a lazy\", \"more\": 1}\n"
        "{\"id\": 4, \"prompt\": \"\"}\n"
        "{\"id\": 5, \"prompt\": \"jumps over a\"}\n");
  std::string one;
  for (const auto& [dp, mp] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}}) {
    const Ran r = good({"predict", "job.yaml", "predict.input=prompts.jsonl", "predict.max_new_tokens=12",
                        "predict.batch_size=2", "parallel.n_model_shards=" + std::to_string(mp),
                        "parallel.n_ranks=" + std::to_string(dp * mp)});
    if (one.empty()) one = r.out;
    EXPECT_EQ(r.out, one) << dp << " x " << mp;
  }
  std::vector<json> lines;
  std::istringstream in(one);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0]["id"], "first");
  EXPECT_EQ(lines[1]["id"], 1);  // its place, where none is given
  EXPECT_EQ(lines[2]["id"], json({{"n", 3}}));
  EXPECT_EQ(lines[4]["id"], 5);
  EXPECT_EQ(lines[0]["prompt"], "the quick");
  EXPECT_EQ(lines[0]["ids"].size(), 12u);
  // It has learnt letters and blanks.
  EXPECT_THAT(lines[4]["prediction"].get<std::string>(), testing::MatchesRegex("[a-z \n]+"));
  // To a file, whole; nothing on the terminal.
  const Ran r = good({"predict", "job.yaml", "predict.input=prompts.jsonl", "predict.max_new_tokens=12",
                      "predict.output=out.jsonl"});
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(read("out.jsonl"), one);
}

TEST_F(Predict, PromptsOnTheCommandLineAndSampling) {
  const Words words = {"predict", "job.yaml", "predict.prompt=[the, over a]", "predict.max_new_tokens=8"};
  const Ran r = good(words);
  EXPECT_THAT(r.out, AllOf(testing::StartsWith("the"), HasSubstr("\nover a")));
  Words drawn = words;
  drawn.insert(drawn.end(), {"predict.temperature=1", "predict.seed=1"});
  const std::string a = good(drawn).out;
  EXPECT_EQ(a, good(drawn).out);
  drawn.push_back("parallel.n_ranks=2");
  EXPECT_EQ(a, good(drawn).out);  // draws are named by prompt, not by rank
  drawn.back() = "predict.seed=2";
  drawn.erase(drawn.end() - 2);
  EXPECT_NE(a, good(drawn).out);
}

TEST_F(Predict, WhichWeights) {
  const Words prompt = {"predict.prompt=the", "predict.max_new_tokens=6"};
  const auto with = [&](Words words) {
    words.insert(words.begin(), "predict");
    words.insert(words.end(), prompt.begin(), prompt.end());
    return words;
  };
  const std::string last = good(with({"job.yaml"})).out;
  EXPECT_EQ(good(with({"job.yaml", "predict.checkpoint=last"})).out, last);
  EXPECT_EQ(good(with({"job.yaml", "predict.checkpoint=run/checkpoints/step-00000040"})).out, last);
  // A checkpoint is a model folder like any other.
  EXPECT_EQ(good(with({"model.path=run/checkpoints/last", "model.tokenizer=bytes"})).out, last);
  EXPECT_THAT(good(with({"job.yaml", "workdir=other"})).err, HasSubstr("the weights are random"));
  refused(with({"job.yaml", "predict.checkpoint=best-loss"}), 2, {"best-loss"});
  refused(with({"job.yaml", "predict.checkpoint=nowhere/else"}), 2, {"nowhere/else"});
}

TEST_F(Predict, BadPrompts) {
  const Words words = {"predict", "job.yaml", "predict.input=in.jsonl"};
  const auto in = [&](const std::string& text, int code, const std::vector<std::string>& parts) {
    write("in.jsonl", text);
    refused(words, code, parts);
  };
  in("{\"prompt\": \"a\"}\n{\"prompt\": \"b\"\n", 3, {"in.jsonl:2", "not a JSON object"});
  in("{\"text\": \"a\"}\n", 3, {"in.jsonl:1", "\"prompt\""});
  in("{\"prompt\": 1}\n", 3, {"in.jsonl:1", "\"prompt\""});
  in("\n\n", 3, {"in.jsonl", "no prompt"});
  in("{\"prompt\": \"" + std::string(40, 'x') + "\"}\n", 3, {"40 tokens", "32 positions"});
  refused({"predict", "job.yaml"}, 2, {"prompt or input"});
  refused({"predict", "job.yaml", "predict.input=nowhere.jsonl"}, 2, {"nowhere.jsonl"});
  refused({"predict", "job.yaml", "predict.prompt=a", "predict.top_k=3"}, 2,
          {"predict.top_k=3", "no effect"});
}

}  // namespace
}  // namespace redco::test
