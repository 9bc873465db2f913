// The settings of a job: keys, dumps and documentation.
#include "job/job_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "base/error.h"
#include "config/bind.h"
#include "config/other_names.h"
#include "pipelines/pipelines.h"
#include "support/jobs.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::Contains;
using ::testing::HasSubstr;

std::string refused(const std::vector<std::string>& overrides, const std::string& text = "") {
  try {
    job_of(text, overrides);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return {};
}

// Misspellings of a key by one letter: removed, replaced, added, swapped.
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

TEST(JobConfig, MisspelledKeysAreErrors) {
  JobConfig fresh;
  const std::vector<std::string> keys = setting_keys(settings_of(fresh));
  EXPECT_GT(keys.size(), 60u);
  int tried = 0;
  for (const std::string& key : keys) {
    const auto dot = key.rfind('.');
    const std::string prefix = dot == std::string::npos ? "" : key.substr(0, dot + 1);
    for (const std::string& leaf : mistyped(key.substr(prefix.size()))) {
      const std::string wrong = prefix + leaf;
      // A misspelling can be another key: top_k, top_p.
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

TEST(JobConfig, TheNearestKeyIsSuggested) {
  EXPECT_EQ(refused({}, "train:\n  learning_rte: 1e-3\n"),
            "job.yaml:2:3: unknown key train.learning_rte; did you mean train.learning_rate?");
  EXPECT_THAT(refused({"n_model_shards=2"}), HasSubstr("did you mean parallel.n_model_shards?"));
  EXPECT_THAT(refused({"train.max_length=2"}), HasSubstr("did you mean data.max_length?"));
  EXPECT_THAT(refused({"modle.path=x"}), HasSubstr("did you mean model?"));
  EXPECT_THAT(refused({"checkpoint.save_best_by.mox=[loss]"}),
              HasSubstr("did you mean checkpoint.save_best_by.max?"));
}

// Names of other libraries are answered with keys that exist.
TEST(JobConfig, CounterpartsOfOtherNamesAreKeys) {
  JobConfig job;
  const std::vector<std::string> keys = setting_keys(settings_of(job));
  for (const OtherName& n : other_names())
    EXPECT_TRUE(n.key.empty() ? !n.note.empty() : std::ranges::find(keys, n.key) != keys.end()) << n.name;
  EXPECT_EQ(refused({}, "train:\n  bf16: true\n"),
            "job.yaml:2:3: unknown key train.bf16; redco's key is train.compute_dtype=bf16");
  EXPECT_THAT(refused({"eval.generation.do_sample=true"}),
              HasSubstr("redco's key is eval.generation.temperature (0 chooses"));
  EXPECT_THAT(refused({"model.name_or_path=gpt2"}), HasSubstr("redco's key is model.path"));
  EXPECT_THAT(refused({"train.steps=5"}), HasSubstr("redco's key is train.max_steps"));
  EXPECT_THAT(refused({"eval.steps=5"}), HasSubstr("redco's key is eval.every_n_steps"));
}

TEST(JobConfig, ALargeExampleIsRead) {
  const JobConfig job = job_of(R"(
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

TEST(JobConfig, MissingFilesAreUsageErrors) {
  EXPECT_THROW(load_job({"/no/such/job.yaml"}, {}), UsageError);
  EXPECT_EQ(load_job({}, {"train.seed=5"}).train.seed, 5);
}

// A condition with a misspelt key or value would never hold.
TEST(JobConfig, ConditionsNameExistingKeysAndValues) {
  JobConfig fresh;
  const auto settings = settings_of(fresh);
  std::map<std::string, Setting> all;
  const std::function<void(const std::vector<Setting>&, const std::string&)> collect =
      [&](const std::vector<Setting>& some, const std::string& prefix) {
        for (const Setting& s : some) {
          all[prefix + s.name] = s;
          collect(s.fields, prefix + s.name + ".");
        }
      };
  collect(settings, "");
  int n = 0;
  for (const auto& [key, s] : all)
    for (const SettingCondition& c : s.conditions) {
      ++n;
      ASSERT_TRUE(all.count(c.key)) << key << ": " << c.key;
      const auto known = c.key == "pipeline"          ? pipeline_names()
                         : c.key == "train.optimizer" ? optimizer_names()
                                                      : all[c.key].choices;
      for (const std::string& value : c.values) EXPECT_THAT(known, Contains(value)) << key;
    }
  EXPECT_GT(n, 50);
}

// docs/config.md and the schema for editors are generated from the declarations.
// REDCO_UPDATE_DOCS=1 build/tests/test_job updates them.
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
            "train.warmup_ratio=\twarm-up length as a fraction of all steps; the learning rate rises "
            "linearly from 0\n:files\n");
  const std::string values = complete_job_override("train.schedule=");
  EXPECT_NE(values.find("train.schedule=cosine\t"), std::string::npos);
  EXPECT_EQ(values.find(":files"), std::string::npos);
  EXPECT_NE(complete_job_override("data.train=").find(":files"), std::string::npos);
  EXPECT_EQ(complete_job_override("tr").find("train.\t"), 0u);
  EXPECT_EQ(complete_job_override("nothing.such"), ":files\n");
}

}  // namespace
}  // namespace redco
