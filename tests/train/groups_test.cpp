// Parameter groups in a step: periods, learning rate factors, moving averages, and each group's own AdamW
// step count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/error.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "train/checkpoint.h"
#include "train/step.h"

namespace redco {
namespace {

using redco::testing::on_mesh;

constexpr i64 kWidth = 3;  // uneven on two shards

// Terms sum (a - x)^2 / 2 and sum (b - 2 x)^2 / 2 over rows x, so that with one row the gradients are a - x
// and b - 2 x.
class Two : public Pipeline {
 public:
  Two() {
    SpecBuilder s(params_);
    for (const char* name : {"a.fc1", "b.fc1", "slow.a.fc1"}) s.linear(name, kWidth, kWidth, false, 1);
  }
  const ModelParams& params() const override { return params_; }
  Batch collate(std::span<const Example>, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = full({kWidth, kWidth}, 0.25);
    b.weights["first"] = b.weights["second"] = s.mine.begin == 0 ? 1 : 0;
    return b;
  }
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext&) const override {
    auto half = [](const Tensor& d) { return 0.5 * sum_all(square(d)); };
    return {{"first", half(p["a.fc1.weight"] - b["x"])}, {"second", half(p["b.fc1.weight"] - 2.0 * b["x"])}};
  }
  std::vector<ParamGroup> groups() const override {
    auto begins = [](const std::string& with) {
      return [with](const std::string& n) { return n.starts_with(with); };
    };
    ParamGroup slow{.name = "slow", .has = begins("slow."), .period = 3};
    slow.ema_of = [](const std::string& n) { return n.substr(5); };
    slow.tau = 0.25;
    return {
        {.name = "often", .has = begins("a."), .term = "first"},
        {.name = "seldom", .has = begins("b."), .term = "second", .learning_rate_factor = 0.5, .period = 2},
        slow};
  }

 private:
  ModelParams params_;
};

// PyTorch's AdamW for one number, in fp64.
struct Slow {
  double p, m = 0, v = 0;
  int t = 0;
  void update(double g, double lr, double decay) {
    ++t;
    p *= 1 - lr * decay;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= lr * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
};

void check(Context& c, i64 resume_at, StateSharding sharding = StateSharding::none,
           DType weights = DType::f32) {
  c.random.seed = 5;
  Two pipeline;
  ParamTree params = make_params(
      pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts, {.sharding = sharding});
  initialize(params, 5);
  std::vector<Slow> a, b, slow;
  for (const double v : to_values(params["a.fc1.weight"])) a.push_back({v}), slow.push_back({v});
  for (const double v : to_values(params["b.fc1.weight"])) b.push_back({v});

  const StepOptions options{
      .optimizer = AdamWSettings{.weight_decay = 0.1}, .sharding = sharding, .weights = weights};
  auto step = std::make_unique<TrainStep>(pipeline, params, options);
  step->start_averages();
  for (i64 s = 0; s < 7; ++s) {
    if (s == resume_at) {  // another optimizer with this one's state
      auto again = std::make_unique<TrainStep>(pipeline, params, options);
      const auto from = step->state(), to = again->state();
      for (size_t i = 0; i < from.size(); ++i)
        for (size_t k = 0; k < from[i].tree.size(); ++k)
          c.run(&Kernels::copy, from[i].tree.values()[k], to[i].tree.values()[k]);
      TrainState state{.step = s,
                       .optimizer_steps = step->updates(),
                       .group_steps = step->group_updates(),
                       .n_examples = 1};
      state.global_batch_size = 1;
      const TrainState read = parse_state(to_json(state), "state.json");
      again->set_updates(read.optimizer_steps, read.group_steps);
      step = std::move(again);
    }
    const BatchShape shape{.rows = 1, .mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
    step->run({pipeline.collate({}, shape)}, {0}, s, 0, 0.02, {});
    // Gradients are those at the weights that the loss sees.
    const auto seen = [&](double p) {
      const auto bits = std::bit_cast<u32>(static_cast<float>(p));
      return weights == DType::bf16 ? std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000)
                                    : p;
    };
    for (Slow& x : a) x.update(seen(x.p) - 0.25, 0.02, 0.1);
    if (s % 2 == 0)
      for (Slow& x : b) x.update(seen(x.p) - 0.5, 0.01, 0.1);
    if (s % 3 == 0)
      for (size_t i = 0; i < a.size(); ++i) slow[i].p = 0.25 * a[i].p + 0.75 * slow[i].p;
    const std::map<std::string, std::vector<Slow>*> all = {{"a", &a}, {"b", &b}, {"slow.a", &slow}};
    for (const auto& [name, wanted] : all) {
      const auto got = to_values(step->masters()[name + ".fc1.weight"]);
      // fp32 against fp64: each of seven updates rounds p, of size about 1, and the moments: 7 x a few 6e-8.
      // With the other group's step count, the second update of b would differ by 0.19 / 0.27 of 0.01.
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], (*wanted)[i].p, 3e-6) << name << " " << i << " after step " << s;
    }
  }
  EXPECT_EQ(step->updates(), 7);
  EXPECT_EQ(step->group_updates(), (std::map<std::string, i64>{{"often", 7}, {"seldom", 4}}));
}

TEST(Groups, EachGroupHasItsPeriodRateAverageAndStepCount) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}, Mesh{2, 2}})
    on_mesh(mesh, [](Context& c) { check(c, -1); });
}

class Warming : public Two {
 public:
  std::vector<ParamGroup> groups() const override {
    auto all = Two::groups();
    all[2].period = 1;
    all[2].tau_of = [](i64 step) { return step == 0 ? 1 : step == 3 ? 2 : 0.5; };
    return all;
  }
};

TEST(Groups, AMovingAverageMayHaveARateOfTheStep) {
  redco::testing::on_mesh({2, 2}, [](Context& c) {
    Warming pipeline;
    ParamTree params =
        make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts);
    initialize(params, 5);
    TrainStep step(pipeline, params, {.optimizer = SgdSettings{}});
    std::vector<double> slow;
    const auto run = [&](i64 s) {
      const Range mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp());
      step.run({pipeline.collate({}, {.rows = 1, .mine = mine, .length = 1})}, {0}, s, 0, 0.5);
    };
    for (i64 s = 0; s < 3; ++s) {
      run(s);
      const std::vector<double> a = to_values(params["a.fc1.weight"]);
      slow.resize(a.size());
      for (size_t i = 0; i < a.size(); ++i) slow[i] = s == 0 ? a[i] : (a[i] + slow[i]) / 2;
      EXPECT_LT(redco::testing::distance(to_values(params["slow.a.fc1.weight"]), slow), 1e-6);
    }
    EXPECT_THAT(usage_error([&] { run(3); }), ::testing::HasSubstr("'slow' has tau=2 in step 4"));
  });
}

TEST(Groups, TheSameWithShardedState) {
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{3, 2}})
    for (const StateSharding sharding :
         {StateSharding::optimizer, StateSharding::gradients, StateSharding::parameters})
      on_mesh(mesh, [&](Context& c) { check(c, -1, sharding); });
}

// The average follows the master weights: its steps are smaller than bf16 resolves.
TEST(Groups, TheSameForWeightsInBf16) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}})
    for (const StateSharding sharding : {StateSharding::none, StateSharding::parameters})
      on_mesh(mesh, [&](Context& c) { check(c, -1, sharding, DType::bf16); });
}

// The first group is clipped by its own norm and has its own schedule; the others are clipped together.
class Clipped : public Two {
 public:
  std::vector<ParamGroup> groups() const override {
    auto all = Two::groups();
    all.resize(2);
    all[0].clip_grad_norm = 0.125;
    all[0].learning_rate = [](i64 step, double of_job) { return step == 0 ? 0 : 3 * of_job; };
    all[1].period = 1;
    return all;
  }
};

TEST(Groups, HaveTheirOwnClippingAndSchedule) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 2}})
    on_mesh(mesh, [](Context& c) {
      c.random.seed = 5;
      Clipped pipeline;
      ParamTree params =
          make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts);
      initialize(params, 5);
      TrainStep step(pipeline, params, {.clip_grad_norm = 0.25, .optimizer = SgdSettings{}});
      std::vector<double> a = to_values(params["a.fc1.weight"]), b = to_values(params["b.fc1.weight"]);
      // One step of SGD of p towards `target`; returns the norm of the gradient.
      const auto descend = [](std::vector<double>& p, double target, double rate, double clip) {
        double norm = 0;
        for (const double v : p) norm += (v - target) * (v - target);
        norm = std::sqrt(norm);
        for (double& v : p) v -= rate * (v - target) * std::min(1.0, clip / (norm + 1e-6));
        return norm;
      };
      for (i64 s = 0; s < 3; ++s) {
        const BatchShape shape{
            .rows = 1, .mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
        const StepOutcome o = step.run({pipeline.collate({}, shape)}, {0}, s, 0, 0.5);
        const double first = descend(a, 0.25, s == 0 ? 0 : 1.5, 0.125), second = descend(b, 0.5, 0.25, 0.25);
        EXPECT_NEAR(o.grad_norm, std::hypot(first, second), 1e-6);
        EXPECT_LT(redco::testing::distance(to_values(params["a.fc1.weight"]), a), 1e-6);
        EXPECT_LT(redco::testing::distance(to_values(params["b.fc1.weight"]), b), 1e-6);
      }
    });
}

// The second group has SGD with momentum, the rest the AdamW of the job.
class Mixed : public Two {
 public:
  std::vector<ParamGroup> groups() const override {
    auto all = Two::groups();
    all[1].optimizer = SgdSettings{.momentum = 0.5};
    all[1].period = 1;
    return all;
  }
};

TEST(Groups, AGroupMayHaveItsOwnOptimizer) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{2, 2}})
    on_mesh(mesh, [](Context& c) {
      Mixed pipeline;
      ParamTree params =
          make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts);
      initialize(params, 5);
      std::vector<Slow> a;
      for (const double v : to_values(params["a.fc1.weight"])) a.push_back({v});
      std::vector<double> b = to_values(params["b.fc1.weight"]), momentum(b.size());
      TrainStep step(pipeline, params, {.optimizer = AdamWSettings{.weight_decay = 0.1}});
      EXPECT_EQ(step.optimizer_name(), "adamw, seldom: sgd with momentum");
      for (i64 s = 0; s < 4; ++s) {
        const BatchShape shape{
            .rows = 1, .mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
        step.run({pipeline.collate({}, shape)}, {0}, s, 0, 0.02);
        for (Slow& x : a) x.update(x.p - 0.25, 0.02, 0.1);
        for (size_t i = 0; i < b.size(); ++i) b[i] -= 0.01 * (momentum[i] = 0.5 * momentum[i] + b[i] - 0.5);
        const auto got = to_values(params["a.fc1.weight"]);
        for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(got[i], a[i].p, 3e-6);
        EXPECT_LT(redco::testing::distance(to_values(params["b.fc1.weight"]), b), 1e-6);
      }
      // Each parameter has the state of one optimizer only, and the average's target has none.
      std::map<std::string, std::vector<std::string>> states;
      for (const Optimizer::State& s : step.state())
        for (const ParamSpec& p : s.tree.specs()) states[s.name].push_back(p.name);
      const std::vector<std::string> of_job = {"a.fc1.weight"};
      EXPECT_EQ(states,
                (std::map<std::string, std::vector<std::string>>{
                    {"exp_avg", of_job}, {"exp_avg_sq", of_job}, {"momentum_buffer", {"b.fc1.weight"}}}));
    });
}

TEST(Groups, StepCountsAreRestoredFromACheckpoint) {
  on_mesh({1, 2}, [](Context& c) { check(c, 3); });
}

TEST(Groups, StepCountsOfAnotherPipelineAreRejected) {
  redco::testing::on_one_rank([](Context&) {
    Two pipeline;
    ParamTree params = make_params(pipeline.params(), shard_specs(pipeline.params().specs, 1).layouts);
    initialize(params, 1);
    TrainStep step(pipeline, params, {});
    EXPECT_THROW(step.set_updates(3, {{"often", 3}}), ContentsError);
    EXPECT_THROW(step.set_updates(3, {{"often", 3}, {"seldom", 2}, {"slow", 1}}), ContentsError);
    step.set_updates(3, {{"often", 3}, {"seldom", 2}});
    EXPECT_EQ(step.group_updates(), (std::map<std::string, i64>{{"often", 3}, {"seldom", 2}}));
  });
}

TEST(Groups, StepCountsInTheStateAreChecked) {
  TrainState s{.step = 3, .optimizer_steps = 3, .group_steps = {{"all", 3}}, .n_examples = 4};
  s.global_batch_size = 2;
  EXPECT_EQ(parse_state(to_json(s), "x").group_steps, s.group_steps);
  s.group_steps["all"] = -1;
  EXPECT_THROW(parse_state(to_json(s), "x"), ContentsError);
  s.group_steps["all"] = 3;
  s.n_examples = 0;
  EXPECT_THROW(parse_state(to_json(s), "x"), ContentsError);
}

// Saved examples have the same bits: JSON keeps floats exactly.
TEST(Examples, JsonKeepsThemExactly) {
  Example e;
  e.ordinal = 7;
  e.text = "\"quoted\" \xc3\xa9";
  e.ids["tokens"] = {1, -100, 2147483647};
  e.values["x"] = {0.1f, -1e-38f, 16777217.0f, 3.14159274f, 1e-45f};
  const auto back = examples_from_json(examples_to_json({e, {}}));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].ordinal, 7);
  EXPECT_EQ(back[0].text, e.text);
  EXPECT_EQ(back[0].ids, e.ids);
  EXPECT_EQ(back[0].values, e.values);
  EXPECT_TRUE(back[1].values.empty());
  e.values["x"] = {NAN};
  EXPECT_THROW(examples_to_json({e}), Error);
  for (const char* bad : {"", "{", "[1]", "[{\"ordinal\": \"x\"}]", "{\"a\": 1}"})
    EXPECT_THROW(examples_from_json(bad), ContentsError) << bad;
}

// Depends on a alone, or on nothing.
class Some : public Two {
 public:
  explicit Some(bool none) : none_(none) {}
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext&) const override {
    const Tensor a = p["a.fc1.weight"] - b["x"];
    return {{"first", sum_all(square(none_ ? stop_gradient(a) : a))}};
  }
  std::vector<ParamGroup> groups() const override { return Pipeline::groups(); }

 private:
  bool none_;
};

TEST(Groups, ParametersWithoutGradientAreKnown) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}})
    on_mesh(mesh, [&](Context& c) {
      for (const bool none : {false, true}) {
        Some pipeline(none);
        ParamTree params =
            make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts, {});
        initialize(params, 5);
        TrainStep step(pipeline, params, {.optimizer = AdamWSettings{}});
        const BatchShape shape{
            .rows = 1, .mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
        const auto run = [&] { return step.run({pipeline.collate({}, shape)}, {0}, 0, 0, 0.02, {}); };
        if (none)
          EXPECT_THROW(run(), BugError);
        else
          EXPECT_EQ(run().unreached, (std::vector<size_t>{1, 2}));
      }
    });
}

// A moving average needs no optimizer state, and a group may minimize several terms.
class Sums : public Two {
 public:
  explicit Sums(double factor) : factor_(factor) {}
  std::vector<ParamGroup> groups() const override {
    auto all = Two::groups();
    all[0].has = [](const std::string& n) { return !n.starts_with("slow."); };
    all[0].plus = {{"second", factor_}};
    return {all[0], all[2]};
  }

 private:
  double factor_;
};

TEST(Groups, SeveralTermsHaveFactors) {
  on_mesh(Mesh(2, 1), [](Context& c) {
    Sums pipeline(3);
    ParamTree params =
        make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts, {});
    initialize(params, 5);
    StepOptions options{.optimizer = SgdSettings{}};
    std::vector<double> a, b;
    options.on_gradients = [&](const std::vector<Tensor>& g) {
      a = to_values(g[0]);
      b = to_values(g[1]);
    };
    TrainStep step(pipeline, params, options);
    const std::vector<double> at_a = to_values(params["a.fc1.weight"]),
                              at_b = to_values(params["b.fc1.weight"]);
    const BatchShape shape{.rows = 1, .mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
    step.run({pipeline.collate({}, shape)}, {0}, 0, 0, 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(a[i], at_a[i] - 0.25, 1e-6);
      EXPECT_NEAR(b[i], 3 * (at_b[i] - 0.5), 1e-6);
    }
  });
}

TEST(Groups, AMovingAverageHasNoOptimizerState) {
  on_mesh(Mesh(1, 1), [](Context& c) {
    Two pipeline;
    ParamTree params =
        make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts, {});
    const TrainStep step(pipeline, params, {.optimizer = AdamWSettings{}});
    for (const Optimizer::State& s : step.state())
      for (const ParamSpec& p : s.tree.specs()) EXPECT_FALSE(p.name.starts_with("slow.")) << s.name << p.name;
  });
}

// Clamps a parameter after each update, as CLIP its scale.
class Clamped : public Two {
 public:
  std::map<std::string, Tensor> after_update(const ParamTree& params, const StepContext& ctx) const override {
    EXPECT_EQ(ctx.step, 3);
    return {{name_, clamp(params["a.fc1.weight"], -0.125, 0.125)}};
  }
  std::string name_ = "a.fc1.weight";
};

TEST(Groups, APipelineSetsNewValuesAfterAnUpdate) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}})
    for (const StateSharding sharding :
         {StateSharding::none, StateSharding::optimizer, StateSharding::parameters})
      for (const DType weights : {DType::f32, DType::bf16})
        on_mesh(mesh, [&](Context& c) {
          const auto after = [&](Pipeline& pipeline) {
            ParamTree params =
                make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts,
                            {.sharding = sharding});
            initialize(params, 5);
            TrainStep step(pipeline, params,
                           {.optimizer = AdamWSettings{}, .sharding = sharding, .weights = weights});
            const BatchShape shape{
                .rows = 1, .mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
            step.run({pipeline.collate({}, shape)}, {0}, 3, 0, 0.02);
            std::vector<double> out = to_values(step.masters()["a.fc1.weight"]);
            for (const char* name : {"a.fc1.weight", "b.fc1.weight", "slow.a.fc1.weight"})
              for (const double v : to_values(params.gathered()[name])) out.push_back(v);
            return out;
          };
          Clamped clamped;
          Two free;
          std::vector<double> expected = after(free);
          const std::size_t n = kWidth * kWidth;
          bool some = false;
          for (std::size_t i = 0; i < 2 * n; ++i) {  // 1/8 is exact in bf16
            some = some || std::abs(expected[i]) > 0.125;
            expected[i] = std::clamp(expected[i], -0.125, 0.125);
          }
          EXPECT_TRUE(some);
          // The moving average follows the new values.
          std::vector<double> mine = after(clamped);
          EXPECT_NE(std::vector<double>(mine.begin() + 3 * n, mine.end()),
                    std::vector<double>(expected.begin() + 3 * n, expected.end()));
          mine.resize(3 * n);
          expected.resize(3 * n);
          EXPECT_EQ(mine, expected);
          if (sharding != StateSharding::none)
            return;  // there, another rank may see the end of a gather first
          clamped.name_ = "c";
          EXPECT_THAT(error_text<BugError>([&] { after(clamped); }),
                      ::testing::HasSubstr("'c', which is neither a trained parameter nor a buffer"));
        });
}

// collate() with a generator of the process: the ranks of a replica draw other numbers.
class Unequal : public Two {
 public:
  explicit Unequal(int of_rank, i64 from) : of_rank_(of_rank), from_(from) {}
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b = Two::collate(mine, s);
    b.fields["noise"] = full({kWidth, kWidth}, calls_++ >= from_ ? of_rank_ : 0);
    return b;
  }
  const int of_rank_;
  const i64 from_;
  mutable i64 calls_ = 0;
};

TEST(Groups, FieldsThatDifferWithinAReplicaAreNamed) {
  for (const Mesh& mesh : {Mesh{1, 2}, Mesh{2, 2}, Mesh{2, 1}})
    for (const i64 from : {0, 1})
      on_mesh(mesh, [&](Context& c) {
        // Of replicas, different fields are right.
        Unequal pipeline(c.rank(), from);
        ParamTree params =
            make_params(pipeline.params(), shard_specs(pipeline.params().specs, c.mesh().mp()).layouts, {});
        initialize(params, 5);
        TrainStep step(pipeline, params, {.optimizer = AdamWSettings{}});
        const BatchShape shape{
            .rows = 1, .mine = shard_range(1, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
        const auto run = [&](i64 number) { step.run({pipeline.collate({}, shape)}, {0}, number, 0, 0.02); };
        if (c.mesh().mp() == 1) {
          run(0), run(100);
          return;
        }
        if (from == 1) run(0);  // equal at first
        EXPECT_THAT(
            error_text<UsageError>([&] { run(100); }),
            ::testing::AllOf(::testing::HasSubstr("step 101: collate() made another field 'noise' on rank "),
                             ::testing::HasSubstr("than on rank ")));
      });
}

}  // namespace
}  // namespace redco
