// Random draws in loss() and predict(): an example gets the same numbers on every mesh, in every micro-batch
// size, and in every order of the answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograd/grad.h"
#include "base/error.h"
#include "models/spec_builder.h"
#include "ops/attention.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "support/ranks.h"
#include "train/predictor.h"
#include "train/step.h"

namespace redco {
namespace {

using redco::testing::on_mesh;

// Regression of noise on noisy inputs.
class Noisy : public Pipeline {
 public:
  explicit Noisy(bool fixed) : fixed_(fixed) {
    SpecBuilder s(params_);
    s.linear("fc1", kOut, kIn, false, 1);
  }
  const ModelParams& params() const override { return params_; }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = value_rows(mine, s, "x", {kIn});
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext&) const override {
    Context& c = Context::current();
    const Tensor x = b["x"] + draw(random_normal, {b.shape.rows, kIn}, c.key("input"));
    const Tensor y = dropout(linear(x, p["fc1.weight"]), 0.25, c.key("dropout"));
    return {{"loss", sum_all(square(y - draw(random_uniform, {b.shape.rows, kOut}, c.key("target"))))}};
  }
  // Three draws for each example.
  std::vector<std::string> predict(const ParamTree&, std::span<const Example> examples,
                                   const StepContext&) const override {
    const i64 n = static_cast<i64>(examples.size());
    const std::vector<double> v = to_values(random_normal({3 * n, 2}, Context::current().key("answer")));
    std::vector<std::string> out;
    for (i64 i = 0; i < n; ++i)
      out.push_back(fmt::format("{} {} {}", examples[i].text, v[6 * i], v[6 * i + 5]));
    return out;
  }

 private:
  using Draw = Tensor (*)(const Shape&, u64);
  Tensor draw(Draw of_rows, const Shape& shape, u64 key) const {
    return fixed_ ? random_normal(shape, key, {}) : of_rows(shape, key);
  }
  static constexpr i64 kIn = 3, kOut = 4;
  bool fixed_;
  ModelParams params_;
};

std::vector<Example> noisy_rows(i64 n) {
  std::vector<Example> out(static_cast<std::size_t>(n));
  for (i64 i = 0; i < n; ++i) {
    Example& e = out[static_cast<std::size_t>(i)];
    e.ordinal = i;
    e.values["x"] = {static_cast<float>(i), 1, -0.5f};
    e.text = std::string(static_cast<std::size_t>(7 * i % 5 + 1), 'a');  // predict() deals the longest first
  }
  return out;
}

// Loss and gradient norm of a step of 7 examples.
std::pair<double, double> noisy_step(const Mesh& mesh, i64 per_micro_batch, bool fixed) {
  std::pair<double, double> result;
  on_mesh(mesh, [&](Context& c) {
    c.random = {.seed = 3};
    Noisy pipeline(fixed);
    ParamTree params =
        make_params(pipeline.params(), shard_specs(pipeline.params().specs, mesh.mp()).layouts);
    initialize(params, 3);
    const std::vector<Example> all = noisy_rows(7);
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    for (i64 first = 0; first < 7; first += per_micro_batch) {
      const i64 n = std::min(per_micro_batch, 7 - first);
      BatchShape shape{.rows = n, .mine = shard_range(n, 1, mesh.dp(), c.coord().dp()), .length = 1};
      batches.push_back(
          pipeline.collate(std::span(all).subspan(static_cast<std::size_t>(first + shape.mine.begin),
                                                  static_cast<std::size_t>(shape.mine.size())),
                           shape));
      offsets.push_back(first);
    }
    TrainStep step(pipeline, params, {});
    const StepOutcome o = step.run(batches, offsets, 0, 0, 0);
    if (c.rank() == 0) result = {o.loss, o.grad_norm};
  });
  return result;
}

TEST(RandomRows, ALossDoesNotDependOnMicroBatchesAndMeshes) {
  const auto one = noisy_step({1, 1}, 7, false);
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{3, 2}})
    for (const i64 rows : {1, 3, 7}) {
      const auto other = noisy_step(mesh, rows, false);
      EXPECT_NEAR(other.first, one.first, 1e-5 * one.first) << rows << " rows a micro-batch";
      EXPECT_NEAR(other.second, one.second, 1e-5 * one.second) << rows << " rows a micro-batch";
    }
  // Draws that are not of the batch repeat in each micro-batch, so this comparison notices them.
  const double fixed = noisy_step({1, 1}, 7, true).first;
  EXPECT_GT(std::abs(noisy_step({1, 1}, 3, true).first - fixed), 1e-2 * fixed);
}

TEST(RandomRows, AnswersDependOnTheOrdinals) {
  const std::vector<Example> all = noisy_rows(7);
  std::vector<std::string> one;
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{3, 2}})
    for (const i64 rows : {1, 3, 7})
      on_mesh(mesh, [&](Context& c) {
        c.random = {.seed = 3};
        Noisy pipeline(false);
        const ParamTree params =
            make_params(pipeline.params(), shard_specs(pipeline.params().specs, mesh.mp()).layouts);
        const std::vector<std::string> answers = predict(pipeline, params, all, rows);
        if (c.rank() > 0) return;
        if (one.empty()) one = answers;
        EXPECT_EQ(answers, one) << rows << " rows a call";
      });
  std::sort(one.begin(), one.end());
  EXPECT_EQ(std::unique(one.begin(), one.end()), one.end());
}

// Two passes of the same examples through a layer with dropout.
class TwoPasses : public Pipeline {
 public:
  TwoPasses(bool named, bool recomputed, bool first_is_fixed, bool in_block)
      : named_(named), recomputed_(recomputed), first_is_fixed_(first_is_fixed), in_block_(in_block) {
    SpecBuilder s(params_);
    s.linear("fc1", kWidth, kWidth, false, 1);
  }
  const ModelParams& params() const override { return params_; }
  Batch collate(std::span<const Example>, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = full({kWidth, kWidth}, 0.5);
    b.weights["loss"] = 1;
    return b;
  }
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    Tensor sum;
    for (const int k : {0, 1}) {
      const auto scope = named_ ? ctx.scope("pass", k) : nullptr;
      const Restore<bool> recording(Context::current().recording, k == 1 || !first_is_fixed_);
      const auto layer = [&](const Tensor& x) {
        return dropout(linear(x, p["fc1.weight"]), 0.25, Context::current().key("hidden"));
      };
      const auto block = [&] {
        return run_block(p, {.recompute_blocks = recomputed_}, "h.0", b["x"],
                         [](const ParamTree& q, const Tensor& x) {
                           const Tensor y = linear(x, q["fc1.weight"]);
                           return dropout(y, 0.25, Context::current().key("hidden"));
                         });
      };
      const Tensor z = in_block_ ? block() : recomputed_ ? recompute(layer, b["x"]) : layer(b["x"]);
      const Tensor y = sum_all(square(z));
      sum = sum.defined() ? sum + y : y;
    }
    return {{"loss", sum}};
  }

 private:
  static constexpr i64 kWidth = 3;
  bool named_, recomputed_, first_is_fixed_, in_block_;
  ModelParams params_;
};

TEST(RandomRows, TheFirstStepTellsOfPassesWithTheSameDraws) {
  on_mesh({1, 1}, [](Context&) {
    const auto repeated = [](bool named, bool recomputed, bool first_is_fixed, bool in_block = false) {
      TwoPasses pipeline(named, recomputed, first_is_fixed, in_block);
      ParamTree params = make_params(pipeline.params(), shard_specs(pipeline.params().specs, 1).layouts);
      initialize(params, 3);
      const Batch batch = pipeline.collate({}, {.rows = 3, .mine = {0, 3}, .length = 1});
      TrainStep step(pipeline, params, {});
      // A key is asked for again in the second micro-batch and in the second step, which is no mistake.
      const std::string found = step.run({batch, batch}, {0, 3}, 0, 0, 0).repeated_key;
      EXPECT_EQ(step.run({batch}, {0}, 1, 0, 0).repeated_key, "");
      return found;
    };
    for (const bool recomputed : {false, true}) {
      EXPECT_EQ(repeated(false, recomputed, false), "'hidden'");
      EXPECT_EQ(repeated(true, recomputed, false), "");
      EXPECT_EQ(repeated(false, recomputed, false, true), "'hidden' in 'h.0'");
      EXPECT_EQ(repeated(true, recomputed, false, true), "");
      EXPECT_EQ(repeated(false, recomputed, true), "");  // a pass without tape is a target, which may repeat
    }
  });
}

}  // namespace
}  // namespace redco
