// Optimizers composed of ops: the same values as the built-in one, on parts of parameters and in ranges.
#include "optim/rule_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "optim/make_optimizer.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using redco::testing::on_one_rank;
using ::testing::HasSubstr;

constexpr StateSharding kAll[] = {StateSharding::none, StateSharding::optimizer, StateSharding::gradients,
                                  StateSharding::parameters};

class AdamRule : public UpdateRule {
 public:
  explicit AdamRule(bool elementwise) : elementwise_(elementwise) {}
  bool elementwise() const override { return elementwise_; }
  std::vector<std::string> state() const override { return {"m", "v"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    if (elementwise_) EXPECT_LE(p.numel(), kMostElements);
    const auto n = static_cast<double>(c.updates);
    const Tensor m = 0.9 * state[0] + 0.1 * g, v = 0.999 * state[1] + 0.001 * square(g);
    const Tensor root = add_scalar(scale(sqrt(v), 1 / std::sqrt(1 - std::pow(0.999, n))), 1e-8);
    return {scale(p, 1 - c.learning_rate * c.weight_decay) -
                scale(m / root, c.learning_rate / (1 - std::pow(0.9, n))),
            {m, v}};
  }

 private:
  bool elementwise_;
};

// Divides the gradient by its norm, which all ranks share.
struct NormedRule : UpdateRule {
  Update update(const Tensor& p, const Tensor& g, const Tensors&, const UpdateContext& c) const override {
    return {p - c.learning_rate * (g / sqrt(sum_all(square(g))))};
  }
};

RuleSettings of(std::shared_ptr<const UpdateRule> rule) {
  return {.name = "test", .origin = "", .rule = std::move(rule), .weight_decay = 0.1};
}

// The parameters after three updates: a matrix of more elements than two ranges, a vector and a scalar.
using Values = std::vector<std::vector<double>>;
Values updated(const Mesh& mesh, StateSharding sharding, const OptimizerSettings& settings,
               bool stacked = false) {
  ModelParams model;
  SpecBuilder b(model);
  b.linear("a", 311, 1009, true, 1);
  b.add("one", {}, ParamKind::other, {Init::Kind::ones});
  if (stacked) {
    b.add("stack", {2, 7, 5}, ParamKind::other, {Init::Kind::ones});
    model.specs.back().cut = 0;
  }
  const auto layouts = shard_specs(model.specs, mesh.mp()).layouts;
  Values out;
  on_mesh(mesh, [&](Context& c) {
    const ParamStorage storage{.sharding = sharding, .trains = true};
    ParamTree params = make_params(model, layouts, storage);
    initialize(params, 1);
    const auto optimizer = make_optimizer(settings, params, sharding);
    for (u64 step = 0; step < 3; ++step) {
      std::vector<Tensor> grads;
      for (std::size_t i = 0; i < params.size(); ++i) {
        const Tensor& p = params.values()[i];
        grads.push_back(from_values(
            p.shape(), std::span<const double>(redco::testing::Random(10 * step + i).values(p.numel())),
            state_layout(p, sharding)));
        grads.back() = cast(grads.back(), DType::f32);
      }
      optimizer->update(params, grads, 0.01, 0.5);
    }
    Values mine;
    for (const Tensor& p : params.values()) mine.push_back(to_values(p));
    if (c.world().rank() == 0) out = mine;
  });
  return out;
}

void expect_near(const Values& a, const Values& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    double worst = 0;
    for (std::size_t k = 0; k < a[i].size(); ++k) worst = std::max(worst, std::abs(a[i][k] - b[i][k]));
    EXPECT_LE(worst, tolerance) << i;
  }
}

// With two shards a rank has one of two stacked matrices, whose rows the replicas share.
TEST(RuleOptimizer, StackedMatricesAreSharedByTheirRows) {
  const AdamWSettings adamw{.weight_decay = 0.1};
  const Values one = updated({1, 1}, StateSharding::none, adamw, true);
  for (const Mesh& mesh : {Mesh{2, 2}, Mesh{3, 2}})
    for (const StateSharding sharding : kAll)
      EXPECT_EQ(updated(mesh, sharding, adamw, true), one) << name_of(sharding);
}

// An update has a size of 0.01 and a few roundings of 6e-8 relative; a parameter has a size of 4.
TEST(RuleOptimizer, AdamOfOpsEqualsAdamW) {
  const Values adamw = updated({1, 1}, StateSharding::none, AdamWSettings{.weight_decay = 0.1});
  const RuleSettings whole = of(std::make_shared<AdamRule>(false)),
                     ranges = of(std::make_shared<AdamRule>(true));
  const Values one = updated({1, 1}, StateSharding::none, whole);
  expect_near(one, adamw, 2e-6);
  EXPECT_EQ(updated({1, 1}, StateSharding::none, ranges), one);
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{3, 1}})
    for (const StateSharding sharding : kAll) {
      EXPECT_EQ(updated(mesh, sharding, whole), one) << name_of(sharding);
      EXPECT_EQ(updated(mesh, sharding, ranges), one) << name_of(sharding);
    }
}

TEST(RuleOptimizer, AReductionIsOverTheWholeParameter) {
  const RuleSettings normed = of(std::make_shared<NormedRule>());
  const Values one = updated({1, 1}, StateSharding::none, normed);
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}})
    for (const StateSharding sharding : kAll) expect_near(updated(mesh, sharding, normed), one, 1e-6);
}

// The mean squares of each row and column, and of whole vectors; divides the gradient by their roots.
class MeansRule : public UpdateRule {
 public:
  explicit MeansRule(bool on_shards) : on_shards_(on_shards) {}
  bool on_shards() const override { return on_shards_; }
  std::vector<StateSpec> state_of(const ParamSpec& spec) const override {
    if (spec.shape.size() < 2) return {{"all", spec.shape}};
    return {{"rows", {spec.shape[0], 1}}, {"columns", {1, spec.shape[1]}}};
  }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const Tensor squares = square(g);
    Tensors now;
    Tensor size = p.rank() < 2 ? squares : mean(squares, {0, 1});
    if (p.rank() < 2)
      now = {0.9 * state[0] + 0.1 * squares};
    else
      now = {0.9 * state[0] + 0.1 * mean(squares, {1}, true),
             0.9 * state[1] + 0.1 * mean(squares, {0}, true)};
    Tensor step = g / sqrt(add_scalar(now[0], 1e-3));
    if (p.rank() == 2) step = step / sqrt(add_scalar(now[1], 1e-3)) * sqrt(size);
    return {p - c.learning_rate * step, now};
  }

 private:
  bool on_shards_;
};

TEST(RuleOptimizer, StateMayHaveOtherShapes) {
  const Values one = updated({1, 1}, StateSharding::none, of(std::make_shared<MeansRule>(false)));
  for (const bool on_shards : {false, true})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{3, 1}})
      for (const StateSharding sharding : kAll)
        // An update is 0.01 times a gradient of about 1 divided by about 0.1; sums of 1e3 squares in another
        // order differ by 1e-6.
        expect_near(updated(mesh, sharding, of(std::make_shared<MeansRule>(on_shards))), one, 1e-6);
}

struct ShapeRule : UpdateRule {
  bool each;
  Shape shape;
  ShapeRule(bool each, Shape shape) : each(each), shape(std::move(shape)) {}
  bool elementwise() const override { return each; }
  std::vector<StateSpec> state_of(const ParamSpec&) const override { return {{"m", shape}}; }
  Update update(const Tensor& p, const Tensor&, const Tensors& state, const UpdateContext&) const override {
    return {p, state};
  }
};

TEST(RuleOptimizer, ShapesOfStateAreChecked) {
  const auto error = [](bool each, const Shape& shape) -> std::string {
    try {
      updated({1, 1}, StateSharding::none, of(std::make_shared<ShapeRule>(each, shape)));
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(
      error(false, {311}),
      "[optimizer] the state 'm' of test for a.weight has the shape (311); expected the parameter's, (311, "
      "1009), where a dim may also be 1");
  EXPECT_THAT(error(false, {311, 2}), HasSubstr("where a dim may also be 1"));
  EXPECT_THAT(error(true, {311, 1}), HasSubstr("since elementwise() is true"));
}

// Elementwise in its words only.
struct SummedRule : UpdateRule {
  bool in_state;
  explicit SummedRule(bool in_state) : in_state(in_state) {}
  bool elementwise() const override { return true; }
  std::vector<std::string> state() const override { return {"sum"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state, const UpdateContext&) const override {
    if (!in_state) return {p - 0.01 * mean(g, {0}, true), {state[0]}};
    return {p, {state[0] + mean(g, {0}, true)}};
  }
};

TEST(RuleOptimizer, ARuleThatIsNotElementwiseIsFound) {
  for (const bool in_state : {false, true}) try {
      updated({1, 1}, StateSharding::none, of(std::make_shared<SummedRule>(in_state)));
      ADD_FAILURE() << in_state;
    } catch (const UsageError& e) {
      EXPECT_THAT(e.what(),
                  HasSubstr("[optimizer] elementwise() of test is true, but update() of a vector of 6"));
      EXPECT_THAT(e.what(), HasSubstr(in_state ? "of state 0" : "of the parameter"));
    }
}

// The old values, exchanged: results that are arguments which an update overwrites.
class ArgumentsRule : public UpdateRule {
 public:
  ArgumentsRule(bool elementwise, bool copies) : elementwise_(elementwise), copies_(copies) {}
  bool elementwise() const override { return elementwise_; }
  std::vector<std::string> state() const override { return {"old", "older", "gradient"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state, const UpdateContext&) const override {
    const auto kept = [&](const Tensor& t) { return copies_ ? add_scalar(t, 0) : t; };
    return {kept(state[1]) + g, {kept(p), kept(state[0]), kept(g)}};
  }

 private:
  bool elementwise_, copies_;
};

TEST(RuleOptimizer, AResultMayBeAnArgument) {
  const Values copied =
      updated({1, 1}, StateSharding::none, of(std::make_shared<ArgumentsRule>(false, true)));
  for (const bool elementwise : {false, true})
    EXPECT_EQ(
        updated({2, 1}, StateSharding::optimizer, of(std::make_shared<ArgumentsRule>(elementwise, false))),
        copied);
}

struct NamesRule : UpdateRule {
  std::vector<std::string> names;
  explicit NamesRule(std::vector<std::string> names) : names(std::move(names)) {}
  std::vector<std::string> state() const override { return names; }
  Update update(const Tensor& p, const Tensor&, const Tensors& state, const UpdateContext&) const override {
    return {p, state};
  }
};

TEST(RuleOptimizer, NamesOfStateAreChecked) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{""}, {"m", "m"}, {"a/b"}, {"master"}}) {
    try {
      updated({1, 1}, StateSharding::none, of(std::make_shared<NamesRule>(names)));
      ADD_FAILURE() << names.back();
    } catch (const UsageError& e) {
      EXPECT_THAT(e.what(), HasSubstr("the state of test for a.weight has the name '" + names.back() + "'"));
    }
  }
}

struct WrongRule : UpdateRule {
  int what;
  explicit WrongRule(int what) : what(what) {}
  std::vector<std::string> state() const override { return {"m"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state, const UpdateContext&) const override {
    if (what == 0) return {p};
    if (what == 1) return {sum_all(p), {state[0]}};
    if (what == 2) return {p, {Tensor()}};
    if (what == 3) return {cast(p, DType::f64), {state[0]}};
    if (what == 4) throw std::runtime_error("not today");
    return {p + reshape(g, {2, 3, 4}), {state[0]}};
  }
};

TEST(RuleOptimizer, WrongResultsAreNamed) {
  const char* said[] = {"returned 0 tensors of state; its state has 1",
                        "returned f32 ()",
                        "returned no state 'm'",
                        "returned f64 (311, 1009)",
                        "failed: not today",
                        "failed: "};
  for (int what = 0; what < 6; ++what) try {
      updated({1, 1}, StateSharding::none, of(std::make_shared<WrongRule>(what)));
      ADD_FAILURE() << what;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("[optimizer] update() of test for a.weight")) << what;
      EXPECT_THAT(e.what(), HasSubstr(said[what])) << what;
    }
}

}  // namespace
}  // namespace redco
