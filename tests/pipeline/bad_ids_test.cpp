// A label or token id that an op does not accept ends training, evaluation and prediction with one error on
// all ranks, and no parameter is updated.
#include "pipeline/bad_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/spec_builder.h"
#include "nn/layers.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "support/ranks.h"
#include "train/evaluate.h"
#include "train/predictor.h"
#include "train/step.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using ::testing::HasSubstr;

constexpr i64 kTokens = 5, kLabels = 4;

// Labels of single tokens.
class LabelsOfTokens : public Pipeline {
 public:
  LabelsOfTokens() {
    SpecBuilder b(params_);
    b.embedding("tokens.weight", kTokens, 3, 0.5);
    b.linear("head", kLabels, 3, false, 0.5);
    settings = std::make_shared<PipelineSettings>();
  }
  const ModelParams& params() const override { return params_; }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    std::vector<i32> tokens, labels;
    for (const Example& e : mine) {
      tokens.push_back(e.ids.at("token")[0]);
      labels.push_back(e.ids.at("label")[0]);
    }
    b.fields["tokens"] = from_local_ids({s.rows}, tokens);
    b.fields["labels"] = from_local_ids({s.rows}, labels);
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext&) const override {
    return {{"loss", sum_all(cross_entropy(logits(p, b["tokens"]), b["labels"]))}};
  }
  std::vector<std::string> predict(const ParamTree& p, std::span<const Example> examples,
                                   const StepContext&) const override {
    std::vector<i32> tokens;
    for (const Example& e : examples) tokens.push_back(e.ids.at("token")[0]);
    to_values(logits(p, from_ids({static_cast<i64>(tokens.size())}, tokens)));
    return std::vector<std::string>(examples.size(), "{}");
  }

 private:
  static Tensor logits(const ParamTree& p, const Tensor& tokens) {
    return dense(p, "head", embedding(p["tokens.weight"], tokens), {});
  }
  ModelParams params_;
};

struct TokenLabel {
  i32 token, label;
};
// Four rows; the last one is another replica's if there are several.
std::vector<Example> rows_with(const TokenLabel& last) {
  std::vector<Example> out(4);
  for (i32 i = 0; i < 4; ++i) {
    Example& e = out[static_cast<std::size_t>(i)];
    e.ordinal = i;
    e.ids["token"] = {i == 3 ? last.token : i};
    e.ids["label"] = {i == 3 ? last.label : i % 2 ? kIgnoredLabel : 1};
  }
  return out;
}

// What each rank's error says; "": none. The parameters must not change in a step that fails.
std::vector<std::string> errors_of(const Mesh& mesh, const std::string& origin, const TokenLabel& last,
                                   const std::string& what) {
  std::vector<std::string> said(static_cast<std::size_t>(mesh.ranks()));
  on_mesh(mesh, [&](Context& c) {
    LabelsOfTokens pipeline;
    pipeline.origin = origin;
    ParamTree params = make_params(pipeline.params(), shard_specs(pipeline.params().specs, mesh.mp()).layouts,
                                   {.trains = true});
    initialize(params, 3);
    const std::vector<Example> all = rows_with(last);
    const auto values = [&] { return to_values(params["head.weight"]); };
    const std::vector<double> before = values();
    std::string& mine = said[static_cast<std::size_t>(c.rank())];
    try {
      if (what == "step") {
        const Range own = shard_range(4, 1, mesh.dp(), c.coord().dp());
        const Batch batch = pipeline.collate(
            std::span(all).subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.size())),
            {.rows = 4, .mine = own, .length = 1});
        TrainStep step(pipeline, params, {.optimizer = SgdSettings{}});
        step.run({batch}, {0}, 2, 0, 0.5);
      } else if (what == "evaluation") {
        evaluate(pipeline, params, std::make_shared<ExampleList>(all, "rows"), 2);
      } else {
        predict(pipeline, params, all, 2);
      }
    } catch (const Error& e) {
      mine = fmt::format("{}: {}", static_cast<int>(e.code()), e.what());
    }
    EXPECT_EQ(values() == before, !mine.empty() || what != "step");
  });
  return said;
}

TEST(BadIds, EndTrainingEvaluationAndPredictionOnAllRanks) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}}) {
    const auto expect = [&](const std::string& origin, const TokenLabel& last, const std::string& what,
                            const std::string& error) {
      for (const std::string& said : errors_of(mesh, origin, last, what))
        if (error.empty())
          EXPECT_EQ(said, "");
        else
          EXPECT_THAT(said, HasSubstr(error)) << what << " on " << mesh.dp() << "x" << mesh.mp();
    };
    for (const std::string what : {"step", "evaluation", "prediction"}) expect("", {4, 3}, what, "");
    expect("", {4, 4}, "step", "3: [data] step 3: cross_entropy() got the label 4; expected 0 to 3, because");
    expect("./x.so (job.yaml:1:11)", {4, -1}, "step",
           "2: [pipeline] step 3: cross_entropy() got the label -1; expected 0 to 3, because");
    expect("./x.so (job.yaml:1:11)", {4, 4}, "evaluation",
           "2: [pipeline] evaluation: cross_entropy() got the label 4;");
    expect("", {5, 4}, "evaluation", "3: [data] evaluation: embedding() got the id 5; expected 0 to 4");
    expect("./x.so (job.yaml:1:11)", {-2, 0}, "prediction",
           "2: [pipeline] predict(): embedding() got the id -2; expected 0 to 4, because the table has 5 "
           "rows");
  }
}

}  // namespace
}  // namespace redco
