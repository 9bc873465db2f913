// Measuring a machine: all tables are there, and a plan can use them.
#include "plan/measure.h"

#include <gtest/gtest.h>

#include <mutex>

#include "kernels/threads.h"
#include "plan/probes.h"
#include "planning.h"

namespace redco {
namespace {

MeasureOptions rough() {
  return {.seconds_each = 1e-5, .batches = 1, .most_bytes = i64{4} << 20, .largest = 0.03};
}

TEST(Measure, GivesTablesThatAPlanUses) {
  Context context(Mesh(1, 1), make_self_group());
  kernels::set_threads(1);
  const MachineSpeeds s = measure_speeds(context, {.cpu = "test"}, rough());
  for (const auto& [kind, table] : s.kernels) EXPECT_EQ(table.problem(), "") << kind;
  for (const char* kind :
       {"linear f32", "linear_input_gradient f32", "linear_weight_gradients f32", "few_rows int4",
        "attention f32", "attention_backward f32 dropout", "attention_decode bf16", "adamw f32",
        "layer_norm_backward f32", "cross_entropy_backward f32", kAnyKernel})
    EXPECT_TRUE(s.kernels.contains(kind)) << kind;
  EXPECT_GT(s.op_s, 0);
  EXPECT_LT(s.op_s, 1e-2);
  EXPECT_TRUE(s.collectives.empty());

  // Every kernel of a step has a measured kind with its name.
  testing::Planned p = testing::Planned::config(testing::kGpt2);
  p.request.per_device = 1;
  p.request.model = std::make_shared<const CostModel>(speeds_from_json(to_json(s), "test"));
  const PlanReport r = p.on(1, 1);
  EXPECT_GT(r.time->total, 0);
  for (const CallTime& c : r.time->calls) {
    EXPECT_NE(s.kernel(c.kind), nullptr) << c.kind;
    EXPECT_GT(c.seconds, 0) << c.kind;
  }
}

// A kernel whose operands stay where they are has no distance to go through. It was called once per byte of
// it.
TEST(Measure, AKernelWithoutMovingOperandsIsCalledAFewTimes) {
  Context context(Mesh(1, 1), make_self_group());
  const Context::Use use(context);
  Probes probes(context, rough(), i64{4} << 20);
  const View ids = probes.ids({8}, 8);
  i64 calls = 0;
  probes.measure(
      [&] {
        ++calls;
        context.queue().check_ids(ids, {.end = 8});
      },
      {1e6, 2e6});
  EXPECT_GT(calls, 2);
  EXPECT_LT(calls, 100'000);
}

TEST(Measure, RanksMeasureTogether) {
  std::mutex mutex;
  std::vector<std::string> texts;
  run_threads(2, [&](Group& world) {
    kernels::set_threads(1);
    Context context(Mesh(2, 1), world.split(0));
    const MachineSpeeds s = measure_speeds(context, {.cpu = "test", .ranks = 2}, rough());
    for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter"}) {
      EXPECT_TRUE(s.collectives.contains(kind)) << kind;
      EXPECT_EQ(s.collectives.at(kind).problem(), "") << kind;
    }
    const std::lock_guard lock(mutex);
    texts.push_back(to_json(s));
  });
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0], texts[1]);  // the means over the ranks
}

}  // namespace
}  // namespace redco
