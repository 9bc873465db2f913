// Every shipped job is validated, planned and trained for two steps on one rank, in a folder that has the
// files it names. kDeclared lists what each job needs beyond its own file.
#include "job/shipped_jobs.h"

#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/sanitized.h"
#include "ckpt/publish.h"
#include "ckpt/verify_checkpoint.h"
#include "cli/cli_testing.h"
#include "support/ranks.h"

namespace redco::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Limits of the run of two steps. A job above them needs an entry in kDeclared.
constexpr i64 kMaxParameters = 2'000'000;
constexpr double kMaxCpuSeconds = 5;

struct Declaration {
  std::vector<std::string> files;  // files and model folders of the user that the job names, made by make()
  std::vector<std::string> words;  // overrides of the training: data, a smaller model, a shorter evaluation
};

#define TOKENIZERS REDCO_FIXTURES "/tokenizers/"

// Shrunken models keep the number of heads, the ratio of the MLP to the width, the ratio of rotary to head
// dimensions, and the length of the job.
const std::map<std::string, Declaration> kDeclared = {
    {"captioning/shapes", {{}, {"eval.generation.max_new_tokens=4"}}},
    {"distillation/markov", {{"runs/markov/checkpoints/last"}, {}}},
    {"grpo/arithmetic", {{"runs/grpo-start/checkpoints/last"}, {}}},
    {"lm/chat", {{"models/base", "chats.jsonl"}, {}}},
    {"lm/gpt2", {{"models/gpt2", "data/train.txt", "data/eval.txt"}, {}}},
    {"lm/gpt2-large",
     {{"my.txt"},
      {"data.train=my.txt", "workdir=runs/x", "model.tokenizer=" TOKENIZERS "gpt2", "model.vocab_size=512",
       "model.n_layer=2", "model.n_embd=80"}}},
    {"lm/gptj",
     {{"my.txt"},
      {"data.train=my.txt", "workdir=runs/x", "model.tokenizer=" TOKENIZERS "gpt2", "model.vocab_size=512",
       "model.n_layer=2", "model.n_embd=128", "model.rotary_dim=2"}}},
    {"lm/llama",
     {{"my.txt"},
      {"data.train=my.txt", "workdir=runs/x", "model.tokenizer=" TOKENIZERS "llama2", "model.vocab_size=600",
       "model.num_hidden_layers=2", "model.hidden_size=128", "model.intermediate_size=344"}}},
    {"lm/opt",
     {{"my.txt"},
      {"data.train=my.txt", "workdir=runs/x", "model.tokenizer=" TOKENIZERS "gpt2", "model.vocab_size=512",
       "model.num_hidden_layers=2", "model.hidden_size=160", "model.ffn_dim=640",
       "model.word_embed_proj_dim=160"}}},
    {"lm/quickstart", {{"runs/quickstart-text/train.txt", "runs/quickstart-text/eval.txt"}, {}}},
    {"maml/omniglot", {{}, {"maml.eval_tasks=32"}}},
    {"seq2seq/appendix_b_bart", {{}, {"eval.generation.max_new_tokens=4"}}},
    {"seq2seq/appendix_b_t5", {{}, {"eval.generation.max_new_tokens=4"}}},
    {"seq2seq/bart_lora", {{"runs/reverse/checkpoints/last"}, {}}},
    {"seq2seq/t5_lora", {{"runs/t5-copy/checkpoints/last"}, {}}},
    {"text_to_image/shapes", {{}, {"diffusion.num_inference_steps=2"}}},
};

class ShippedJobRuns : public Cli, public ::testing::WithParamInterface<std::string> {
 protected:
  static std::string file_of(const std::string& job) { return REDCO_SOURCE_DIR "/configs/" + job + ".yaml"; }

  // Makes a text, chats, or a model folder as Hugging Face has them, by the name.
  void make(const std::string& name) {
    fs::create_directories(fs::path(path(name)).parent_path());
    if (name.ends_with("eval.txt")) return write(name, some_text(60, 2));
    if (name.ends_with(".txt")) return write(name, some_text(1000));
    if (name.ends_with(".jsonl")) {
      std::string chats;
      for (int i = 0; i < 400; ++i)
        chats += json{{"prompt", "Add 1 to " + std::to_string(i)},
                      {"completion", "It is " + std::to_string(i + 1)}}
                     .dump() +
                 "\n";
      return write(name, chats);
    }
    Words words = {"train",
                   "parallel.n_model_shards=1",
                   "parallel.threads_per_rank=1",
                   "train.max_steps=1",
                   "train.global_batch_size=1",
                   "train.per_device_batch_size=1",
                   "workdir=making"};
    if (name == "models/gpt2") {
      write("text.txt", some_text(60));
      write("tiny.yaml", kTinyJob);
      for (const char* w : {"tiny.yaml", "model.n_positions=512", "model.tokenizer=" TOKENIZERS "gpt2"})
        words.push_back(w);
    } else if (name == "runs/markov/checkpoints/last") {
      words.push_back(file_of("lm/markov"));
    } else if (name == "runs/grpo-start/checkpoints/last") {
      words.push_back(file_of("grpo/warm_start"));
    } else if (name == "runs/reverse/checkpoints/last") {
      words.push_back(file_of("seq2seq/reverse"));
    } else if (name == "runs/t5-copy/checkpoints/last") {
      words.push_back(file_of("seq2seq/appendix_b_t5"));
    } else if (name == "models/base") {
      for (const std::string& w :
           {file_of("lm/chat_tiny"), std::string("model.max_position_embeddings=512"),
            std::string("model.hidden_size=32"), std::string("model.intermediate_size=96"),
            std::string("model.num_hidden_layers=2"), std::string("data.eval=[]"),
            std::string("checkpoint.save_best_by.min=[]")})
        words.push_back(w);
    } else {
      FAIL() << name << ": ShippedJobRuns::make() cannot make this file or folder; add it there";
    }
    good(words);
    fs::copy(fs::canonical(path("making/checkpoints/last")), path(name), fs::copy_options::recursive);
    fs::remove_all(path(name + "/training"));
  }
};

double cpu_seconds_of_children() {
  rusage u{};
  getrusage(RUSAGE_CHILDREN, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

TEST_P(ShippedJobRuns, ValidatePlanAndTwoSteps) {
  const std::string& job = GetParam();
  const std::string add =
      "Add or change the entry \"" + job +
      "\" of kDeclared in tests/cli/shipped_jobs_test.cpp: the files that the job needs, and overrides that "
      "make it small (model sizes, evaluation) or name its data and workdir.";
  const auto declared = kDeclared.find(job);
  const Declaration d = declared == kDeclared.end() ? Declaration{} : declared->second;
  for (const std::string& f : d.files) make(f);

  // The unchanged job.
  good({"validate", file_of(job)});
  const Ran planned = run({"plan", file_of(job), "--require-fit"});
  EXPECT_NE(planned.code, 4) << "The job does not fit. Correct plan.devices or the job's sizes.\n"
                             << planned.out;
  EXPECT_TRUE(planned.code == 0 || planned.code == 4) << planned.err << add;

  Words words = {file_of(job),         "train.max_steps=2",         "train.logging_steps=1",
                 "parallel.n_ranks=1", "parallel.n_model_shards=1", "parallel.threads_per_rank=1"};
  words.insert(words.end(), d.words.begin(), d.words.end());
  const auto with = [&](Words command) {
    command.insert(command.end(), words.begin(), words.end());
    return command;
  };
  const json valid = json::parse(good(with({"validate", "--json"})).out);
  ASSERT_TRUE(valid["parameters"].is_number()) << valid << add;
  ASSERT_LE(valid["parameters"].get<i64>(), kMaxParameters) << add;

  const double before = cpu_seconds_of_children();
  const Ran trained = run(with({"train"}));
  ASSERT_EQ(trained.code, 0) << trained.err << add;
#if !REDCO_SANITIZED
  EXPECT_LE(cpu_seconds_of_children() - before, kMaxCpuSeconds) << add;
#endif

  std::smatch folder;
  ASSERT_TRUE(std::regex_search(trained.err, folder, std::regex("checkpoint in (\\S+)/checkpoints/last\n")))
      << trained.err;
  const std::string workdir = folder[1];
  std::vector<i64> steps;
  std::istringstream lines(read(workdir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json j = json::parse(line);
    for (const auto& [name, value] : j.items()) EXPECT_FALSE(value.is_null()) << name << " in " << line;
    if (!j.contains("loss")) continue;
    steps.push_back(j["step"]);
    EXPECT_TRUE(j["loss"].is_number() && std::isfinite(j["loss"].get<double>())) << line;
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 2));

  const auto last = ckpt::CheckpointFolder(path(workdir + "/checkpoints")).find_last("checkpoint.resume");
  EXPECT_EQ(last.step, 2);
  EXPECT_TRUE(last.skipped.empty());
  redco::testing::on_one_rank([&](Context&) {
    EXPECT_NO_THROW(ckpt::verify_checkpoint(last.path, ckpt::Part::training, "checkpoint.resume"));
  });
}

std::vector<std::string> names_of_shipped_jobs() {
  std::vector<std::string> names;
  for (const ShippedJob& j : shipped_jobs()) names.push_back(j.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Configs, ShippedJobRuns, ::testing::ValuesIn(names_of_shipped_jobs()),
                         [](const auto& info) {
                           return std::regex_replace(info.param, std::regex("[^A-Za-z0-9]"), "_");
                         });

TEST(ShippedJobRunsTable, DeclaresOnlyShippedJobs) {
  for (const auto& [name, declaration] : kDeclared)
    EXPECT_THAT(names_of_shipped_jobs(), ::testing::Contains(name));
}

}  // namespace
}  // namespace redco::test
