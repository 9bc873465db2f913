// data.calibration: int4 with the importance of columns.
#include "assembly/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "ops/redistribute.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

class Calibration : public ::testing::Test {
 protected:
  Calibration() {
    setenv("XDG_CACHE_HOME", (dir_ / "cache").c_str(), 1);
    std::string text;
    for (int i = 0; i < 40; ++i) text += "A line of text, number " + std::to_string(i * i) + ".\n";
    test::spill(dir_ / "texts.txt", text);
  }
  JobConfig job(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"model.path=" REDCO_FIXTURES "/llama", "model.tokenizer=bytes",
                                      "data.calibration=" + (dir_ / "texts.txt"),
                                      "data.calibration_tokens=512"};
    words.insert(words.end(), more.begin(), more.end());
    return test::job_of("", words);
  }
  // The values of all matrices.
  std::map<std::string, std::vector<double>> load(const Mesh& mesh, const JobConfig& j) {
    std::map<std::string, std::vector<double>> out;
    const ModelSource source = model_source(j, nullptr);
    const auto model = make_job_model(j, source);
    redco::testing::on_mesh(mesh, [&](Context& c) {
      const ParamTree params = make_job_params(j, source, model.get(), model->params(), inference_storage(j));
      std::map<std::string, std::vector<double>> own;
      for (std::size_t i = 0; i < params.size(); ++i)
        if (params.values()[i].rank() == 2)
          own[params.specs()[i].name] = to_values(widened(params.values()[i]));
      if (c.rank() == 0) out = own;
    });
    return out;
  }

  test::TempDir dir_;
};

// The sum over the columns of importance times squared error.
double weighted_error(const std::vector<double>& x, const std::vector<double>& y,
                      const std::vector<float>& w) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += static_cast<double>(w[i % w.size()]) * (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}

TEST_F(Calibration, ErrorsOfImportantColumnsShrink) {
  const JobConfig calibrated = job({"model.weight_dtype=int4"});
  const ModelSource source = model_source(calibrated, nullptr);
  const auto model = make_job_model(calibrated, source);
  ckpt::Importances importances;
  redco::testing::on_one_rank([&](Context&) { importances = importance_of(calibrated); });
  const auto exact = load({1, 1}, job({"model.weight_dtype=fp32"}));
  const auto with = load({1, 1}, calibrated);
  auto plain_job = calibrated;
  plain_job.data.calibration.clear();
  const auto plain = load({1, 1}, plain_job);
  // All matrices of two layers and the head; the embedding is read by row.
  EXPECT_EQ(importances.size(), 2U * 7 + 1);
  double before = 0, after = 0;
  for (const auto& [name, w] : importances) {
    before += weighted_error(plain.at(name), exact.at(name), w);
    after += weighted_error(with.at(name), exact.at(name), w);
  }
  EXPECT_LT(after, 0.9 * before);
  EXPECT_EQ(with.at("model.embed_tokens.weight"), plain.at("model.embed_tokens.weight"));
}

TEST_F(Calibration, AllMeshesHaveTheSameWeights) {
  const JobConfig j = job({"model.weight_dtype=int4"});
  const auto one = load({1, 1}, j);
  std::filesystem::remove_all(dir_ / "cache/redco/calibration");
  EXPECT_EQ(load({2, 2}, j), one);
}

TEST_F(Calibration, ModelsAndJobsWithoutItsPartsAreErrors) {
  const auto refused = [&](const std::vector<std::string>& more) {
    const JobConfig j = job(more);
    const ModelSource source = model_source(j, nullptr);
    const auto model = make_job_model(j, source);
    return usage_error([&] {
      redco::testing::on_one_rank(
          [&](Context&) { make_job_params(j, source, model.get(), model->params(), inference_storage(j)); });
    });
  };
  EXPECT_THAT(refused({"model.path=" REDCO_FIXTURES "/bert-mlm", "model.weight_dtype=int4"}),
              HasSubstr("expected a decoder language model"));
  EXPECT_EQ(refused({}), "no error");  // a warning: nothing is int4
}

}  // namespace
}  // namespace redco
