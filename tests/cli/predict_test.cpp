// Answers to prompts: from a checkpoint, from a folder, on every mesh.
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
    // Trained once for all tests.
    namespace fs = std::filesystem;
    const auto how = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
    if (trained_) {
      fs::copy(*trained_ / "run", path("run"), how);
      return;
    }
    good({"train", "job.yaml", "train.learning_rate=1e-2", "train.max_steps=40"});
    trained_ = std::make_unique<TempDir>(TempDir::in_memory);
    fs::copy(path("run"), *trained_ / "run", how);
  }
  static void TearDownTestSuite() { trained_.reset(); }
  static inline std::unique_ptr<TempDir> trained_;
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
  EXPECT_THAT(lines[4]["prediction"].get<std::string>(), ::testing::MatchesRegex("[a-z \n]+"));
  // To a file, whole; nothing on the terminal.
  const Ran r = good({"predict", "job.yaml", "predict.input=prompts.jsonl", "predict.max_new_tokens=12",
                      "predict.output=out.jsonl"});
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(read("out.jsonl"), one);
}

TEST_F(Predict, PromptsOnTheCommandLineAndSampling) {
  const Words words = {
      "predict", "job.yaml", "--prompt", "the", "--prompt", "over a", "predict.max_new_tokens=8"};
  const Ran r = good(words);
  EXPECT_THAT(r.out, AllOf(::testing::StartsWith("the"), HasSubstr("\nover a")));
  Words drawn = words;
  drawn.insert(drawn.end(), {"predict.temperature=1", "predict.seed=1"});
  const std::string a = good(drawn).out;
  EXPECT_EQ(a, good(drawn).out);
  drawn.push_back("parallel.n_ranks=2");
  EXPECT_EQ(a, good(drawn).out);  // the random draws depend on the prompt, not on the rank
  drawn.back() = "predict.seed=2";
  drawn.erase(drawn.end() - 2);
  EXPECT_NE(a, good(drawn).out);
}

TEST_F(Predict, PromptsArriveAsTyped) {
  const auto answer = [&](Words words, const std::string& input = "") {
    words.insert(words.begin(), {"predict", "job.yaml", "predict.max_new_tokens=1", "predict.output=o.jsonl",
                                 "predict.overwrite=true"});
    good(words, {}, input);
    std::vector<std::string> prompts;
    std::istringstream lines(read("o.jsonl"));
    for (std::string line; std::getline(lines, line);) prompts.push_back(json::parse(line)["prompt"]);
    return prompts;
  };
  const std::vector<std::string> all = {"ROMEO: ", "[INST] hi", "[a]", "# Title",  "C #1 hits",
                                        "- x",     "-x",        "--",  "~",        "null",
                                        "123",     "  both  ",  "a=b", "'a' \"b\""};
  Words options;
  for (const std::string& typed : all) {
    options.insert(options.end(), {"--prompt", typed});
    EXPECT_EQ(answer({"predict.prompt=" + typed}), std::vector{typed});
  }
  EXPECT_EQ(answer(options), all);
  write("two.txt", "first\nsecond\n");
  EXPECT_EQ(answer({"--prompt", "a", "--prompt-file", "two.txt", "--prompt", "b"}),
            (std::vector<std::string>{"a", "b", "first\nsecond\n"}));
  EXPECT_EQ(answer({"--prompt-file", "-"}, "from input\n"), std::vector<std::string>{"from input\n"});
  EXPECT_EQ(answer({"--prompt-file", "-", "parallel.n_ranks=2"}, "x: #"), std::vector<std::string>{"x: #"});
  refused({"predict", "job.yaml", "--prompt", "a", "predict.prompt=b"}, 2, {"--prompt", "keep one"});
  write("empty.txt", "");
  refused({"predict", "job.yaml", "--prompt-file", "empty.txt"}, 3, {"empty.txt is empty"});
  write("latin.txt", "caf\xe9");
  refused({"predict", "job.yaml", "--prompt-file", "latin.txt"}, 3, {"latin.txt", "0xe9", "UTF-8"});
  // Longer than a file's name may be.
  refused({"predict", "job.yaml", "predict.prompt=" + std::string(5000, 'x')}, 3, {"5000 tokens"});
}

// The launcher expands paths and reads included files; ranks get the result.
TEST_F(Predict, RanksReadExpandedPaths) {
  std::filesystem::create_directory(path("data"));
  write("data/a.jsonl", "{\"prompt\": \"the\"}\n");
  write("include.yaml", "include: job.yaml\npredict: {input: $REDCO_DATA/a.jsonl, output: ~/out.jsonl}\n");
  good({"predict", "include.yaml", "parallel.n_ranks=2", "predict.max_new_tokens=1"},
       {{"REDCO_DATA", path("data")}, {"HOME", path("data")}});
  EXPECT_TRUE(has("data/out.jsonl"));
  EXPECT_FALSE(has("~"));
}

TEST_F(Predict, UsesTheWeightsThatTheJobNames) {
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
  refused(with({"job.yaml", "workdir=other"}), 2, {"workdir=other", "holds no checkpoint"});
  EXPECT_NE(good(with({"job.yaml", "workdir=other", "model.random=true"})).out, last);
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
  in("{\"question\": \"a\"}\n", 3, {"in.jsonl:1", "\"prompt\""});
  in("{\"text\": \"a\", \"prompt\": \"b\"}\n", 3, {"in.jsonl:1", "\"text\"", "which"});
  in("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n", 2, {"in.jsonl:1", "chat template"});
  in("{\"prompt\": 1}\n", 3, {"in.jsonl:1", "\"prompt\""});
  in("\n\n", 3, {"in.jsonl", "no prompt"});
  in("{\"prompt\": \"" + std::string(40, 'x') + "\"}\n", 3, {"40 tokens", "32 positions"});
  refused({"predict", "job.yaml"}, 2, {"predict.prompt or predict.input"});
  refused({"predict", "job.yaml", "predict.input=nowhere.jsonl"}, 2, {"nowhere.jsonl"});
  refused({"predict", "job.yaml", "predict.prompt=a", "predict.top_k=3"}, 2,
          {"predict.top_k=3", "no effect"});
}

// The lines of an output.
std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST_F(Predict, AStoppedRunResumesAtTheEndOfItsFile) {
  std::string prompts;
  for (const char* p : {"the", "a", "over", "quick", "fox and", "lazy"})
    prompts += "{\"id\": \"" + std::string(p) + "\", \"text\": \"" + p + "\"}\n";
  write("in.jsonl", prompts);
  const auto words = [](const std::string& out, Words more = {}) {
    Words w = {"predict",
               "job.yaml",
               "predict.input=in.jsonl",
               "predict.max_new_tokens=5",
               "predict.batch_size=2",
               "predict.output=" + out};
    w.insert(w.end(), more.begin(), more.end());
    return w;
  };
  good(words("all.jsonl"));
  const std::string all = read("all.jsonl");
  ASSERT_EQ(lines_of(all).size(), 6u);
  for (const std::size_t bytes : {all.size() / 2, std::size_t{3}, std::size_t{0}, all.find('\n') + 1}) {
    good(words("some.jsonl"));
    write("some.jsonl", all.substr(0, bytes));
    good(words("some.jsonl", {"parallel.n_ranks=2"}));  // on another mesh
    EXPECT_EQ(read("some.jsonl"), all) << bytes;
  }
  EXPECT_THAT(good(words("all.jsonl")).err, HasSubstr("already"));
  // More prompts than before: the new ones are answered.
  write("in.jsonl", prompts + "{\"id\": 7, \"prompt\": \"dog\"}\n");
  good(words("all.jsonl"));
  EXPECT_EQ(read("all.jsonl").substr(0, all.size()), all);
  EXPECT_EQ(lines_of(read("all.jsonl"))[6]["id"], 7);
  // A run with other settings is refused, unless it may overwrite the file.
  refused(words("all.jsonl", {"predict.num_beams=2"}), 2, {"predict.num_beams was 1, is 2", "overwrite"});
  refused(words("all.jsonl", {"predict.checkpoint=run/checkpoints/step-00000020"}), 2, {});
  write("in.jsonl", "{\"id\": 0, \"prompt\": \"fox\"}\n" + prompts + prompts);
  refused(words("all.jsonl"), 2, {"all.jsonl:1", "prompt 1 of in.jsonl"});
  write("in.jsonl", "{\"prompt\": \"fox\"}\n");
  refused(words("all.jsonl"), 2, {"7 lines, more than the 1 prompts"});
  good(words("all.jsonl", {"predict.overwrite=true"}));
  EXPECT_EQ(lines_of(read("all.jsonl")).size(), 1u);
  write("foreign.jsonl", "mine\n");
  refused(words("foreign.jsonl"), 2, {"foreign.jsonl", "overwrite"});
  EXPECT_EQ(read("foreign.jsonl"), "mine\n");
  refused(words("in.jsonl", {"predict.overwrite=true"}), 2, {"predict.output is predict.input"});
}

TEST_F(Predict, BeamsSamplesStopsAndBadLines) {
  write("in.jsonl", "{\"prompt\": \"the\"}\nnonsense\n{\"prompt\": \"a lazy\"}\n{\"prompt\": 5}\n");
  const auto answers = [&](Words more) {
    Words w = {"predict", "job.yaml", "predict.input=in.jsonl", "predict.skip_bad=true",
               "predict.max_new_tokens=12"};
    w.insert(w.end(), more.begin(), more.end());
    const Ran r = good(w);
    EXPECT_THAT(r.err, AllOf(HasSubstr("2 lines"), HasSubstr("in.jsonl:2")));
    return lines_of(r.out);
  };
  auto lines =
      answers({"predict.num_beams=3", "predict.num_return_sequences=2", "predict.early_stopping=true"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["id"], 2);  // its place in the file
  EXPECT_EQ(lines[0]["prediction"].size(), 2u);
  EXPECT_GE(lines[0]["score"][0], lines[0]["score"][1]);
  EXPECT_EQ(lines[0]["finish_reason"][0], "length");
  lines = answers({"predict.temperature=1", "predict.num_return_sequences=4", "predict.min_p=0.05"});
  EXPECT_EQ(lines[0]["prediction"].size(), 4u);
  EXPECT_NE(lines[0]["prediction"][0], lines[0]["prediction"][1]);
  lines = answers({"predict.stop= "});
  EXPECT_EQ(lines[0]["finish_reason"], "stop");
  EXPECT_THAT(lines[0]["prediction"].get<std::string>(), Not(HasSubstr(" ")));
  // What is printed for one prompt is the same text, piece by piece.
  const Ran r = good({"predict", "job.yaml", "predict.prompt=the", "predict.max_new_tokens=12"});
  EXPECT_EQ(r.out, "the" + answers({})[0]["prediction"].get<std::string>() + "\n");
  const Ran plan = good({"predict", "job.yaml", "predict.input=in.jsonl", "predict.skip_bad=true",
                         "--dry-run", "parallel.n_model_shards=2", "predict.num_beams=2"});
  EXPECT_THAT(plan.out,
              AllOf(HasSubstr("2 prompts (2 bad lines left out)"), HasSubstr("longest prompt has 6"),
                    HasSubstr("up to 32"), HasSubstr("dp 1 x mp 2, 4 rows"), HasSubstr("fits")));
  // On one rank all 34720 weights, once, and a cache of 2 layers x k and v x 2 rows x 32 positions x 32.
  const Ran alone = good({"predict", "job.yaml", "predict.input=in.jsonl", "predict.skip_bad=true",
                          "--dry-run", "predict.num_beams=1"});
  EXPECT_THAT(alone.out,
              AllOf(::testing::ContainsRegex("weights +136 KiB"), ::testing::ContainsRegex("cache +32.0 KiB"),
                    Not(::testing::ContainsRegex("activations +0 B"))));
  refused({"predict", "job.yaml", "predict.prompt=a", "predict.num_beams=2", "predict.temperature=1"}, 2,
          {"predict.num_beams=2", "keep one"});
  refused(
      {"predict", "job.yaml", "predict.prompt=a", "predict.num_beams=2", "predict.num_return_sequences=3"}, 2,
      {"more than"});
}

TEST_F(Predict, LongPromptsAreTruncatedAtTheBeginning) {
  const std::string longest = "{\"prompt\": \"" + std::string(40, 'x') + "\"}\n";
  write("in.jsonl", longest + "{\"prompt\": \"" + std::string(22, 'x') + "\"}\n");
  const auto lines = lines_of(good({"predict", "job.yaml", "predict.input=in.jsonl",
                                    "predict.truncate_prompt=left", "predict.max_new_tokens=10"})
                                  .out);
  EXPECT_EQ(lines[0]["ids"], lines[1]["ids"]);  // 22 of 32 positions are left for it
  EXPECT_EQ(lines[0]["ids"].size(), 10u);
  EXPECT_EQ(lines[0]["prompt"].get<std::string>().size(), 40u);
}

class Chat : public Predict {
 protected:
  void SetUp() override {
    Predict::SetUp();
    std::filesystem::copy(path("run/checkpoints/last"), path("model"),
                          std::filesystem::copy_options::recursive);
    write("model/chat_template.jinja",
          "{% for m in messages %}{% if m.role == 'system' %}[{{ m.content }}]{% else %}{{ m.content }}"
          "{{ '\n' }}{% endif %}{% endfor %}");
  }
  // No token occurs twice, so that answers are not all blanks.
  const Words chat_ = {"chat", "model.path=model", "predict.max_new_tokens=4",
                       "predict.no_repeat_ngram_size=1"};
  Words with(Words more) const {
    Words w = chat_;
    w.insert(w.end(), more.begin(), more.end());
    return w;
  }
};

TEST_F(Chat, EachLineIsAMessage) {
  const std::string two = good(chat_, {}, "the\n\nover\n").out;
  const auto first_end = two.find('\n', 0);
  ASSERT_NE(first_end, std::string::npos);
  // The answer equals that to the rendered conversation.
  write("in.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"the\"}]}\n");
  const Words predict = {"predict", "model.path=model", "predict.max_new_tokens=4",
                         "predict.no_repeat_ngram_size=1", "predict.input=in.jsonl"};
  const auto first = lines_of(good(predict).out)[0];
  EXPECT_EQ(first["messages"][0]["content"], "the");
  const std::string answer = first["prediction"];
  write("in.jsonl", json{{"messages",
                          {{{"role", "user"}, {"content", "the"}},
                           {{"role", "assistant"}, {"content", answer}},
                           {{"role", "user"}, {"content", "over"}}}}}
                            .dump() +
                        "\n");
  const std::string second = lines_of(good(predict).out)[0]["prediction"];
  EXPECT_EQ(two, answer + "\n" + second + "\n");
  // Commands are not messages, except for lines that begin with a space. An answer that is cut off is named.
  const Ran help = good(chat_, {}, "/help\n/rest\nthe\n");
  EXPECT_EQ(help.out, answer + "\n");
  EXPECT_THAT(help.err, AllOf(HasSubstr("/reset clears"), HasSubstr("no command /rest;"),
                              HasSubstr("cut off at predict.max_new_tokens=4")));
  EXPECT_NE(good(chat_, {}, " /help\n").out, "");
  // On two model shards, and on two replicas, of which one answers; without a newline at the end.
  EXPECT_EQ(good(with({"parallel.n_model_shards=2"}), {}, "the\nover").out, two);
  EXPECT_EQ(good(with({"parallel.n_ranks=2"}), {}, "the\nover").out, two);
  // After a reset the conversation begins again.
  EXPECT_EQ(good(chat_, {}, "the\n/reset\nthe\n/exit\nover\n").out, answer + "\n" + answer + "\n");
  EXPECT_EQ(good(with({"--system", "fox"}), {}, "the\n").out,
            good(with({"predict.system=fox"}), {}, "the\n").out);
}

TEST_F(Chat, TemplatesGetToolsAndVariables) {
  write("model/chat_template.jinja",
        "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{{ mood }}{% for m in messages %}"
        "{{ m.role }} {{ m.content }}{{ '\n' }}{% endfor %}");
  write("tools.json", R"([{"type": "function", "function": {"name": "the"}}])");
  write("in.jsonl",
        R"({"messages": [{"role": "tool", "content": "fox"}], "tools": )"
        R"([{"type": "function", "function": {"name": "the"}}], "chat_template_kwargs": {"mood": "over"}})"
        "\n");
  const Words predict = {"predict", "model.path=model", "predict.max_new_tokens=4",
                         "predict.no_repeat_ngram_size=1", "predict.input=in.jsonl"};
  const std::string expected = lines_of(good(predict).out)[0]["prediction"];
  const Words variables = {"predict.chat_template_kwargs.mood=over", "--tools", path("tools.json")};
  EXPECT_EQ(good(with(variables), {}, "/tool fox\n").out, expected + "\n");
  write("tools.json", "{}");
  refused(with(variables), 3, {"tools.json: expected a JSON file with a list of tools"}, "the\n");
}

TEST_F(Chat, ImpossibleConversationsAreErrors) {
  std::string many;
  for (int i = 0; i < 6; ++i) many += "over\n";
  refused(chat_, 3, {"32 positions"}, many);
  EXPECT_GE(lines_with(good(with({"predict.truncate_prompt=left"}), {}, many).out, ""), 6);
  // At a terminal the error is printed, and the user may continue.
  const Ran r = good(with({"--interactive"}), {}, many + "/reset\nthe\n");
  EXPECT_THAT(r.err, AllOf(HasSubstr("32 positions"), HasSubstr("/reset")));
  EXPECT_THAT(r.out, ::testing::StartsWith("> "));
  refused(chat_, 3, {"UTF-8"}, "a\xff\n");
  refused({"chat", "job.yaml"}, 2, {"no chat template"});
  // Without a limit, the model's 32 positions end the answer.
  EXPECT_THAT(good({"chat", "model.path=model"}, {}, "over\n").err,
              HasSubstr("fills the model's 32 positions"));
  refused(with({"predict.num_beams=2"}), 2, {"predict.num_beams=2"});
}

}  // namespace
}  // namespace redco::test
