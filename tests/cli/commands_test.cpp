// The commands that need no ranks, and the common parts of all commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/file.h"
#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using nlohmann::json;

class Commands : public Cli {};

TEST_F(Commands, HelpAndVersionEverywhere) {
  EXPECT_THAT(good({"--help"}).out,
              AllOf(HasSubstr("train"), HasSubstr("tokenizer"), HasSubstr("Exit codes")));
  EXPECT_THAT(good({"--version"}).out, AllOf(HasSubstr("redco 0."), HasSubstr("OpenBLAS"), HasSubstr("MPI")));
  for (const char* c : {"train", "predict", "verify", "validate", "check", "bench", "env", "sbatch",
                        "tokenizer", "ls", "cp", "schema", "completion", "man", "new"}) {
    const Ran help = good({c, "--help"});
    EXPECT_THAT(help.out, AllOf(HasSubstr("Usage: redco " + std::string(c)), HasSubstr("Examples:\n  ")))
        << c;
    EXPECT_EQ(help.err, "") << c;
    EXPECT_THAT(good({c, "--version"}).out, HasSubstr("redco 0.")) << c;
  }
  const Ran nothing = run({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.err, HasSubstr("Subcommands:"));
}

TEST_F(Commands, MisspeltWordsGetTheNearestSuggestion) {
  refused({"trian", "job.yaml"}, 2, {"redco has no command 'trian'", "did you mean train?"});
  refused({"tokenizer", "encod", "bytes"}, 2,
          {"redco tokenizer has no command 'encod'", "did you mean encode?"});
  refused({"--versio"}, 2, {"redco has no option '--versio'", "did you mean --version?"});
  refused({"xyzzy"}, 2, {"it has train"});
  refused({"bench", "job.yaml", "--jsno"}, 2, {"--jsno", "did you mean --json?", "`redco bench --help`"});
  refused({"bench", "job.yaml", "--steps", "many"}, 2, {"--steps", "many"});
  refused({"bench", "job.yaml", "--steps", "0"}, 2, {"--steps", "0"});
  refused({"train"}, 2, {"JOB is required"});
  refused({"tokenizer"}, 2, {"`redco tokenizer --help`"});
}

TEST_F(Commands, ValidateNeedsNoData) {
  write("job.yaml", kTinyJob);
  const Ran text = good({"validate", "job.yaml", "parallel.n_model_shards=2"});
  EXPECT_THAT(text.out, AllOf(::testing::StartsWith("ok\n"), HasSubstr("2 ranks: dp 1 x mp 2"),
                              HasSubstr("8 rows per step"), HasSubstr("assumed"),
                              HasSubstr("text.txt is not on this machine")));
  EXPECT_EQ(text.err, "");
  EXPECT_FALSE(has("run"));
  const json j = json::parse(
      good({"validate", "job.yaml", "--json", "parallel.n_ranks=4", "train.per_device_batch_size=1"}).out);
  EXPECT_EQ(j["ok"], true);
  EXPECT_EQ(j["mesh"], json({{"n_ranks", 4}, {"dp", 4}, {"mp", 1}}));
  EXPECT_EQ(j["batch"], json({{"global", 8}, {"per_device", 1}, {"accumulation", 2}}));
  // wte 257 x 32, wpe 32 x 32, two blocks of 12 x 32^2 + 13 x 32, and the last norm.
  EXPECT_EQ(j["parameters"], 257 * 32 + 32 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 2 * 32);
  const Ran bad = run({"validate", "job.yaml", "--json", "train.sed=1", "model.n_head=x"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_EQ(json::parse(bad.out)["ok"], false);
  EXPECT_EQ(json::parse(bad.out)["problems"].size(), 2u);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("train.sed"), HasSubstr("train.seed")));
  refused({"validate", "job.yaml", "model.n_head=5"}, 2, {"n_head"});
  refused({"validate", "job.yaml", "data.max_length=64"}, 2, {"data.max_length=64", "32 positions"});
  EXPECT_THAT(good({"validate", "--explain", "train.seed"}).out, HasSubstr("default 42"));
  EXPECT_EQ(json::parse(good({"schema"}).out)["type"], "object");
  EXPECT_THAT(good({"validate", "--reference"}).out, HasSubstr("# The job file"));
  refused({"validate", "--explain", "train.sed"}, 2, {"train.seed"});
}

TEST_F(Commands, ShippedJobsAreListedAndCopied) {
  EXPECT_THAT(good({"ls"}).out, AllOf(HasSubstr("lm/gpt2 "), HasSubstr("Fine-tunes a GPT-2")));
  EXPECT_EQ(json::parse(good({"ls", "--json"}).out.substr(0, good({"ls", "--json"}).out.find('\n')))["name"]
                .get<std::string>()
                .find("captioning/"),
            0u);
  good({"cp", "quickstart"});
  EXPECT_THAT(read("quickstart.yaml"),
              ::testing::StartsWith("# yaml-language-server: $schema=redco.schema.json\n# A small GPT-2"));
  EXPECT_EQ(json::parse(read("redco.schema.json"))["title"], "redco job");
  good({"validate", "-c", "quickstart.yaml", "data.train=x", "workdir=y"});
  refused({"cp", "lm/quickstart"}, 2, {"quickstart.yaml exists", "--force"});
  good({"cp", "lm/quickstart", "--force", "--no-schema"});
  EXPECT_THAT(read("quickstart.yaml"), ::testing::StartsWith("# A small GPT-2"));
  good({"cp", "lm/quickstart", "mine.yaml"});
  EXPECT_TRUE(has("mine.yaml"));
  refused({"cp", "lm/gtp2"}, 2, {"did you mean lm/gpt2?"});
  refused({"cp", "lm/gpt2", "nowhere/x.yaml"}, 2, {"no such folder: nowhere"});
}

TEST_F(Commands, ScoresPredictions) {
  write("p.jsonl",
        "{\"prediction\": \"the cat sat on the mat\", \"reference\": \"the cat was sitting on the mat\"}\n");
  const json j = json::parse(good({"score", "p.jsonl", "--metrics", "rouge,bleu,chrf++,exact_match"}).out);
  EXPECT_EQ(j["n"], 1);
  EXPECT_NEAR(j["rouge1"].get<double>(), 10.0 / 13, 1e-12);  // 5 of 6 words are among the 7
  EXPECT_EQ(j["exact_match"], 0);
  EXPECT_GT(j["chrf++"], 10);
  write("c.jsonl", "{\"prediction\": 1, \"reference\": 1}\n{\"prediction\": 1, \"reference\": 0}\n");
  const json c = json::parse(good({"score", "c.jsonl", "--metrics", "accuracy,f1"}).out);
  EXPECT_EQ(c["accuracy"], 0.5);
  EXPECT_NEAR(c["f1_binary"].get<double>(), 2.0 / 3, 1e-12);
  refused({"score", "c.jsonl", "--metrics", "blue"}, 2, {"did you mean bleu?"});
  refused({"score", "c.jsonl"}, 3, {"c.jsonl:1", "rouge compares texts", "got 1"});
  write("bad.jsonl", "{\"prediction\": \"a\", \"reference\": \"a\"}\n{\"prediction\": \"a\"}\n");
  refused({"score", "bad.jsonl"}, 3, {"bad.jsonl:2", "no \"reference\""});
  refused({"score", "absent.jsonl"}, 2, {"absent.jsonl"});
}

TEST_F(Commands, LaterConfigsOverrideEarlierOnes) {
  write("job.yaml", kTinyJob);
  write("more.yaml", "train: {seed: 7}\n");
  write("most.yaml", "train: {seed: 8}\n");
  // 2 ranks only if the last file's value is used.
  write("last.yaml", "parallel: {n_ranks: 2}\n");
  const Ran r = good({"validate", "-c", "job.yaml", "-c", "more.yaml", "most.yaml", "last.yaml", "--json"});
  EXPECT_EQ(json::parse(r.out)["mesh"]["n_ranks"], 2);
  refused({"validate", "-c", "job.yaml", "-c"}, 2, {"--config"});
  refused({"validate", "-c", "job.yaml", "-c", "absent.yaml"}, 2, {"absent.yaml"});
}

TEST_F(Commands, CompletionsAndManualWork) {
  EXPECT_EQ(good({"__complete", "tokenizer", "enc"}).out.find("encode\t"), 0u);
  EXPECT_THAT(good({"__complete", "train", "train.schedule=co"}).out,
              AllOf(HasSubstr("train.schedule=cosine\t"), HasSubstr("train.schedule=constant\t")));
  EXPECT_THAT(good({"__complete", "cp", "lm/"}).out, HasSubstr("lm/gpt2\t"));
  EXPECT_THAT(good({"__complete", "plan", "--"}).out, HasSubstr("--require-fit\t"));
  EXPECT_THAT(good({"__complete", ""}).out, HasSubstr("train\t"));
  refused({"completion", "tcsh"}, 2, {"tcsh", "bash, zsh or fish"});
  // bash splits words at '=', so the completion must be the part after it.
  const std::string bash =
      "source <('" + std::string(REDCO_BINARY) + "' completion bash); compopt() { :; }; " + "COMP_LINE=\"'" +
      std::string(REDCO_BINARY) + "' train train.schedule=c\"; COMP_LINE=${COMP_LINE//\\'/}; " +
      "COMP_POINT=${#COMP_LINE}; _redco; echo \"${COMPREPLY[*]}\" > '" + path("reply") + "'";
  ASSERT_EQ(std::system(("bash -c '" + std::regex_replace(bash, std::regex("'"), "'\\''") + "'").c_str()), 0);
  EXPECT_EQ(read("reply"), "cosine constant\n");
  const std::string page = good({"man"}).out;
  EXPECT_THAT(page, AllOf(::testing::StartsWith(".TH REDCO 1"), HasSubstr(".SS redco train"),
                          HasSubstr("\\-\\-require\\-fit"), HasSubstr("train.learning_rate")));
}

TEST_F(Commands, AnArgumentWithAnEqualsSignMayBeAFile) {
  write("a=b.yaml", kTinyJob);
  good({"validate", "a=b.yaml"});
  refused({"validate", "c=d.yaml"}, 2, {"c"});
  refused({"validate", "nowhere.yaml"}, 2, {"nowhere.yaml", "does not exist"});
  refused({"validate", "."}, 2, {"."});
}

TEST_F(Commands, Env) {
  EXPECT_THAT(good({"env"}).out, AllOf(HasSubstr("cores "), HasSubstr("blas "), Not(HasSubstr("speed"))));
  const json j =
      json::parse(good({"env", "--json", "--measure", "--quick"}, {{"XDG_CACHE_HOME", path("")}}).out);
  EXPECT_GE(j["cores"].get<int>(), 1);
  EXPECT_GT(j["sgemm_flops_per_s"].get<double>(), 1e8);
  EXPECT_GT(j["read_bytes_per_s"].get<double>(), 1e8);
  EXPECT_EQ(j["measured"].size(), j["cores"].get<int>() > 1 ? 3 : 1);
  refused({"env", "--layout", "1x1"}, 2, {"--measure"});
  refused({"env", "--measure", "--layout", "1by1"}, 2, {"1by1", "RANKSxTHREADS"});
}

// Without a measurement, plan names the command for one; a damaged one is an error with a remedy.
TEST_F(Commands, PlanPredictsTime) {
  write("job.yaml", kTinyJob);
  const Env env = {{"XDG_CACHE_HOME", path("")}};
  const Words plan = {"plan", "job.yaml", "parallel.threads_per_rank=1"};
  Words as_json = plan, generation = plan;
  as_json.push_back("--json");
  generation.push_back("--predict");
  EXPECT_THAT(good(plan, env).out, HasSubstr("redco env --measure"));
  EXPECT_TRUE(json::parse(good(as_json, env).out)["time"].is_null());
  EXPECT_THAT(good(generation, env).out, HasSubstr("redco env --measure"));

  good({"env", "--measure", "--layout", "1x1", "--quick"}, env);
  EXPECT_THAT(good(plan, env).out, HasSubstr("predicted time of a step"));
  const json time = json::parse(good(as_json, env).out)["time"];
  EXPECT_GT(time["step_s"].get<double>(), 0);
  EXPECT_GT(time["tokens_per_s"].get<double>(), 0);
  EXPECT_THAT(good(generation, env).out, HasSubstr("decoding"));
  // The measurement of one layout does not apply to another.
  EXPECT_THAT(good({"plan", "job.yaml", "parallel.threads_per_rank=7"}, env).out, HasSubstr("--layout 1x7"));

  const auto files = list_dir(path("redco/machines"));
  ASSERT_EQ(files.size(), 1u);
  write("redco/machines/" + files[0], "{\"format\": 1}");
  const Ran damaged = run(plan, env);
  EXPECT_EQ(damaged.code, 3);
  EXPECT_THAT(damaged.err, AllOf(HasSubstr(files[0]), HasSubstr("redco env --measure")));

  // Stated speeds need no measurement, and come in pairs.
  const Words stated = {"plan", "job.yaml", "plan.devices=1 x 2 x 8GiB", "plan.flops_per_s=1e11",
                        "plan.memory_bytes_per_s=1e10"};
  EXPECT_THAT(good(stated).out, AllOf(HasSubstr("predicted time of a step"), HasSubstr("stated")));
  refused({"plan", "job.yaml", "plan.flops_per_s=1e11"}, 2, {"plan.memory_bytes_per_s"});
}

TEST_F(Commands, TokenizerLines) {
  const std::string gpt2 = std::string(REDCO_FIXTURES) + "/tokenizers/gpt2";
  const Ran ids = good({"tokenizer", "encode", "bytes"}, {},
                       "{\"text\": \"A\\u00e9\", \"id\": \"x\"}\n\n{\"text\": \"\"}\n");
  EXPECT_EQ(ids.out, "{\"id\":\"x\",\"ids\":[65,195,169]}\n{\"ids\":[]}\n");
  EXPECT_EQ(good({"tokenizer", "decode", "bytes"}, {}, ids.out).out,
            "{\"id\":\"x\",\"text\":\"A\u00e9\"}\n{\"text\":\"\"}\n");
  // Every case of the fixture, from file to file.
  for (const bool pairs : {false, true}) {
    const std::string cases = gpt2 + (pairs ? "/pairs.jsonl" : "/cases.jsonl");
    Words words = {"tokenizer", "encode", gpt2, "--input", cases, "--output", "ids.jsonl"};
    if (pairs) words.push_back("--pair");
    EXPECT_EQ(good(words).out, "");
    std::istringstream want(slurp(cases)), got(read("ids.jsonl"));
    for (std::string w, g; std::getline(want, w) && std::getline(got, g);) {
      const json a = json::parse(w), b = json::parse(g);
      if (pairs ? !a["max_length"].is_null() : a.contains("add_special_tokens")) continue;
      EXPECT_EQ(a["ids"], b["ids"]) << w;
    }
  }
  const json cut = json::parse(good({"tokenizer", "encode", gpt2, "--pair", "--max-length", "4"}, {},
                                    "{\"text\": \"How are you?\", \"pair\": \"Fine, thanks.\"}")
                                   .out);
  EXPECT_EQ(cut["ids"].size(), 4u);
  EXPECT_EQ(cut["type_ids"].size(), 4u);
  const Words encode = {"tokenizer", "encode", gpt2}, decode = {"tokenizer", "decode", gpt2};
  refused(encode, 3, {"standard input:2: not a JSON object"}, "{\"text\": \"a\"}\n{\"text\": \"b\"\n");
  refused(encode, 3, {"standard input:1: the field \"text\" is missing"}, "{\"txt\": \"a\"}\n");
  refused(encode, 3, {"standard input:1", "\"text\" is of type number"}, "{\"text\": 5}\n");
  refused(encode, 3, {"standard input:1"}, "[1]\n");
  refused(encode, 3, {"standard input:1"}, "{\"text\": \"\xff\"}\n");
  for (const char* bad : {"-1", "512", "1.5", "\"1\"", "18446744073709551617", "null"})
    refused(decode, 3, {"standard input:1", "0 to 511"}, "{\"ids\": [1, " + std::string(bad) + "]}\n");
  refused(decode, 3, {"standard input:1", "\"ids\""}, "{\"ids\": 1}\n");
  refused({"tokenizer", "encode", "nowhere"}, 2, {"nowhere"});
  refused({"tokenizer", "encode", "bytes", "--input", "nowhere.jsonl"}, 2, {"nowhere.jsonl"});
  write("cut.gz", "\x1f\x8b\x08");
  refused({"tokenizer", "encode", "bytes", "--input", "cut.gz"}, 3, {"cut.gz"});
  // A result file is complete or absent.
  write("two.jsonl", "{\"text\": \"a\"}\n{\n");
  refused({"tokenizer", "encode", "bytes", "--input", "two.jsonl", "--output", "new.jsonl"}, 3,
          {"two.jsonl:2"});
  EXPECT_FALSE(has("new.jsonl"));
}

TEST_F(Commands, Sbatch) {
  write("job.yaml", kTinyJob);
  const Ran r = good({"sbatch", "job.yaml", "parallel.n_ranks=4", "train.seed=3", "--nodes", "2", "--time",
                      "12:00:00", "--memory", "8GiB"});
  EXPECT_THAT(r.out, AllOf(::testing::StartsWith("#!/bin/bash\n"), HasSubstr("#SBATCH --nodes=2\n"),
                           HasSubstr("#SBATCH --ntasks=4\n"), HasSubstr("#SBATCH --mem=8192M\n"),
                           HasSubstr("train job.yaml parallel.n_ranks=4 train.seed=3"),
                           HasSubstr("#SBATCH --job-name=redco-job\n")));
  EXPECT_THAT(r.err, HasSubstr("per rank, assuming"));
  // The time of a step is predicted from measurements, and this machine has none here.
  EXPECT_THAT(
      good({"sbatch", "job.yaml", "parallel.threads_per_rank=2"}, {{"XDG_CACHE_HOME", path("none")}}).err,
      ::testing::StartsWith("[sbatch] no time limit: the time of a step is not known."));
  refused({"sbatch", "job.yaml", "--nodes", "3"}, 2, {"3 nodes for 1 rank"});
  refused({"sbatch", "job.yaml", "--time", "soon"}, 2, {"soon"});
  refused({"sbatch", "job.yaml", "--memory", "much"}, 2, {"much"});
  refused({"sbatch", "model.preset=gpt2", "data.train=x", "workdir=y", "train.global_batch_size=1"}, 2,
          {"no job file"});
  // With sbatch in PATH, sbatch gets the script, and its output is printed.
  write("sbatch", "#!/bin/sh\ngrep -c '^#SBATCH --nodes=1$'\necho Submitted batch job 7\n");
  std::filesystem::permissions(path("sbatch"), std::filesystem::perms::owner_all);
  const std::string with = dir_.path() + ":" + std::getenv("PATH");
  EXPECT_EQ(good({"sbatch", "job.yaml", "--submit"}, {{"PATH", with}}).out, "1\nSubmitted batch job 7\n");
  write("sbatch", "#!/bin/sh\necho 'sbatch: error: no such partition' >&2\nexit 1\n");
  const Ran no = run({"sbatch", "job.yaml", "--submit"}, {{"PATH", with}});
  EXPECT_EQ(no.code, 5);
  EXPECT_THAT(no.err, AllOf(HasSubstr("no such partition"), HasSubstr("refused")));
}

TEST_F(Commands, Bench) {
  write("job.yaml", kTinyJob);
  const Ran text = good({"bench", "job.yaml", "--steps", "2"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("8 rows of 32 tokens"), HasSubstr("tokens/s"), HasSubstr("GFLOP/s")));
  for (const char* mesh : {"1", "2"}) {
    const Words common = {"bench", "job.yaml", "--steps",
                          "2",     "--json",   std::string("parallel.n_model_shards=") + mesh};
    const json j = json::parse(good(common).out);
    EXPECT_NEAR(j["tokens_per_s"].get<double>() * j["step_s"].get<double>(), 8 * 32, 1e-6);
    EXPECT_GT(j["ceiling_share"].get<double>(), 0);
    EXPECT_GE(j["waiting_s"].get<double>(), 0);
    EXPECT_GT(j["peak_memory_bytes"].get<double>(), 1e6);
    EXPECT_TRUE(j["decode_tokens_per_s"].is_null());
    Words predict = common;
    predict.insert(predict.end(), {"--predict", "predict.batch_size=2", "predict.max_new_tokens=8"});
    const json p = json::parse(good(predict).out);
    EXPECT_EQ(p["length"], 24);
    EXPECT_NEAR(p["decode_tokens_per_s"].get<double>() * p["step_s"].get<double>(), 2, 1e-6);
    EXPECT_GT(p["prefill_tokens_per_s"].get<double>(), 0);
    EXPECT_GT(p["prefill_ceiling_share"].get<double>(), 0);
  }
  // A step in the middle of the answers reads all weights but the table of positions, and the cache: of 2
  // rows, 2 layers, keys and values, 24 + 4 positions of 32 numbers.
  const auto step_bytes = [&](const char* cache) {
    return json::parse(
               good({"bench", "job.yaml", "--predict", "--json", "--steps", "1", "predict.batch_size=2",
                     "predict.max_new_tokens=8", std::string("predict.cache_dtype=") + cache})
                   .out)["step_bytes"]
        .get<double>();
  };
  const double weights = 4 * (257 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 2 * 32);
  const double entries = 2 * 2 * 2 * 28 * 32;
  EXPECT_EQ(step_bytes("fp32"), weights + 4 * entries);
  EXPECT_EQ(step_bytes("bf16"), weights + 2 * entries);
  EXPECT_FALSE(has("run"));  // nothing is written
  refused({"bench", "job.yaml", "data.max_length=33"}, 2, {"data.max_length=33", "32 positions"});
}

}  // namespace
}  // namespace redco::test
