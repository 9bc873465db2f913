// The job's own settings: every key guarded, every combination that cannot work refused with its lines.
#include "job/job_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "config/yaml.h"

namespace redco {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

JobConfig from_text(const std::string& text, const std::vector<std::string>& overrides = {}) {
  JobConfig job;
  job.origins = load_settings(settings_of(job), {{"job.yaml", text}}, overrides);
  return job;
}

std::string refused(const std::vector<std::string>& overrides, const std::string& text = "") {
  try {
    from_text(text, overrides);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return {};
}

std::string check(JobUse use, const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    check_job(from_text(text, overrides), use);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return {};
}

// Each way to mistype a key by one letter: left out, wrong, doubled, too many, swapped.
std::vector<std::string> mistyped(const std::string& key) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i <= key.size(); ++i) {
    for (const char c : {'a', 'e', 'q', 's', '_', 'S', '1'}) {
      all.push_back(key.substr(0, i) + c + key.substr(i));
      if (i < key.size()) all.push_back(key.substr(0, i) + c + key.substr(i + 1));
    }
    if (i < key.size()) all.push_back(key.substr(0, i) + key.substr(i + 1));
    if (i + 1 < key.size()) {
      all.push_back(key);
      std::swap(all.back()[i], all.back()[i + 1]);
    }
  }
  return all;
}

TEST(JobConfig, EveryKeyMistypedByALetterIsCaught) {
  JobConfig fresh;
  const std::vector<std::string> keys = setting_keys(settings_of(fresh));
  EXPECT_GT(keys.size(), 60u);
  int tried = 0;
  for (const std::string& key : keys) {
    const auto dot = key.rfind('.');
    const std::string prefix = dot == std::string::npos ? "" : key.substr(0, dot + 1);
    for (const std::string& leaf : mistyped(key.substr(prefix.size()))) {
      const std::string wrong = prefix + leaf;
      // A slip can hit another declared key: top_k, top_p.
      if (leaf.empty() || std::find(keys.begin(), keys.end(), wrong) != keys.end()) continue;
      const auto list = wrong.find("[].");
      const std::string override_text =
          list == std::string::npos
              ? wrong + "=1"
              : fmt::format("{}=[{{{}: 1}}]", wrong.substr(0, list), wrong.substr(list + 3));
      const std::string message = refused({override_text});
      EXPECT_THAT(message, HasSubstr("unknown key ")) << override_text;
      ++tried;
    }
  }
  EXPECT_GT(tried, 5000);
}

TEST(JobConfig, TheSuggestionIsTheKeyThatWasMeant) {
  EXPECT_EQ(refused({}, "train:\n  learning_rte: 1e-3\n"),
            "job.yaml:2:3: unknown key train.learning_rte; did you mean train.learning_rate?");
  EXPECT_THAT(refused({"n_model_shards=2"}), HasSubstr("did you mean parallel.n_model_shards?"));
  EXPECT_THAT(refused({"train.max_length=2"}), HasSubstr("did you mean data.max_length?"));
  EXPECT_THAT(refused({"modle.path=x"}), HasSubstr("did you mean model?"));
  EXPECT_THAT(refused({"checkpoint.save_best_by.mox=[loss]"}),
              HasSubstr("did you mean checkpoint.save_best_by.max?"));
}

TEST(JobConfig, TheDesignsExampleIsRead) {
  const JobConfig job = from_text(R"(
pipeline: lm
model:
  path: path/to/hf_folder
  n_layer: 4
  tokenizer: bytes
data: {train: a.txt, eval: [b.txt.gz], format: text, max_length: 256, packing: true}
parallel: {n_model_shards: 2, n_ranks: 4, hosts: [node1:8, node2:8], threads_per_rank: auto, shard_optimizer: false,
           shard_parameters: false, sharding_rules: [{match: '.*fc_in.weight', spec: [~, mp]}], strict: false}
train: {global_batch_size: 32, per_device_batch_size: 4, n_epochs: 1, max_steps: ~, learning_rate: 3e-4,
        schedule: linear, warmup_ratio: 0.1, weight_decay: 0.01, clip_grad_norm: 1.0, compute_dtype: fp32,
        recompute: none, seed: 42}
eval: {every_n_steps: 10, sanity_check: true, metrics: [perplexity]}
checkpoint: {every_n_steps: 10, every_n_epochs: 1, keep_last: 2, save_best_by: {max: [], min: [loss]},
             save_optimizer: true, dtype: fp32, resume: auto}
predict: {input: p.jsonl, output: o.jsonl, checkpoint: best-loss}
plan: {devices: 2 x 4 x 32GiB}
workdir: runs/name
)");
  check_job(job, JobUse::train);
  check_job(job, JobUse::plan);
  check_job(job, JobUse::predict);
  EXPECT_EQ(job.data.train, std::vector<std::string>{"a.txt"});
  EXPECT_EQ(job.model.config.at("n_layer"), "4");
  EXPECT_EQ(*job.plan.devices, "2 x 4 x 32GiB");
  EXPECT_EQ(job.origins.where("parallel.hosts[1]"), "job.yaml:8:60");

  JobConfig again;
  load_settings(settings_of(again), {{"dump", dump_job(job)}}, {});
  EXPECT_EQ(dump_job(again), dump_job(job));
}

TEST(JobConfig, RanksThatDoNotFitTheMesh) {
  const std::string text = "model: {arch: gpt2}\nparallel:\n  n_ranks: 6\n  n_model_shards: 4\n";
  EXPECT_EQ(check(JobUse::plan, text),
            "[mesh] parallel.n_ranks=6 (job.yaml:3:12) is no multiple of parallel.n_model_shards=4 "
            "(job.yaml:4:19); "
            "use n_ranks 4, 8 or 12, or n_model_shards 1, 2, 3, 6");
  EXPECT_EQ(check(JobUse::plan, text, {"parallel.n_ranks=8"}), "");
  EXPECT_THAT(check(JobUse::plan, text, {"parallel.n_ranks=2"}), HasSubstr("use n_ranks 4, 8 or 12"));
  EXPECT_THAT(check(JobUse::plan, "model: {arch: gpt2}\nparallel: {hosts: [a:2, b], n_model_shards: 2}"),
              HasSubstr("n_ranks=3 (the slots of the hosts) is no multiple"));
  EXPECT_EQ(declared_ranks(from_text("parallel: {n_model_shards: 3}")), 3);
  EXPECT_EQ(declared_ranks(from_text("parallel: {hosts: [a:2, b, 'c:3']}")), 6);
  EXPECT_EQ(declared_ranks(from_text("parallel: {hosts: [a:2], n_ranks: 1}")), 1);
  EXPECT_EQ(declared_ranks(from_text("parallel: {hostfile: h}")), std::nullopt);
}

TEST(JobConfig, HostsThatAreNone) {
  const std::string model = "model: {arch: gpt2}\n";
  for (const char* host :
       {"a:0", "a:-1", "a:x", "a:", ":3", "a b", "a:1:2", "-oProxyCommand=x", "a:99999999999999999999"}) {
    EXPECT_THAT(check(JobUse::plan, model + "parallel: {hosts: [ok, '" + host + "']}"),
                HasSubstr("parallel.hosts[1]: expected a host as name or name:slots"))
        << host;
  }
  EXPECT_THAT(check(JobUse::plan, model + "parallel: {hosts: [a:2, 'a:2']}"),
              HasSubstr("host 'a' is listed twice"));
  EXPECT_EQ(
      check(JobUse::plan, model + "parallel: {hosts: [a], hostfile: h}"),
      "parallel.hosts (job.yaml:2:19) and parallel.hostfile=h (job.yaml:2:34) are both given; keep one");
  EXPECT_THAT(check(JobUse::plan, model + "parallel: {hosts: [a:2, 'b:2'], n_ranks: 5}"),
              HasSubstr("parallel.n_ranks=5 (job.yaml:2:42) is more than the 4 slots of parallel.hosts"));
}

TEST(JobConfig, BatchSizes) {
  const auto sizes = [](const std::string& train, i64 dp) {
    return batch_sizes(from_text("train: {" + train + "}"), dp);
  };
  BatchSizes b = sizes("global_batch_size: 32, per_device_batch_size: 4", 2);
  EXPECT_EQ(b.accumulation, 4);
  EXPECT_EQ(b.assumed, "");
  b = sizes("global_batch_size: 30, per_device_batch_size: 4", 2);
  EXPECT_EQ(b.accumulation, 4);  // 8 + 8 + 8 + 6 rows
  b = sizes("global_batch_size: 7", 3);
  EXPECT_EQ(b.per_device, 3);
  EXPECT_EQ(b.accumulation, 1);
  b = sizes("global_batch_size: 8, per_device_batch_size: 8",
            4);  // more than a replica's share, but it works
  EXPECT_EQ(b.per_device, 2);
  EXPECT_EQ(b.accumulation, 1);
  b = sizes("per_device_batch_size: 4", 3);
  EXPECT_EQ(b.global, 12);
  EXPECT_THAT(b.assumed, HasSubstr("12 assumed"));
  b = sizes("", 3);
  EXPECT_EQ(b.global, 3);
  EXPECT_EQ(b.per_device, 1);
  EXPECT_THAT(b.assumed, HasSubstr("one row a replica"));

  const std::string model = "model: {arch: gpt2}\nparallel: {n_ranks: 4}\n";
  EXPECT_THAT(check(JobUse::plan, model + "train: {global_batch_size: 3}"),
              HasSubstr("train.global_batch_size=3 (job.yaml:3:28) is less than the 4 replicas"));
  EXPECT_THAT(
      check(JobUse::plan, model + "train: {global_batch_size: 4, per_device_batch_size: 5}"),
      HasSubstr("train.per_device_batch_size=5 (job.yaml:3:54) is more than train.global_batch_size=4 "
                "(job.yaml:3:28)"));
}

TEST(JobConfig, WhatEachCommandNeeds) {
  const std::string model = "model: {arch: gpt2}\n";
  EXPECT_EQ(check(JobUse::plan, model), "");
  EXPECT_EQ(check(JobUse::validate, model), "");
  EXPECT_EQ(check(JobUse::verify, ""), "");
  EXPECT_THAT(check(JobUse::plan, ""), HasSubstr("one of path, preset or arch is needed"));
  EXPECT_THAT(check(JobUse::plan, "model: {arch: gpt2, preset: gpt2}"),
              HasSubstr("are both given; keep one"));
  EXPECT_THAT(check(JobUse::train, model),
              AllOf(HasSubstr("data.train is missing"), HasSubstr("workdir is missing"),
                    HasSubstr("train.global_batch_size is missing")));
  EXPECT_THAT(check(JobUse::train, "parallel: {hosts: ['a:0']}"),
              AllOf(HasSubstr("one of path, preset or arch"), HasSubstr("hosts[0]"),
                    HasSubstr("workdir is missing")));
  EXPECT_THAT(check(JobUse::predict, model), HasSubstr("predict.prompt or predict.input is missing"));
  EXPECT_EQ(check(JobUse::predict, model, {"predict.prompt=Once upon a time"}), "");
  EXPECT_EQ(check(JobUse::predict, model, {"predict.prompt=[a, b]"}), "");
  EXPECT_THAT(check(JobUse::predict, model, {"predict.prompt=a", "predict.input=b"}), HasSubstr("keep one"));
  EXPECT_THAT(check(JobUse::predict, model, {"predict.prompt=a", "predict.top_k=3"}),
              HasSubstr("predict.top_k=3 (override 'predict.top_k=3') has no effect"));
  EXPECT_THAT(check(JobUse::predict, model, {"predict.prompt=a", "predict.checkpoint=best-loss"}),
              HasSubstr("workdir, which is missing"));
  EXPECT_THAT(check(JobUse::plan, model, {"pipeline=seq"}), HasSubstr("no such pipeline"));
  EXPECT_EQ(check(JobUse::plan, model, {"pipeline=./mine.so"}), "");
}

TEST(JobConfig, ValuesThatContradictEachOther) {
  const std::string job =
      "model: {arch: gpt2}\ndata: {train: a, eval: b}\nworkdir: w\ntrain: {global_batch_size: 1}\n";
  EXPECT_EQ(check(JobUse::train, job), "");
  const auto with = [&](std::vector<std::string> o) { return check(JobUse::train, job, o); };
  EXPECT_THAT(with({"train.warmup_steps=3", "train.warmup_ratio=0.2"}), HasSubstr("keep one"));
  EXPECT_EQ(with({"train.warmup_steps=3"}), "");
  EXPECT_THAT(with({"train.warmup_steps=3", "train.max_steps=2"}), HasSubstr("would never be reached"));
  EXPECT_THAT(with({"data.packing=false"}), HasSubstr("text is always packed"));
  EXPECT_THAT(with({"parallel.shard_optimizer=true"}), HasSubstr("can be planned, but not run"));
  EXPECT_EQ(check(JobUse::plan, job, {"parallel.shard_optimizer=true"}), "");
  EXPECT_THAT(
      with({"checkpoint.save_best_by.min=[los]"}),
      HasSubstr("checkpoint.save_best_by.min[0]=los (override 'checkpoint.save_best_by.min=[los]') is not "
                "evaluated; use loss or perplexity"));
  EXPECT_THAT(with({"checkpoint.save_best_by.min=[loss]", "data.eval=[]"}), HasSubstr("set data.eval"));
  EXPECT_THAT(with({"checkpoint.save_best_by={min: [loss], max: [loss]}"}), HasSubstr("named twice"));
  EXPECT_THAT(with({"eval.metrics=[perplexty]"}), HasSubstr("did you mean perplexity?"));
}

TEST(JobConfig, MissingFilesAreUsageErrors) {
  EXPECT_THROW(load_job({"/no/such/job.yaml"}, {}), UsageError);
  EXPECT_EQ(load_job({}, {"train.seed=5"}).train.seed, 5);
}

// docs/config.md and the schema that editors read are what the declarations say. REDCO_UPDATE_DOCS=1 test_job
// writes them anew.
void expect_generated(const std::string& path, const std::string& text) {
  const std::string full = REDCO_SOURCE_DIR "/docs/" + path;
  if (std::getenv("REDCO_UPDATE_DOCS")) std::ofstream(full) << text;
  std::stringstream s;
  s << std::ifstream(full).rdbuf();
  EXPECT_EQ(s.str(), text) << "run REDCO_UPDATE_DOCS=1 test_job and commit docs/" << path;
}
TEST(JobConfig, GeneratedDocumentsAreUpToDate) {
  expect_generated("config.md", job_reference());
  expect_generated("redco.schema.json", job_schema());
}

TEST(JobConfig, OverridesAreCompleted) {
  EXPECT_EQ(complete_job_override("train.warmup_r"),
            "train.warmup_ratio=\tshare of the steps in which the learning rate rises from 0\n:files\n");
  const std::string values = complete_job_override("train.schedule=");
  EXPECT_NE(values.find("train.schedule=cosine\t"), std::string::npos);
  EXPECT_EQ(values.find(":files"), std::string::npos);
  EXPECT_NE(complete_job_override("data.train=").find(":files"), std::string::npos);
  EXPECT_EQ(complete_job_override("tr").find("train.\t"), 0u);
  EXPECT_EQ(complete_job_override("nothing.such"), ":files\n");
}

}  // namespace
}  // namespace redco
