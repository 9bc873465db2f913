// data.calibration: int4 with the importance of columns, and feedback of rounding errors.
#include "assembly/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "ckpt/params_io.h"
#include "ops/create.h"
#include "ops/input_moments.h"
#include "ops/redistribute.h"
#include "support/error_text.h"
#include "support/jobs.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

using Values = std::map<std::string, std::vector<double>>;

Values values_of(const ParamTree& params) {
  Values out;
  for (std::size_t i = 0; i < params.size(); ++i)
    if (params.values()[i].rank() == 2) out[params.specs()[i].name] = to_values(widened(params.values()[i]));
  return out;
}

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
  // The parameters of the job on a mesh. f: called on each rank.
  void with_params(const Mesh& mesh, const JobConfig& j,
                   const std::function<void(Context&, const Model&, const ParamTree&)>& f) {
    const ModelSource source = model_source(j, nullptr);
    const auto model = make_job_model(j, source);
    redco::testing::on_mesh(mesh, [&](Context& c) {
      f(c, *model, make_job_params(j, source, model.get(), model->params(), inference_storage(j)));
    });
  }
  // The values of all matrices.
  Values load(const Mesh& mesh, const JobConfig& j) {
    Values out;
    with_params(mesh, j, [&](Context& c, const Model&, const ParamTree& params) {
      const Values own = values_of(params);
      if (c.rank() == 0) out = own;
    });
    return out;
  }
  // Mean products of the inputs of each matrix, on a part of the texts.
  std::map<std::string, std::vector<float>> products(const JobConfig& j) {
    std::map<std::string, std::vector<float>> out;
    with_params({1, 1}, j, [&](Context&, const Model& model, const ParamTree& params) {
      std::vector<i32> ids;
      for (int i = 0; ids.size() < 128; ++i)
        for (const char c : "A line of text, number " + std::to_string(i * i) + ".\n") ids.push_back(c);
      ids.resize(128);
      const std::vector<i32> ones(ids.size(), 1);
      NoGrad off;
      InputMoments moments(Tensors(params.values().begin(), params.values().end()), i64{1} << 30);
      model.apply(params, {from_ids({1, 128}, ids), from_ids({1, 128}, model.positions(ones, false)), {}},
                  {});
      moments.take([&](const InputMoments::Product& p) {
        for (std::size_t i = 0; i < params.size(); ++i)
          for (const Tensor& w : p.weights)
            if (w.same_bytes(params.values()[i])) out[params.specs()[i].name] = p.products;
      });
    });
    return out;
  }
  // With mean squares of the inputs alone, as where their products do not fit into the memory.
  Values load_with_squares(const JobConfig& j) {
    const ModelSource source = model_source(j, nullptr);
    const auto model = make_job_model(j, source);
    Values out;
    redco::testing::on_one_rank([&](Context&) {
      ckpt::Importances importances = importance_of(j);
      // All matrices of two layers and the head; the embedding is read by row.
      EXPECT_EQ(importances.size(), 2U * 7 + 1);
      for (auto& [name, importance] : importances) {
        EXPECT_TRUE(importance.feedback) << name;
        importance.feedback.reset();
      }
      const ParamStorage storage = inference_storage(j);
      const auto sharded = shard_specs(model->params().specs, 1, {}, storage.weights);
      ParamTree tree = make_params(model->params(), sharded.layouts, storage);
      const auto canonical = [&](const std::string& n) { return model->canonical_name(n); };
      ckpt::load_params(tree, ckpt::ModelFiles::open(source.folder), canonical, {}, "", nullptr, {},
                        &importances);
      out = values_of(tree);
    });
    return out;
  }

  test::TempDir dir_;
};

// The mean of |x (W - Q)^T|^2 over inputs x, whose mean products are p; or as if they were not correlated.
double output_error(const std::vector<double>& w, const std::vector<double>& q, const std::vector<float>& p,
                    bool correlated) {
  const auto n = static_cast<std::size_t>(std::lround(std::sqrt(p.size())));
  double sum = 0;
  for (std::size_t row = 0; row < w.size(); row += n)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = correlated ? 0 : i; k < (correlated ? n : i + 1); ++k)
        sum += (w[row + i] - q[row + i]) * (w[row + k] - q[row + k]) * static_cast<double>(p[n * i + k]);
  return sum;
}

TEST_F(Calibration, ErrorsOfOutputsShrink) {
  const JobConfig calibrated = job({"model.weight_dtype=int4"});
  auto plain_job = calibrated;
  plain_job.data.calibration.clear();
  const Values exact = load({1, 1}, job({"model.weight_dtype=fp32"})), plain = load({1, 1}, plain_job),
               squares = load_with_squares(calibrated), with = load({1, 1}, calibrated);
  double plain_columns = 0, squares_columns = 0, of_squares = 0, of_all = 0;
  for (const auto& [name, p] : products(plain_job)) {
    plain_columns += output_error(exact.at(name), plain.at(name), p, false);
    squares_columns += output_error(exact.at(name), squares.at(name), p, false);
    of_squares += output_error(exact.at(name), squares.at(name), p, true);
    of_all += output_error(exact.at(name), with.at(name), p, true);
  }
  EXPECT_LT(squares_columns, 0.9 * plain_columns);
  EXPECT_LT(of_all, 0.75 * of_squares);
  EXPECT_EQ(with.at("model.embed_tokens.weight"), plain.at("model.embed_tokens.weight"));
}

// Meshes add products in another order. A number that lies between two codes may then take the other one, and
// its error moves later columns. Here at most one number in a hundred differs.
TEST_F(Calibration, AllMeshesHaveTheSameWeights) {
  const JobConfig j = job({"model.weight_dtype=int4"});
  const Values one = load({1, 1}, j);
  EXPECT_EQ(load({1, 1}, j), one) << "from the cache";
  for (const Mesh& mesh : {Mesh(2, 1), Mesh(1, 2), Mesh(2, 2)}) {
    std::filesystem::remove_all(dir_ / "cache/redco/calibration");
    i64 all = 0, others = 0;
    for (const auto& [name, values] : load(mesh, j))
      for (std::size_t i = 0; i < values.size(); ++i, ++all) others += values[i] == one.at(name)[i] ? 0 : 1;
    EXPECT_LE(others, all / 100) << mesh.ranks();
    EXPECT_GT(all, 0);
  }
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
