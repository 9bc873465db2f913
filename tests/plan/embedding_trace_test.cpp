// The plan of a loss of the whole batch (pipeline/embedding_pipeline.h) is its step, line by line and byte by
// byte, for any number of micro-batches.
#include <gtest/gtest.h>

#include "kernels/threads.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "pipeline/embedding_pipeline.h"
#include "plan/trace.h"
#include "support/ranks.h"

namespace redco {
namespace {

class PlannedPairs : public EmbeddingPipeline {
 public:
  PlannedPairs() {
    SpecBuilder s(params_);
    for (const char* tower : {"a", "b"}) {
      s.linear(std::string(tower) + ".fc1", 64, kIn, true, 0.5);
      s.linear(std::string(tower) + ".fc2", 16, 64, false, 0.5);
    }
    s.add("log_scale", {1}, ParamKind::bias, {Init::Kind::constant, 1});
  }
  const ModelParams& params() const override { return params_; }
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["x"] = value_rows(mine, s, "x", {kIn});
    b.weights["loss"] = static_cast<double>(s.mine.size());
    return b;
  }
  Embeddings embed(const ParamTree& p, const Batch& b, const StepContext&) const override {
    const auto tower = [&](const std::string& name) {
      const Tensor h = gelu(linear(b["x"], p[name + ".fc1.weight"], p[name + ".fc1.bias"]));
      return linear(h, p[name + ".fc2.weight"]);
    };
    return {{"a", tower("a")}, {"b", tower("b")}};
  }
  LossTerms loss(const ParamTree& p, const Batch& all, const StepContext&) const override {
    const Tensor pairs = matmul(all["a"], all["b"], false, true) * exp(p["log_scale"]);
    return {{"loss", sum_all(log_sum_exp(pairs)) + sum_all(log_sum_exp(transpose(pairs, 0, 1)))}};
  }
  static constexpr i64 kIn = 12;

 private:
  ModelParams params_;
};

struct RealPairs {
  std::vector<LedgerLine> lines;
  i64 high_water = 0;
};

std::vector<RealPairs> real_pairs(const Mesh& mesh, i64 global, i64 per_device, const StepOptions& options) {
  std::vector<RealPairs> out(static_cast<size_t>(mesh.ranks()));
  redco::testing::on_mesh(mesh, [&](Context& c) {
    PlannedPairs pipeline;
    ParamTree params = make_params(pipeline.params(), shard_specs(pipeline.params().specs, mesh.mp()).layouts,
                                   {.sharding = options.sharding, .trains = true});
    initialize(params, 1);
    TrainStep step(pipeline, params, options);
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    for (const MicroBatch& m : micro_batches(global, per_device, mesh.dp())) {
      const BatchShape shape{
          .rows = m.rows, .mine = shard_range(m.rows, 1, mesh.dp(), c.coord().dp()), .length = 1};
      std::vector<Example> mine(static_cast<size_t>(shape.mine.size()));
      for (size_t r = 0; r < mine.size(); ++r)
        for (i64 k = 0; k < PlannedPairs::kIn; ++k)
          mine[r].values["x"].push_back(static_cast<float>((m.first + k * 7) % 5) - 2);
      batches.push_back(pipeline.collate(mine, shape));
      offsets.push_back(m.first);
    }
    // From the second step on, sharded parameters are gathered ahead.
    if (options.sharding == StateSharding::parameters) step.run(batches, offsets, 0, 0, 1e-3, {});
    c.keep_ledger();
    step.run(batches, offsets, 0, 0, 1e-3, {});
    out[static_cast<size_t>(c.rank())] = {c.ledger()->lines(), c.arena().high_water()};
  });
  return out;
}

TEST(EmbeddingTrace, ThePlanIsTheStep) {
  kernels::set_threads(1);  // as the ranks of a step: workspaces depend on it
  for (const StateSharding sharding :
       {StateSharding::none, StateSharding::gradients, StateSharding::parameters})
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}})
      for (const i64 per_device : {1, 2, 16}) {  // up to 13 micro-batches: none is extrapolated
        if (mesh.dp() == 1 && sharding != StateSharding::none) continue;
        const StepOptions options{.clip_grad_norm = 1.0, .optimizer = AdamWSettings{}, .sharding = sharding};
        const i64 global = 13;
        const auto runs = real_pairs(mesh, global, per_device, options);
        for (int rank = 0; rank < mesh.ranks(); ++rank) {
          SCOPED_TRACE(fmt::format("sharding {}, dp {} x mp {}, rank {}, {} per device",
                                   static_cast<int>(sharding), mesh.dp(), mesh.mp(), rank, per_device));
          PlannedPairs pipeline;
          const Trace plan = trace_step({.pipeline = &pipeline,
                                         .mesh = mesh,
                                         .rank = rank,
                                         .layouts = shard_specs(pipeline.params().specs, mesh.mp()).layouts,
                                         .global_batch = global,
                                         .per_device = per_device,
                                         .length = 1,
                                         .step = options});
          const RealPairs& run = runs[static_cast<size_t>(rank)];
          ASSERT_EQ(plan.lines.size(), run.lines.size());
          for (size_t i = 0; i < run.lines.size(); ++i)
            EXPECT_TRUE(plan.lines[i] == run.lines[i]) << plan.lines[i].what << " in " << plan.lines[i].where;
          EXPECT_EQ(plan.high_water, run.high_water);
        }
      }
}

}  // namespace
}  // namespace redco
