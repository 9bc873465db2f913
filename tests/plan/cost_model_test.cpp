// The model of time: tables, the work of calls, and the timeline of a planned step.
#include "plan/cost_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "kernels/queue.h"
#include "planning.h"

namespace redco {
namespace {

using redco::testing::Planned;

TEST(SpeedTable, IsExactAtPointsAndLinearInLogarithmsBetween) {
  const SpeedTable t{{{1, 100}, {2, 8, 32}}, {1, 2, 4, 10, 20, 40}};
  EXPECT_EQ(t.problem(), "");
  const auto at = [&](double x, double y) { return t(std::array{x, y}); };
  EXPECT_DOUBLE_EQ(at(1, 2), 1);
  EXPECT_DOUBLE_EQ(at(100, 32), 40);
  EXPECT_DOUBLE_EQ(at(1, 8), 2);
  EXPECT_NEAR(at(10, 2), std::sqrt(10), 1e-9);  // half of the way in logarithms
  EXPECT_NEAR(at(1, 16), std::sqrt(8), 1e-9);
  EXPECT_DOUBLE_EQ(at(0.01, 1000), 4);  // outside: the border
  EXPECT_DOUBLE_EQ(at(1e9, 1e9), 40);
}

TEST(SpeedTable, NamesMistakes) {
  EXPECT_NE((SpeedTable{{{1, 2}}, {1}}).problem(), "");
  EXPECT_NE((SpeedTable{{{2, 1}}, {1, 1}}).problem(), "");
  EXPECT_NE((SpeedTable{{{1, 2}}, {1, 0}}).problem(), "");
  EXPECT_NE((SpeedTable{{{1, 2}}, {1, std::nan("")}}).problem(), "");
  EXPECT_NE((SpeedTable{{{0, 2}}, {1, 1}}).problem(), "");
  EXPECT_NE((SpeedTable{{{}}, {}}).problem(), "");
}

View view(i64 offset, Shape shape, DType type = DType::f32) {
  View v;
  v.data = DevicePtr::planned(offset);
  v.dtype = type;
  v.present = true;
  v.shape = std::move(shape);
  return v;
}

TEST(ReuseDistance, CountsTheBytesTouchedSince) {
  kernels::ReuseDistance r;
  const auto distance_of = [&](const View& v) {
    std::vector<std::pair<double, double>> parts;
    r.touch(v, [&](double bytes, double distance) { parts.emplace_back(bytes, distance); });
    return parts;
  };
  using Parts = std::vector<std::pair<double, double>>;
  const double never = kernels::ReuseDistance::kNever;
  EXPECT_EQ(distance_of(view(0, {100})), (Parts{{400, never}}));
  EXPECT_EQ(distance_of(view(0, {100})), (Parts{{400, 0}}));
  EXPECT_EQ(distance_of(view(4000, {1000})), (Parts{{4000, never}}));
  EXPECT_EQ(distance_of(view(0, {100})), (Parts{{400, 4000}}));
  // Half of it was touched now, half of it never.
  EXPECT_EQ(distance_of(view(200, {100})), (Parts{{200, 0}, {200, never}}));
  View repeated = view(4000, {8, 1000});
  repeated.strides = {0, 1};
  EXPECT_EQ(distance_of(repeated), (Parts{{4000, 800}}));  // its elements count once
  EXPECT_TRUE(distance_of(View()).empty());
}

TEST(CallWork, CountsProductsAndBytes) {
  const View x = view(0, {64, 32}), w = view(1 << 20, {96, 32}), y = view(2 << 20, {64, 96});
  const CallWork linear =
      work_of(KernelCall::of("linear", false, x, Views(1, w), Views(1, View()), Views(1, y), View()));
  EXPECT_EQ(linear.kind, "linear f32");
  EXPECT_EQ(linear.at, (std::vector<double>{64, 96, 32}));
  EXPECT_EQ(linear.units, 2 * 64 * 96 * 32);
  // A few rows read the weight.
  const CallWork few = work_of(KernelCall::of("linear", false, view(0, {2, 32}), Views(1, w),
                                              Views(1, View()), Views(1, view(2 << 20, {2, 96})), View()));
  EXPECT_EQ(few.kind, "few_rows f32");
  EXPECT_EQ(few.units, 96 * 32 * 4);
  const CallWork add = work_of(KernelCall::of("binary", kernels::Binary::add, x, x, x));
  EXPECT_EQ(add.kind, "binary f32");
  EXPECT_EQ(add.units, 3 * 64 * 32 * 4);
  // Causal attention computes half of the scores, and the diagonal.
  const kernels::Attention a{.keys = 16, .causal = true};
  const View q = view(0, {2, 16, 4, 8});
  const CallWork attention =
      work_of(KernelCall::of("attention", a, q, q, q, View(), View(), q, view(9, {2, 4, 16}), View()));
  EXPECT_EQ(attention.units, 4.0 * 2 * 4 * 8 * (16 * 17 / 2));
  // Of a table of embeddings only the rows that are read count.
  const CallWork rows = work_of(KernelCall::of("gather_rows", view(0, {50000, 32}), i64{0},
                                               view(9, {4}, DType::i32), view(99, {4, 32})));
  EXPECT_EQ(rows.units, 4 * 32 * 4);
}

MachineSpeeds stated() {
  return speeds_of({.flops_per_s = 1e11,
                    .memory_bytes_per_s = 1e10,
                    .host_latency_s = 1e-5,
                    .host_bytes_per_s = 1e9,
                    .network_latency_s = 1e-4,
                    .network_bytes_per_s = 1e8});
}

TEST(CostModel, FallsBackToTheNearestKind) {
  MachineSpeeds s = stated();
  s.kernels["unary"] = {{{1}, {1}}, {1e-9}};
  s.kernels["unary gelu f32"] = {{{1}, {1}}, {2e-9}};
  s.kernels["unary silu f32"] = {{{1}, {1}}, {3e-9}};
  EXPECT_EQ(s.kernel("unary gelu f32"), &s.kernels["unary gelu f32"]);
  EXPECT_EQ(s.kernel("unary silu bf16"), &s.kernels["unary silu f32"]);
  EXPECT_EQ(s.kernel("unary exp f32"), &s.kernels["unary"]);
  EXPECT_EQ(s.kernel("unknown"), nullptr);
}

TEST(CostModel, CollectivesHaveLatencyAndBytes) {
  const CostModel m(stated());
  const GroupShape two{.ranks = 2, .hosts = 1, .per_host = 2};
  EXPECT_NEAR(m.collective(Collective::all_reduce, 8, two).busy, 1e-5, 1e-6);
  EXPECT_NEAR(m.collective(Collective::all_reduce, 100000000, two).busy, 0.1, 0.01);
  EXPECT_EQ(m.collective(Collective::all_reduce, 1 << 20, {}).busy, 0);
  // Over two hosts each byte of a sum goes there and back; groups that share the link wait for each other.
  GroupShape hosts{.ranks = 2, .hosts = 2, .per_host = 1};
  const double alone = m.collective(Collective::all_reduce, 100000000, hosts).network;
  EXPECT_NEAR(alone, 2 * 1e-4 + 1.0, 0.01);
  EXPECT_EQ(m.collective(Collective::all_reduce, 100000000, hosts).busy, 0);
  hosts.sharing = 4;
  EXPECT_NEAR(m.collective(Collective::all_reduce, 100000000, hosts).network, 2 * 1e-4 + 4.0, 0.01);
}

// Measured times hold for the hosts that were measured, and are scaled to other numbers.
TEST(CostModel, CollectivesBetweenHostsTakeTheMeasuredTime) {
  MachineSpeeds s = stated();
  s.network_hosts = 2;
  s.network["all_reduce"] = {{{8, 1e6, 1e8}}, {1e-3 / 8, 9e-3 / 1e6, 0.4 / 1e8}};  // 1 ms, 9 ms, 0.4 s
  const CostModel m(s);
  GroupShape hosts{.ranks = 2, .hosts = 2, .per_host = 1};
  EXPECT_NEAR(m.collective(Collective::all_reduce, 8, hosts).network, 1e-3, 1e-9);
  EXPECT_NEAR(m.collective(Collective::all_reduce, 1000000, hosts).network, 9e-3, 1e-9);
  EXPECT_NEAR(m.collective(Collective::all_reduce, 200000000, hosts).network, 0.8, 1e-9);
  hosts.ranks = hosts.hosts = 4;
  EXPECT_NEAR(m.collective(Collective::all_reduce, 8, hosts).network, 2e-3, 1e-9);
  EXPECT_NEAR(m.collective(Collective::all_reduce, 1000000, hosts).network, 2e-3 + 8e-3 * 1.5, 1e-9);
}

TEST(Speeds, AreStoredAndChecked) {
  MachineSpeeds s = stated();
  s.key = {.cpu = "A CPU (R) 3", .isa = "avx2", .blas = "Haswell", .ranks = 2, .threads = 3};
  s.op_s = 2e-6;
  const std::string text = to_json(s);
  const MachineSpeeds back = speeds_from_json(text, "file");
  EXPECT_EQ(back.key, s.key);
  EXPECT_EQ(to_json(back), text);
  EXPECT_THROW(speeds_from_json(text.substr(0, text.size() / 2), "file"), ContentsError);
  std::string other = text;
  other.replace(other.find("\"format\": 2"), 11, "\"format\": 1");
  EXPECT_THROW(speeds_from_json(other, "file"), ContentsError);
  other = text;
  other.replace(other.find("\"op_s\": 2e-06"), 13, "\"op_s\": -1");
  EXPECT_THROW(speeds_from_json(other, "file"), ContentsError);
  // The time of a collective depends on its bytes alone.
  s.network["all_reduce"].axes = {{1, 2}, {1}};
  s.network["all_reduce"].values = {1, 1};
  EXPECT_THROW(speeds_from_json(to_json(s), "file"), ContentsError);
}

// A plan with stated speeds: the time is that of the FLOPs, of the bytes and of the collectives.
TEST(Timeline, AStepTakesTheTimeOfItsParts) {
  Planned p = Planned::config(redco::testing::kLlama);
  p.request.per_device = 4;
  MachineSpeeds slow = stated(), fast = stated();
  for (const char* kernel : {"linear", "linear_input_gradient", "linear_weight_gradients"})
    for (double& v : fast.kernels[kernel].values) v /= 1000;
  p.request.model = std::make_shared<const CostModel>(slow);
  const PlanReport one = p.on(1, 1);
  ASSERT_TRUE(one.time);
  EXPECT_GT(one.time->products, 0);
  EXPECT_GT(one.time->attention, 0);
  EXPECT_GT(one.time->optimizer, 0);
  EXPECT_EQ(one.time->collectives, 0);
  const PredictedTime& t = *one.time;
  EXPECT_NEAR(t.total, t.products + t.attention + t.optimizer + t.elementwise + t.ops + t.collectives, 1e-12);
  // All FLOPs but those of attention and elementwise ops are in products: at least 6 per weight and token.
  EXPECT_GT(t.products, 6.0 * 2 * (4 * 32 * 32 * 3 / 4 + 3 * 32 * 88) * 4 * 64 / 1e11);
  EXPECT_LT(t.products, one.flops / 1e11);
  double calls = 0;
  for (const CallTime& c : t.calls) calls += c.seconds;
  EXPECT_NEAR(calls, t.products + t.attention + t.optimizer + t.elementwise, 1e-12);

  p.request.model = std::make_shared<const CostModel>(fast);
  EXPECT_NEAR(p.on(1, 1).time->products, t.products / 1000, t.products / 1000 * 1e-6);

  p.request.model = std::make_shared<const CostModel>(slow);
  const PlanReport shards = p.on(1, 2);
  EXPECT_LT(shards.time->products, 0.7 * t.products);
  EXPECT_GT(shards.time->collectives, 8 * 1e-5);  // at least 8 latencies
  EXPECT_EQ(shards.time->overlapped, 0);          // inside a host, ranks move the bytes themselves
}

// Gradients travel between hosts behind the backward pass.
TEST(Timeline, TransfersBetweenHostsOverlapComputation) {
  Planned p = Planned::config(redco::testing::kLlama);
  p.request.per_device = 64;
  p.request.machines.slots = {1, 1};
  p.request.model = std::make_shared<const CostModel>(stated());
  const PlanReport two = p.on(2, 1);
  EXPECT_GT(two.time->overlapped + two.time->collectives, 2e-4);
  p.request.machines.slots = {2};
  EXPECT_EQ(p.on(2, 1).time->overlapped, 0);
}

// A rank that computes meanwhile does its own share of a transfer; one that waits does it in the wait.
TEST(Timeline, ATransferBehindComputationTakesSomeOfIt) {
  const auto time_of = [](double own, int kernels) {
    MachineSpeeds s = stated();
    s.network["all_reduce"] = {{{8, 1e6}}, {1e-6, 1e-6}};  // a second for a megabyte
    s.transfer_own = own;
    const CostModel model(std::move(s));
    Machines machines;
    machines.slots = {1, 1};
    const auto context = Context::meta(Mesh(2, 1), 0);
    Timeline t(model, machines, *context);
    const int id = 0;
    t.begin();
    t.starts(&id);
    context->world().all_reduce<float>(nullptr, 250000);
    for (int i = 0; i < kernels; ++i) {  // 0.2 s each, of memory that none has touched
      const Shape gigabyte = {250000000};
      t.kernel(KernelCall::of("copy", view(i64{2000000000} * i, gigabyte),
                              view(i64{2000000000} * i + 1000000000, gigabyte)));
    }
    t.waits(&id);
    return t.time(0);
  };
  const double compute = time_of(0, 20).total;
  ASSERT_GT(compute, 2);
  EXPECT_NEAR(time_of(0.5, 20).total, compute + 0.5, 1e-9);
  EXPECT_EQ(time_of(0, 20).collectives, 0);
  EXPECT_NEAR(time_of(0, 20).overlapped, 1, 1e-9);
  // Without computation it takes its second.
  EXPECT_NEAR(time_of(0, 0).total, 1, 1e-9);
  EXPECT_NEAR(time_of(0.5, 0).total, 1, 1e-9);
  EXPECT_NEAR(time_of(1, 0).total, 1, 1e-9);
}

// Many micro-batches are extrapolated from two.
TEST(Timeline, MicroBatchesAddTheirTime) {
  Planned p = Planned::config(redco::testing::kGpt2);
  p.request.model = std::make_shared<const CostModel>(stated());
  p.request.per_device = 1;
  p.request.global_batch = 4;
  const double four = p.on(1, 1).time->total;
  p.request.global_batch = 5;
  const double five = p.on(1, 1).time->total;
  p.request.global_batch = 40;
  EXPECT_NEAR(p.on(1, 1).time->total, four + 36 * (five - four), 0.02 * 36 * (five - four));
}

}  // namespace
}  // namespace redco
