// The load-balancing loss of a mixture in pipeline lm: that of the whole step for every mesh, micro-batch
// size and sharding.
#include "models/router_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "autograd/grad.h"
#include "models/model.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "optim/gradients.h"
#include "pipelines/pipelines.h"
#include "support/ranks.h"
#include "train/evaluate.h"
#include "train/start_report.h"
#include "train/step.h"

namespace redco {
namespace {

constexpr i64 kTexts = 5, kLongest = 9;
constexpr double kCoefficient = 0.5;
constexpr const char* kBalanced =
    R"({"model_type": "mixtral", "hidden_size": 24, "intermediate_size": 16, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 31, "max_position_embeddings": 16,
        "num_local_experts": 3, "num_experts_per_tok": 2, "output_router_logits": true,
        "router_aux_loss_coef": 0.5})";

// Rows of 9, 8, 7, ... tokens.
std::vector<Example> texts() {
  redco::testing::Random random(5);
  std::vector<Example> out(kTexts);
  for (i64 i = 0; i < kTexts; ++i) {
    out[i].ordinal = i;
    for (i64 t = 0; t < kLongest - i; ++t)
      for (const char* field : {"input_ids", "labels"})
        out[i].ids[field].push_back(static_cast<i32>(random.below(31)));
    out[i].ids["labels"][0] = -100;
  }
  return out;
}

struct BalancedStep {
  std::map<std::string, double> terms;
  std::vector<std::vector<double>> gradients;
};

ParamTree balanced_params(const Model& model, StateSharding sharding) {
  ParamTree params =
      make_params(model.params(), shard_specs(model.params().specs, Context::current().mesh().mp()).layouts,
                  {.sharding = sharding, .trains = true});
  initialize(params, 1);
  // Logits of routers that are far from even.
  for (size_t i = 0; i < params.size(); ++i) {
    if (params.specs()[i].role != Role::router) continue;
    const Tensor& router = params.values()[i];
    std::vector<float> values;
    for (const double v : to_values(router)) values.push_back(static_cast<float>(40 * v));
    const Tensor larger = from_values(router.shape(), std::span<const float>(values), router.layout());
    Context::current().run(&Kernels::copy, larger, router);
  }
  return params;
}

BalancedStep balanced_step(const Mesh& mesh, i64 per_micro_batch, StateSharding sharding, bool recompute) {
  BalancedStep out;
  const auto model = make_model(ModelConfig(kBalanced, "test"));
  redco::testing::on_mesh(mesh, [&](Context& c) {
    const auto pipeline = make_lm_pipeline();
    pipeline->model = model.get();
    ParamTree params = balanced_params(*model, sharding);
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    const std::vector<Example> all = texts();
    for (i64 first = 0; first < kTexts; first += per_micro_batch) {
      const i64 n = std::min(per_micro_batch, kTexts - first);
      const BatchShape shape{
          .rows = n, .mine = shard_range(n, 1, mesh.dp(), c.coord().dp()), .length = kLongest - first};
      batches.push_back(
          pipeline->collate(std::span(all).subspan(static_cast<size_t>(first + shape.mine.begin),
                                                   static_cast<size_t>(shape.mine.size())),
                            shape));
      offsets.push_back(first);
    }
    StepOptions options{.recompute_blocks = recompute, .optimizer = SgdSettings{}, .sharding = sharding};
    std::vector<std::vector<double>> gradients;
    options.on_gradients = [&](const std::vector<Tensor>& grads) {
      for (const Tensor& g : grads) gradients.push_back(to_values(g));
    };
    TrainStep step(*pipeline, params, options);
    const StepOutcome o = step.run(batches, offsets, 0, 0, 0);
    if (c.rank() == 0) out = {o.terms, gradients};
  });
  return out;
}

// One batch on one rank, with transformers' formula on the values of the routers' logits.
BalancedStep one_batch() {
  BalancedStep out;
  const auto model = make_model(ModelConfig(kBalanced, "test"));
  redco::testing::on_mesh({1, 1}, [&](Context&) {
    const ParamTree params = balanced_params(*model, StateSharding::none).watched();
    std::vector<i32> ids(kTexts * kLongest), labels(ids.size(), -100), positions(ids.size()),
        mask(ids.size());
    double targets = 0, tokens = 0;
    for (i64 r = 0; r < kTexts; ++r)
      for (i64 t = 0; t < kLongest; ++t) {
        const size_t at = r * kLongest + t;
        positions[at] = static_cast<i32>(t);
        if (t >= kLongest - r) continue;
        ids[at] = texts()[r].ids["input_ids"][t];
        labels[at] = texts()[r].ids["labels"][t];
        mask[at] = 1;
        targets += t > 0;
        ++tokens;
      }
    const Shape shape = {kTexts, kLongest};
    std::vector<Tensor> logits;
    const Tensor y = model->apply(params, {from_ids(shape, ids), from_ids(shape, positions), {}},
                                  {.train = true, .router_logits = &logits});
    const Tensor loss = scale(sum_all(cross_entropy(y, from_ids(shape, labels))), 1 / targets);
    const Tensor balance = load_balancing_loss(router_sums(logits, 2, from_ids(shape, mask)));
    double f[3] = {}, p[3] = {};
    for (const Tensor& of_layer : logits) {
      const auto l = to_values(of_layer);
      for (size_t at = 0; at < ids.size(); ++at) {
        if (mask[at] == 0) continue;
        const double* const x = &l[3 * at];
        const double total = std::exp(x[0]) + std::exp(x[1]) + std::exp(x[2]);
        const auto least = std::min_element(x, x + 3) - x;
        for (int e = 0; e < 3; ++e) {
          p[e] += std::exp(x[e]) / total / (2 * tokens);
          f[e] += (e != least) / (2 * tokens);
        }
      }
    }
    const double expected = 3 * (f[0] * p[0] + f[1] * p[1] + f[2] * p[2]);
    EXPECT_NEAR(to_values(balance)[0], expected, 1e-5);
    EXPECT_GT(expected, 2.02);  // 2 if all experts were used evenly
    out.terms = {{"loss", to_values(loss)[0]}, {"router_aux_loss", expected}};
    for (const Tensor& g : grad(loss + scale(balance, kCoefficient), params.values()))
      out.gradients.push_back(to_values(g));
  });
  return out;
}

TEST(RouterLoss, IsThatOfTheStepForEveryMeshAndMicroBatchSize) {
  const BalancedStep whole = one_batch();
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}, Mesh{1, 4}})
    for (const StateSharding sharding : {StateSharding::none, StateSharding::parameters})
      for (const i64 rows : {2, 5}) {
        SCOPED_TRACE(fmt::format("dp {} x mp {}, sharding {}, {} rows", mesh.dp(), mesh.mp(),
                                 name_of(sharding), rows));
        const BalancedStep step = balanced_step(mesh, rows, sharding, rows == 2);
        for (const auto& [name, value] : whole.terms) EXPECT_NEAR(step.terms.at(name), value, 1e-5) << name;
        ASSERT_EQ(step.gradients.size(), whole.gradients.size());
        for (size_t i = 0; i < whole.gradients.size(); ++i)
          EXPECT_LT(redco::testing::distance(step.gradients[i], whole.gradients[i]), 2e-6) << i;
      }
}

TEST(RouterLoss, EvaluationsDoNotHaveIt) {
  const auto model = make_model(ModelConfig(kBalanced, "test"));
  const double expected = one_batch().terms.at("loss");
  redco::testing::on_mesh({2, 1}, [&](Context&) {
    const auto pipeline = make_lm_pipeline();
    pipeline->model = model.get();
    const ParamTree params = balanced_params(*model, StateSharding::none);
    const auto data = std::make_shared<ExampleList>(texts(), "texts");
    const auto metrics = evaluate(*pipeline, params, data, 1, -1);
    EXPECT_EQ(metrics.size(), 2u);
    EXPECT_NEAR(metrics.at("loss"), expected, 1e-5);
  });
}

TEST(RouterLoss, APipelineWithoutItIsReported) {
  const auto model = make_model(ModelConfig(kBalanced, "test"));
  EXPECT_THAT(router_loss_line(model.get(), {{"loss", 1.0}}),
              ::testing::HasSubstr("without load-balancing loss"));
  EXPECT_EQ(router_loss_line(model.get(), {{"loss", 1.0}, {"router_aux_loss", 2.0}}), "");
  EXPECT_EQ(router_loss_line(nullptr, {}), "");
}

}  // namespace
}  // namespace redco
