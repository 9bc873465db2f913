// A loss of the embeddings of a whole step: equal for every mesh, micro-batch size and sharding, in training
// and evaluation, and equal to a loss of one batch.
#include "pipeline/embedding_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "support/ranks.h"
#include "train/evaluate.h"
#include "train/step.h"
#include "train/step_embeddings.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using ::testing::HasSubstr;

constexpr i64 kSize = 5, kPairs = 7;

// Two towers with noise and dropout, and a trained scale: term "loss" is symmetric InfoNCE without pairs of
// one label, term "spread" a loss of one tower alone, which the second group minimizes.
class TwoTowers : public EmbeddingPipeline {
 public:
  explicit TwoTowers(bool two_groups) : two_groups_(two_groups) {
    SpecBuilder s(params_);
    for (const char* tower : {"a", "b"}) {
      s.linear(std::string(tower) + ".fc1", 2 * kSize, kSize, true, 0.5);
      s.linear(std::string(tower) + ".fc2", kSize, 2 * kSize, false, 0.5);
    }
    s.add("log_scale", {1}, ParamKind::other, {Init::Kind::constant, 0.5});
  }
  const ModelParams& params() const override { return params_; }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    std::vector<i32> labels;
    for (const Example& e : mine) labels.push_back(e.ids.at("label")[0]);
    b.fields["a"] = value_rows(mine, s, "a", {kSize});
    b.fields["b"] = value_rows(mine, s, "b", {kSize});
    b.fields["label"] = from_local_ids({s.rows}, labels);
    b.weights["loss"] = static_cast<double>(mine.size());
    b.weights["spread"] = static_cast<double>(mine.size());
    return b;
  }
  Embeddings embed(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    const auto tower = [&](const std::string& name) {
      const u64 noise = Context::current().key(name.c_str());
      const Tensor x = b[name] + 0.1 * random_normal(b[name].shape(), noise);
      const Tensor h = gelu(linear(x, p[name + ".fc1.weight"], p[name + ".fc1.bias"]));
      const Tensor y = linear(ctx.apply.train ? dropout(h, 0.25, noise + 1) : h, p[name + ".fc2.weight"]);
      return y * rsqrt(add_scalar(sum(square(y), {-1}, true), 1e-6));
    };
    return {{"a", tower("a")}, {"b", tower("b")}, {"label", b["label"]}};
  }
  LossTerms loss(const ParamTree& p, const Batch& all, const StepContext&) const override {
    const i64 n = all.shape.rows;
    std::vector<i32> numbers(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    const Tensor row = from_ids({n}, numbers, batch_layout());
    // Other examples of the same label are not negatives.
    const Tensor same = compare(Binary::eq, to_float(reshape(all["label"], {n, 1})), to_float(all["label"]));
    const Tensor own = compare(Binary::eq, to_float(reshape(row, {n, 1})), to_float(row));
    const Tensor logits = matmul(all["a"], all["b"], false, true) * exp(p["log_scale"]) - 1e4 * (same - own);
    const Tensor a = sum_all(cross_entropy(logits, row));
    const Tensor b = sum_all(cross_entropy(transpose(logits, 0, 1), row));
    const Tensor noise = random_uniform({n, 1}, Context::current().key("spread"));
    const Tensor centre = sum(all["a"] * noise, {0});
    return {{"loss", 0.5 * (a + b)}, {"spread", sum_all(square(centre)) + 0.01 * sum_all(square(all["b"]))}};
  }
  std::vector<ParamGroup> groups() const override {
    if (!two_groups_) return Pipeline::groups();
    const auto of_a = [](const std::string& n) { return n.starts_with("a."); };
    return {{.name = "rest", .has = [of_a](const std::string& n) { return !of_a(n); }, .term = "loss"},
            {.name = "a", .has = of_a, .term = "spread"}};
  }

 private:
  bool two_groups_;
  ModelParams params_;
};

// The same loss of one batch, without embed().
class OneBatch : public Pipeline {
 public:
  explicit OneBatch(bool two_groups) : of_(two_groups) {}
  const ModelParams& params() const override { return of_.params(); }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    return of_.collate(mine, s);
  }
  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext& ctx) const override {
    Batch all;
    all.shape = b.shape;
    all.fields = of_.embed(p, b, ctx);
    return of_.loss(p, all, ctx);
  }
  std::vector<ParamGroup> groups() const override { return of_.groups(); }

 private:
  TwoTowers of_;
};

std::vector<Example> pairs() {
  testing::Random random(11);
  std::vector<Example> out(kPairs);
  for (i64 i = 0; i < kPairs; ++i) {
    Example& e = out[static_cast<std::size_t>(i)];
    e.ordinal = i;
    for (const char* field : {"a", "b"})
      for (const double v : random.values(kSize)) e.values[field].push_back(static_cast<float>(v));
    e.ids["label"] = {static_cast<i32>(i % 5)};
  }
  return out;
}

struct Collated {
  std::vector<Batch> batches;
  std::vector<i64> offsets;
};
Collated collated(const Pipeline& pipeline, i64 per_micro_batch) {
  const Context& c = Context::current();
  const std::vector<Example> all = pairs();
  Collated out;
  for (i64 first = 0; first < kPairs; first += per_micro_batch) {
    const i64 n = std::min(per_micro_batch, kPairs - first);
    const BatchShape shape{.rows = n, .mine = shard_range(n, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
    const auto mine = std::span(all).subspan(static_cast<std::size_t>(first + shape.mine.begin),
                                             static_cast<std::size_t>(shape.mine.size()));
    out.batches.push_back(pipeline.collate(mine, shape));
    out.offsets.push_back(first);
  }
  return out;
}

struct Result {
  std::map<std::string, double> terms;
  double grad_norm = 0;
  std::vector<std::vector<double>> gradients;
};

template <class P>
Result step_of(const Mesh& mesh, i64 per_micro_batch, bool two_groups,
               StateSharding sharding = StateSharding::none) {
  Result result;
  on_mesh(mesh, [&](Context& c) {
    c.random = {.seed = 3};
    P pipeline(two_groups);
    ParamTree params = make_params(pipeline.params(), shard_specs(pipeline.params().specs, mesh.mp()).layouts,
                                   {.sharding = sharding, .trains = true});
    initialize(params, 3);
    std::vector<std::vector<double>> gradients;
    StepOptions options{.optimizer = SgdSettings{}, .sharding = sharding};
    options.on_gradients = [&](const std::vector<Tensor>& grads) {
      for (const Tensor& g : grads) gradients.push_back(to_values(g));
    };
    TrainStep step(pipeline, params, options);
    const Collated data = collated(pipeline, per_micro_batch);
    StepOutcome o;
    // The second step of sharded parameters gathers ahead.
    for (int s = 0; s < 2; ++s) {
      gradients.clear();
      o = step.run(data.batches, data.offsets, 0, 0, 0);
    }
    if (c.rank() == 0) result = {o.terms, o.grad_norm, gradients};
  });
  return result;
}

void expect_equal(const Result& a, const Result& b, const std::string& what) {
  for (const auto& [name, value] : b.terms) EXPECT_NEAR(a.terms.at(name), value, 2e-6) << what << name;
  EXPECT_NEAR(a.grad_norm, b.grad_norm, 2e-6) << what;
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (std::size_t i = 0; i < a.gradients.size(); ++i)
    EXPECT_LT(redco::testing::distance(a.gradients[i], b.gradients[i]), 2e-6) << what << "gradient " << i;
}

TEST(EmbeddingPipeline, TheLossIsThatOfOneBatchForEveryMeshAndMicroBatchSize) {
  for (const bool two_groups : {false, true}) {
    const Result whole = step_of<OneBatch>({1, 1}, kPairs, two_groups);
    EXPECT_GT(whole.grad_norm, 1e-2);
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{3, 2}})
      for (const i64 rows : {1, 3, 7})
        expect_equal(step_of<TwoTowers>(mesh, rows, two_groups), whole,
                     fmt::format("{} replicas, {} shards, {} rows, two groups {}: ", mesh.dp(), mesh.mp(),
                                 rows, two_groups));
  }
}

TEST(EmbeddingPipeline, TheSameWithShardedState) {
  const Result whole = step_of<OneBatch>({1, 1}, kPairs, true);
  for (const Mesh& mesh : {Mesh{2, 1}, Mesh{2, 2}})
    for (const StateSharding sharding :
         {StateSharding::optimizer, StateSharding::gradients, StateSharding::parameters})
      for (const i64 rows : {3, 7})
        expect_equal(step_of<TwoTowers>(mesh, rows, true, sharding), whole,
                     fmt::format("sharding {}: ", static_cast<int>(sharding)));
}

// Without micro-batches of one step, each of them would have other negatives.
TEST(EmbeddingPipeline, ALossOfMicroBatchesIsAnotherOne) {
  const Result whole = step_of<OneBatch>({1, 1}, kPairs, false);
  EXPECT_GT(std::abs(step_of<OneBatch>({1, 1}, 3, false).terms.at("loss") - whole.terms.at("loss")), 0.1);
}

TEST(EmbeddingPipeline, AnEvaluationComparesTheExamplesOfAGlobalBatch) {
  const auto evaluated = [](const Mesh& mesh, i64 per_device, i64 global) {
    double loss = 0;
    on_mesh(mesh, [&](Context& c) {
      c.random = {.seed = 3};
      TwoTowers pipeline(false);
      auto settings = std::make_shared<PipelineSettings>();
      settings->train.global_batch_size = global;
      pipeline.settings = settings;
      ParamTree params =
          make_params(pipeline.params(), shard_specs(pipeline.params().specs, mesh.mp()).layouts);
      initialize(params, 3);
      const auto metrics =
          evaluate(pipeline, params, std::make_shared<ExampleList>(pairs(), "pairs"), per_device);
      if (c.rank() == 0) loss = metrics.at("loss");
    });
    return loss;
  };
  for (const i64 global : {3, 4, 7}) {
    const double one = evaluated({1, 1}, global, global);
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{2, 2}})
      for (const i64 per_device : {1, 2, 16})
        EXPECT_NEAR(evaluated(mesh, per_device, global), one, 2e-6) << per_device << " " << global;
  }
  EXPECT_GT(std::abs(evaluated({1, 1}, 7, 7) - evaluated({1, 1}, 7, 3)), 0.1);
}

// What embed() returns.
class Returns : public TwoTowers {
 public:
  explicit Returns(std::function<Embeddings(const Batch&)> f) : TwoTowers(false), f_(std::move(f)) {
    origin = "./mine.so (job.yaml:1:11)";
  }
  Embeddings embed(const ParamTree&, const Batch& b, const StepContext&) const override { return f_(b); }

 private:
  std::function<Embeddings(const Batch&)> f_;
};

TEST(EmbeddingPipeline, MistakesAreNamed) {
  const auto message = [](const std::function<Embeddings(const Batch&)>& f) {
    std::string said;
    on_mesh({1, 1}, [&](Context&) {
      Returns pipeline(f);
      ParamTree params = make_params(pipeline.params(), shard_specs(pipeline.params().specs, 1).layouts);
      TrainStep step(pipeline, params, {});
      const Collated data = collated(pipeline, 4);
      try {
        step.run(data.batches, data.offsets, 0, 0, 0);
      } catch (const UsageError& e) {
        said = e.what();
      }
    });
    return said;
  };
  EXPECT_THAT(message([](const Batch& b) {
                return Embeddings{{"a", sum_all(b["a"])}};
              }),
              AllOf(HasSubstr("embed()"), HasSubstr("./mine.so (job.yaml:1:11)"),
                    HasSubstr("the embedding 'a' is f32 ()"),
                    HasSubstr("expected a row for each of the 4 examples in dim 0")));
  EXPECT_THAT(message([](const Batch& b) {
                return Embeddings{{"a", transpose(b["a"], 0, 1)}};
              }),
              HasSubstr("expected a row for each of the 4 examples in dim 0"));
  EXPECT_THAT(message([](const Batch&) {
                return Embeddings{{"a", {}}};
              }),
              HasSubstr("the embedding 'a' has no value"));
  EXPECT_THAT(message([](const Batch&) { return Embeddings(); }),
              HasSubstr("it returned no floating tensor, so the loss has no gradient"));
  EXPECT_THAT(message([](const Batch& b) {
                return Embeddings{{"label", b["label"]}};
              }),
              HasSubstr("it returned no floating tensor"));
  EXPECT_THAT(message([](const Batch& b) {
                return Embeddings{{b.shape.rows == 4 ? "a" : "b", b["a"]}};
              }),
              HasSubstr("it returned b f32 (5) for a micro-batch, and a f32 (5) for the first one"));
  // The field of a batch that collate() made: loss() has embeddings only.
  EXPECT_THAT(message([](const Batch& b) {
                return Embeddings{{"a", b["a"]}, {"label", b["label"]}};
              }),
              AllOf(HasSubstr("loss()"), HasSubstr("'b'")));
}

}  // namespace
}  // namespace redco
