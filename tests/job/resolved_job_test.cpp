#include "job/resolved_job.h"

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/compress.h"
#include "base/error.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

JobConfig some_job() {
  return load_job({},
                  {"model.arch=gpt2", "model.tokenizer=bytes", "model.n_layer=2", "train.learning_rate=1e-3",
                   "predict.prompt= two\nlines: 'quoted' \u00e9, # \"\t ", "data.train=[a.txt, b.txt]",
                   "parallel.sharding_rules=[{match: '.*', spec: [mp, ~]}]"});
}

TEST(ResolvedJob, FromTextReturnsTheSameJob) {
  const ResolvedJob a(some_job());
  const std::string text = a.to_text();
  EXPECT_EQ(text.find_first_of(" \n\t"), text.npos);
  const ResolvedJob b = ResolvedJob::from_text(text);
  EXPECT_EQ(b.yaml(), a.yaml());
  EXPECT_EQ(b.hash(), a.hash());
  EXPECT_EQ(b.job().predict.prompt, std::vector<std::string>{" two\nlines: 'quoted' \u00e9, # \"\t "});
  EXPECT_EQ(b.job().origins.where_key("model.n_layer"), "override 'model.n_layer=2'");
  EXPECT_EQ(b.job().origins.where("train.learning_rate"), "override 'train.learning_rate=1e-3'");
  EXPECT_TRUE(b.job().origins.given("train.learning_rate"));
  EXPECT_FALSE(b.job().origins.given("train.seed"));
}

TEST(ResolvedJob, TheTextKeepsThePlacesOfInheritedValues) {
  JobConfig job = some_job();
  job.origins.inherit("model.n_layer", "run/job.yaml");
  const ResolvedJob b = ResolvedJob::from_text(ResolvedJob(job).to_text());
  EXPECT_FALSE(b.job().origins.given("model.n_layer"));
  EXPECT_EQ(b.job().origins.where("model.n_layer"), "run/job.yaml");
}

TEST(ResolvedJob, TheHashDependsOnValuesOnly) {
  JobConfig job = some_job();
  const std::string before = ResolvedJob(job).hash();
  job.origins.set("train.seed", "job.yaml:3:4");
  EXPECT_EQ(ResolvedJob(job).hash(), before);
  job.train.seed = 7;
  EXPECT_NE(ResolvedJob(job).hash(), before);
}

TEST(ResolvedJob, KeysFromTheDataDoNotReplaceKeysOfTheJob) {
  const ResolvedJob a(some_job());
  const ResolvedJob b = a.with_model_config({{"n_layer", "5"}, {"num_labels", "3"}});
  EXPECT_EQ(b.job().model.config.at("n_layer"), "2");
  EXPECT_EQ(b.job().model.config.at("num_labels"), "3");
  EXPECT_NE(b.hash(), a.hash());
  EXPECT_NE(b.yaml().find("num_labels: 3"), b.yaml().npos);
}

TEST(ResolvedJob, FilesHaveOnlyTheNamesOfEnvironmentVariables) {
  JobConfig job = some_job();
  job.parallel.environment.values = {{"HF_TOKEN", "\"secret-1\""}};
  const ResolvedJob a(job);
  EXPECT_EQ(a.yaml().find("secret-1"), a.yaml().npos);
  EXPECT_NE(a.yaml().find("HF_TOKEN: null"), a.yaml().npos) << a.yaml();
  EXPECT_EQ(ResolvedJob::from_text(a.to_text()).job().parallel.environment.values.at("HF_TOKEN"),
            "\"secret-1\"");
  const test::TempDir dir;
  test::spill(dir / "config.resolved.yaml", a.yaml());
  const JobConfig again = load_job({dir / "config.resolved.yaml"}, {});
  EXPECT_EQ(again.parallel.environment.values.at("HF_TOKEN"), "null");
}

TEST(ResolvedJob, DamagedTextIsAnError) {
  const std::string text = ResolvedJob(some_job()).to_text();
  for (const std::string& bad :
       {std::string(), std::string("x"), text.substr(0, text.size() / 2), text + "AAAA",
        "????" + text.substr(4), encode_base64(compress("[]")), encode_base64(compress("{\"hash\": 1}"))})
    EXPECT_THROW(ResolvedJob::from_text(bad), ContentsError) << bad.substr(0, 20);
  const std::string other =
      R"({"hash": "00000000000000000000000000000000", "yaml": "pipeline: lm\n", "places": {},
          "inherited": {}, "key_places": {}})";
  EXPECT_THROW(ResolvedJob::from_text(encode_base64(compress(other))), ContentsError);
}

}  // namespace
}  // namespace redco
