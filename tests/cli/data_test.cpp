// redco data, redco evaluate, and training on examples.
#include <zstd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli_testing.h"

namespace redco::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kModel =
    "model: {arch: gpt2, tokenizer: bytes, n_layer: 1, n_embd: 16, n_head: 2, n_positions: 64}\n";

std::string lines(int n) {
  std::string s;
  for (int k = 0; k < n; ++k)
    s += "{\"prompt\": \"item " + std::to_string(k) + "?\", \"completion\": \"yes " + std::to_string(k % 3) +
         "\", \"id\": " + std::to_string(k) + "}\n";
  return s;
}

class Data : public Cli {};

TEST_F(Data, ShowsTheModelsInput) {
  write("a.jsonl", "{\"prompt\": \"ab\", \"completion\": \"c\\n\"}\nnonsense\n{\"text\": \"x\"}\n");
  write("job.yaml", std::string(kModel) + "data: {train: a.jsonl, max_length: 8, skip_bad: true}\n");
  const Ran text = good({"data", "job.yaml", "--show", "2"});
  EXPECT_THAT(text.out, HasSubstr("2 examples of 7 tokens, 4 to learn"));
  EXPECT_THAT(text.out, HasSubstr("1 bad line skipped (data.skip_bad); the first:\n  a.jsonl:2: not JSON"));
  EXPECT_THAT(text.out, HasSubstr("row 1 of 1: 7 tokens in 2 samples, 4 to learn"));
  EXPECT_THAT(text.out, HasSubstr("    a b [c] [\xC4\x8A] [<|endoftext|>]\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("\x1b[")));
  const Json j = Json::parse(good({"data", "job.yaml", "--json"}).out);
  EXPECT_EQ(j["rows"], 1);
  EXPECT_EQ(j["bad_lines"], 1);
  EXPECT_EQ(j["shown"][0]["samples"][0]["ids"], Json::parse("[97, 98, 99, 10, 256]"));
  EXPECT_EQ(j["shown"][0]["samples"][0]["in_loss"], Json::parse("[0, 0, 1, 1, 1]"));
  refused({"data", "job.yaml", "data.skip_bad=false"}, 3, {"a.jsonl:2: not JSON"});
  refused({"data", "job.yaml", "--split", "eval"}, 2, {"data.eval is missing"});
  refused({"data", "job.yaml", "data.documents=line"}, 2, {"data.documents", "has no effect"});
  // Text without a model: windows, and documents separated from one another.
  write("t.txt", "ab\ncd\n");
  const Json t = Json::parse(good({"data", "model.tokenizer=bytes", "data.train=t.txt", "data.max_length=16",
                                   "data.documents=line", "data.attention_across=false", "--json"})
                                 .out);
  EXPECT_EQ(t["shown"][0]["samples"].size(), 2u);
  EXPECT_EQ(t["shown"][0]["samples"][1]["in_loss"], Json::parse("[0, 1, 1]"));
}

TEST_F(Data, EvaluatesWithoutTraining) {
  write("a.jsonl", lines(9));
  write("job.yaml", std::string(kModel) + "data: {eval: a.jsonl}\n");
  refused({"evaluate", "job.yaml"}, 2, {"model.random=true"});
  const Json one = Json::parse(good({"evaluate", "job.yaml", "model.random=true"}).out);
  EXPECT_EQ(one["examples"], 9);
  // Random weights give ln 257 nats, up to the effect of weights of 0.02.
  EXPECT_NEAR(one["loss"].get<double>(), std::log(257.0), 0.1);
  EXPECT_NEAR(one["perplexity"].get<double>(), std::exp(one["loss"].get<double>()), 1e-3);
  const Json two = Json::parse(good({"evaluate", "job.yaml", "model.random=true", "parallel.n_ranks=2",
                                     "parallel.n_model_shards=2", "parallel.threads_per_rank=1"})
                                   .out);
  EXPECT_NEAR(one["loss"].get<double>(), two["loss"].get<double>(), 1e-5);
  refused({"evaluate", "job.yaml", "model.random=true", "data.eval=[]"}, 2, {"data.eval is missing"});
}

// Eight steps in one run, or in two runs that split inside an epoch of packed examples, give the same bytes.
TEST_F(Data, ResumesInsideAnEpochOfExamples) {
  write("a.jsonl", lines(40));
  write("job.yaml", std::string(kModel) +
                        "data: {train: a.jsonl, eval: a.jsonl, max_length: 48}\n"
                        "parallel: {threads_per_rank: 1}\n"
                        "train: {global_batch_size: 2, max_steps: 8, schedule: constant, warmup_ratio: 0}\n"
                        "checkpoint: {every_n_steps: 3}\n");
  good({"train", "job.yaml", "workdir=once"});
  good({"train", "job.yaml", "workdir=twice", "train.max_steps=3"});
  const Ran on = good({"train", "job.yaml", "workdir=twice"});
  EXPECT_THAT(on.err, HasSubstr("resuming from"));
  EXPECT_EQ(read("once/checkpoints/last/model.safetensors"),
            read("twice/checkpoints/last/model.safetensors"));
  // With other data, or other rows of the same data, the run cannot resume.
  refused({"train", "job.yaml", "workdir=twice", "data.attention_across=true", "train.max_steps=9"}, 2,
          {"training data"});
}

// A folder with a compressed file of Alpaca lines and a plain file of ShareGPT lines.
TEST_F(Data, TrainsOnAFolderOfAlpacaAndShareGpt) {
  const std::string alpaca =
      "{\"instruction\": \"Say\", \"input\": \"yes\", \"output\": \"yes\"}\n"
      "{\"instruction\": \"Say no\", \"input\": \"\", \"output\": \"no\"}\n";
  std::string packed(ZSTD_compressBound(alpaca.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), alpaca.data(), alpaca.size(), 3));
  std::filesystem::create_directories(path("chats/below"));
  write("chats/a.jsonl.zst", packed);
  write("chats/b.jsonl",
        "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": "
        "\"b\"}]}\n");
  write("chats/README.md", "no data");
  write("chats/below/c.jsonl", "not read");
  write("job.yaml",
        std::string(kModel) +
            "data: {train: chats/, eval: [chats], max_length: 64, chat_template: 'builtin:chat'}\n"
            "train: {global_batch_size: 1, max_steps: 2}\nparallel: {threads_per_rank: 1}\n");
  const Ran r = good({"train", "job.yaml", "workdir=run"});
  EXPECT_THAT(r.err,
              HasSubstr("[data] data.train: 2 jsonl files in the folder chats/; 1 other file skipped"));
  EXPECT_EQ(lines_with(r.err, "data.train: 2 jsonl files"), 1);
  EXPECT_THAT(r.err, HasSubstr("training data: 3 examples"));
  EXPECT_THAT(r.err, HasSubstr("evaluation data: 3 examples"));
  EXPECT_THAT(good({"data", "job.yaml", "--show", "3"}).out, HasSubstr("S a y \xC4\x8A \xC4\x8A y e s"));
  // The cut file is an error of its contents.
  write("chats/a.jsonl.zst", packed.substr(0, packed.size() - 1));
  refused({"train", "job.yaml", "workdir=other"}, 3,
          {"chats/a.jsonl.zst: damaged zstd file", "ends too early"});
}

// A mixture and two evaluation sets: their metrics, the best checkpoint, the saved answers, and an exact
// resume.
TEST_F(Data, MixtureAndSeveralEvaluationSets) {
  std::string numbers, words;
  for (int i = 0; i < 400; ++i) numbers += std::to_string(i * 37 % 100) + " ";
  for (int i = 0; i < 150; ++i) words += i % 3 == 0 ? "red " : "blue ";
  write("numbers.txt", numbers);
  write("words.txt", words);
  write("job.yaml",
        std::string(kModel) +
            "data:\n  max_length: 16\n"
            "  mixture: [{name: numbers, files: numbers.txt, weight: 1}, {name: words, files: words.txt, "
            "weight: 3}]\n"
            "  eval_sets: [{name: numbers, files: numbers.txt}, {name: words, files: words.txt}]\n"
            "train: {global_batch_size: 8, max_steps: 30, warmup_steps: 2}\nparallel: {threads_per_rank: 1}\n"
            "eval: {every_n_steps: 10, n_outputs: 1, generation: {max_new_tokens: 2}}\n"
            "checkpoint: {save_best_by: {min: [words_loss]}, every_n_steps: 10}\n");
  const Ran whole = good({"train", "job.yaml", "workdir=whole"});
  EXPECT_THAT(whole.err, HasSubstr("mixture of 2 sources, "));
  EXPECT_THAT(whole.err, HasSubstr("numbers 24.8% (0.40 passes), words 75.2% (2.00 passes)"));
  EXPECT_THAT(whole.err, HasSubstr("evaluation data words: "));
  const std::string metrics = slurp(path("whole/metrics.jsonl"));
  for (const char* name : {"\"eval_numbers_loss\"", "\"eval_words_loss\"", "\"eval_words_perplexity\""})
    EXPECT_THAT(metrics, HasSubstr(name));
  for (const char* file :
       {"eval_outputs/step-00000010.numbers.jsonl", "eval_outputs/step-00000030.words.jsonl",
        "checkpoints/best-words_loss/model.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(path("whole/" + std::string(file)))) << file;
  // An epoch has 15 steps: the resumed run begins in the second epoch.
  good({"train", "job.yaml", "workdir=parts", "train.max_steps=20", "train.schedule=constant"});
  good({"train", "job.yaml", "workdir=parts", "train.schedule=constant"});
  good({"train", "job.yaml", "workdir=one", "train.schedule=constant"});
  EXPECT_TRUE(slurp(path("parts/checkpoints/last/model.safetensors")) ==
              slurp(path("one/checkpoints/last/model.safetensors")));
  EXPECT_THAT(good({"evaluate", "job.yaml", "workdir=one"}).out, HasSubstr("\"words_examples\""));
  EXPECT_THAT(good({"data", "job.yaml", "--source", "words", "--show", "0"}).out,
              HasSubstr("training data words:"));
  refused({"data", "job.yaml", "--split", "eval"}, 2, {"expected one of the sources numbers, words"});
  refused({"train", "job.yaml", "workdir=one", "train.max_steps=40", "train.schedule=constant",
           "data.mixture=[{name: numbers, files: numbers.txt, weight: 2}, {name: words, files: words.txt, "
           "weight: 3}]"},
          2, {"training data"});
}

TEST_F(Data, FoldersWithoutDataOrWithSeveralFormats) {
  std::filesystem::create_directories(path("d"));
  write("job.yaml",
        std::string(kModel) + "data: {train: d, max_length: 16}\ntrain: {global_batch_size: 1}\n");
  refused(
      {"data", "job.yaml"}, 2,
      {"job.yaml:2:15: data.train[0]: the folder d has no data file, and neither have the folders in it; expected names"});
  write("d/a.txt", "some text");
  write("d/b.jsonl", "{\"text\": \"x\"}\n");
  refused({"data", "job.yaml"}, 2,
          {"the folder d has files of several formats, such as a.txt and b.jsonl", "Set data.format"});
  EXPECT_THAT(good({"data", "job.yaml", "data.format=jsonl"}).out, HasSubstr("1 example of 2 tokens"));
  EXPECT_THAT(good({"data", "job.yaml", "data.format=text"}).err,
              HasSubstr("1 text file in the folder d; 1 other"));
  refused({"data", "job.yaml", "data.format=csv"}, 2, {"the folder d has no file of data.format=csv"});
  // Listed folders keep their places, and their files are in the order of the list.
  write("d/a.txt", "\xFF");
  std::filesystem::create_directories(path("e"));
  write("e/z.txt", "more text");
  EXPECT_THAT(
      good({"data", "model.tokenizer=bytes", "data.max_length=32", "data.train=[e,d]", "data.format=text"})
          .err,
      AllOf(HasSubstr("1 text file in the folder e"), HasSubstr("1 text file in the folder d")));
}

// The names and the bytes of a folder's indexes. The memo of content hashes is left out: it is written only
// once the data files have been seen.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& f : std::filesystem::directory_iterator(folder))
    if (f.path().extension() == ".examples" || f.path().extension() == ".rows")
      out[f.path().filename()] = slurp(f.path());
  return out;
}

TEST_F(Data, BuildsIndexesThatTrainingOnCopiesFinds) {
  std::filesystem::create_directories(path("here"));
  write("here/a.jsonl", lines(40) + "nonsense\n");
  write("here/b.jsonl", lines(9));
  write("job.yaml", std::string(kModel) +
                        "data: {train: here/a.jsonl, eval: here/b.jsonl, max_length: 48, skip_bad: true}\n"
                        "train: {global_batch_size: 2, max_steps: 1}\nparallel: {threads_per_rank: 1}\n");
  refused({"data", "build", "job.yaml"}, 2, {"data.cache and workdir are missing"});
  refused({"data", "build", "job.yaml", "data.cache=index", "data.train=[]", "data.eval=[]"}, 2,
          {"data.train and data.eval are missing"});
  refused({"data", "build", "none.yaml"}, 2, {"none.yaml"});
  refused({"data", "build"}, 2, {"JOB is required", "`redco data build --help`"});

  const Ran built = good({"data", "build", "job.yaml", "data.cache=index"});
  EXPECT_EQ(lines_with(built.out, "examples, "), 2);
  EXPECT_EQ(lines_with(built.out, "rows, "), 2);
  EXPECT_EQ(lines_with(built.out, "built in"), 4);
  EXPECT_THAT(built.out,
              ::testing::ContainsRegex("index/[0-9a-f]{32}.examples: 40 examples, [0-9]+ tokens, "));
  const Ran again = good({"data", "build", "job.yaml", "data.cache=index"});
  EXPECT_EQ(lines_with(again.out, "found in"), 4);
  const Json j = Json::parse(good({"data", "build", "job.yaml", "data.cache=index", "--json"}).out);
  EXPECT_EQ(j["cache"], "index");
  ASSERT_EQ(j["indexes"].size(), 4u);
  for (const Json& i : j["indexes"]) {
    EXPECT_EQ(i["built"], false);
    EXPECT_EQ(i["bytes"], std::filesystem::file_size(path(i["path"])));
  }
  EXPECT_EQ(j["indexes"][0]["split"], "train");
  EXPECT_EQ(j["indexes"][0]["unit"], "example");
  EXPECT_EQ(j["indexes"][2]["examples"], 9);
  EXPECT_EQ(j["indexes"][2]["split"], "eval");

  // Every source of a mixture has its indexes.
  const Ran mixed = good({"data", "build", "job.yaml", "data.cache=index", "data.train=[]", "data.eval=[]",
                          "data.mixture=[{name: a, files: here/a.jsonl, weight: 1}, {name: b, files: "
                          "here/b.jsonl, weight: 1}]"});
  EXPECT_EQ(lines_with(mixed.out, "found in"), 2);
  EXPECT_EQ(lines_with(mixed.out, "built in"), 2);

  // Copies elsewhere, with other names. The messages name the copies.
  const auto before = contents(path("index"));
  std::filesystem::create_directories(path("there"));
  write("there/train.jsonl", lines(40) + "nonsense\n");
  write("there/eval.jsonl", lines(9));
  const Words copies = {"train",
                        "job.yaml",
                        "data.cache=index",
                        "workdir=run",
                        "data.train=there/train.jsonl",
                        "data.eval=there/eval.jsonl"};
  const Ran trained = good(copies, {{"REDCO_LOG", "debug"}});
  EXPECT_EQ(lines_with(trained.err, "[data] found in cache: index/"), 4);
  EXPECT_THAT(trained.err, HasSubstr("there/train.jsonl:41: not JSON"));
  EXPECT_EQ(contents(path("index")), before);
  EXPECT_FALSE(has("run/cache"));
  // Resuming the run with the first files.
  EXPECT_THAT(good({"train", "job.yaml", "data.cache=other", "workdir=run", "train.max_steps=2"}).err,
              HasSubstr("resuming from"));
  EXPECT_EQ(contents(path("other")).size(), 4u);
  // An edited file has another index.
  write("there/train.jsonl", lines(39) + "nonsense\n");
  EXPECT_EQ(
      lines_with(good({"data", "build", "job.yaml", "data.cache=index", "data.train=there/train.jsonl"}).out,
                 "built in"),
      2);
}

TEST_F(Data, EveryPipelineBuildsItsIndexes) {
  const auto build = [&](const std::string& job) {
    return good({"data", "build", REDCO_SOURCE_DIR "/configs/" + job + ".yaml", "data.cache=index"});
  };
  // Tokens of text, of examples and their rows, of pairs, of captions, labelled texts and vectors.
  for (const auto& [job, words] : std::vector<std::pair<std::string, std::string>>{
           {"lm/chat_tiny", ": 800 examples, "},
           {"lm/chat_tiny", " rows, "},
           {"seq2seq/reverse", ": 4000 examples, "},
           {"captioning/shapes", ": 4000 examples, "},
           {"classification/text", ": 2000 examples, "},
           {"regression/vectors", ": 2000 examples, 0 tokens, "}})
    EXPECT_THAT(build(job).out, HasSubstr(words)) << job;
  write("t.txt", "some text");
  write("job.yaml", std::string(kModel) + "data: {train: t.txt, max_length: 4}\n");
  EXPECT_THAT(good({"data", "build", "job.yaml", "data.cache=index"}).out,
              HasSubstr(".tokens: 1 document, 10 tokens, "));
  const Ran images = build("classification/images");
  EXPECT_EQ(images.out, "");
  EXPECT_THAT(images.err, HasSubstr("these data need no index"));
  refused({"data", "build", "pipeline=rl", "data.cache=index"}, 2, {"nothing to build"});
}

TEST_F(Data, TheShippedChatJobLearns) {
  const Ran r = good({"train", REDCO_SOURCE_DIR "/configs/lm/chat_tiny.yaml", "train.max_steps=6",
                      "workdir=chat", "eval.every_n_steps=6", "parallel.n_model_shards=1"});
  EXPECT_THAT(r.err, HasSubstr("training data: 800 examples"));
  EXPECT_THAT(r.err, HasSubstr("evaluation data: 80 examples"));
  // Random weights have a loss of log 257 = 5.5; six steps bring it to 4.1.
  std::istringstream metrics(read("chat/metrics.jsonl"));
  Json last;
  for (std::string line; std::getline(metrics, line);) last = Json::parse(line);
  EXPECT_EQ(last["step"], 6);
  EXPECT_NEAR(last["eval_loss"].get<double>(), 4.1, 0.3);
}

}  // namespace
}  // namespace redco::test
