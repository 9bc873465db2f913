#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "plan/report.h"
#include "planning.h"

namespace redco {
namespace {

using redco::testing::counted;
using redco::testing::Planned;
using ::testing::Contains;
using ::testing::HasSubstr;

// The all-reduces of a step with L layers and mp > 1: sequential blocks have one after attention and one
// after the MLP, in each direction; parallel blocks have one. In addition one for the embedding, one for the
// head's input, and two small ones in cross-entropy.
struct Family {
  const char* name;
  const char* config;
  i64 a_block;
};
class Counts : public ::testing::TestWithParam<Family> {};

TEST_P(Counts, OneAllReducePerBlockAndDirection) {
  const i64 L = 2, B = 3, T = 64, C = 32;
  for (const i64 mp : {2, 3, 4}) {
    for (const i64 dp : {1, 2}) {
      SCOPED_TRACE(fmt::format("dp {} x mp {}", dp, mp));
      Planned p = Planned::config(GetParam().config);
      p.request.per_device = B;
      const PlanReport r = p.on(dp, mp);
      const i64 hidden = B * T * C * 4;  // bytes of an activation of one replica
      i64 large = 0, large_bytes = 0, tiny = 0;
      for (const PlanCollective& c : r.collectives) {
        if (c.axis != "mp" || c.where == "step/norm") continue;
        if (c.where.starts_with("step/")) continue;  // gradients of repeated K/V weights
        EXPECT_EQ(c.kind, "all_reduce") << c.where;
        if (c.where.ends_with("cross-entropy")) {
          tiny += c.count;
        } else {
          large += c.count;
          large_bytes += c.bytes;
        }
      }
      EXPECT_EQ(counted(r.collectives, "all_reduce", "mp", "forward").count, GetParam().a_block * L + 1 + 2);
      EXPECT_EQ(counted(r.collectives, "all_reduce", "mp", "backward").count, GetParam().a_block * L + 1);
      EXPECT_EQ(large, 2 * (GetParam().a_block * L + 1));
      EXPECT_EQ(large_bytes, large * hidden);
      EXPECT_EQ(tiny, 2);
      EXPECT_EQ(counted(r.collectives, "all_reduce", "mp", "step/norm").count, 1);
      EXPECT_EQ(counted(r.collectives, "all_reduce", "all", "step/vote").count, 1);
      if (dp > 1) {
        EXPECT_EQ(counted(r.collectives, "all_reduce", "dp", "step/weights").count, 1);
        // One bucket, and one for gradients that are Partial on mp too (those of repeated K/V weights).
        const i64 buckets = 1 + counted(r.collectives, "all_reduce", "mp", "step/gradients").count;
        EXPECT_LE(buckets, 2);
        EXPECT_EQ(counted(r.collectives, "all_reduce", "dp", "step/gradients").count, buckets);
        EXPECT_EQ(counted(r.collectives, "all_reduce", "dp", "").count, 1 + buckets);
      }
      for (const char* kind : {"all_gather", "all_to_all", "reduce_scatter"})
        EXPECT_EQ(counted(r.collectives, kind, "mp", "").count + counted(r.collectives, kind, "dp", "").count,
                  0)
            << kind;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Families, Counts,
                         ::testing::Values(Family{"gpt2", redco::testing::kGpt2, 2},
                                           Family{"gptj", redco::testing::kGptj, 1},
                                           Family{"opt", redco::testing::kOpt, 2},
                                           Family{"llama", redco::testing::kLlama, 2}),
                         [](const auto& info) { return std::string(info.param.name); });

// A mixture of experts: the router's scores (E per token) are reduced or gathered too; everything else is one
// all-reduce in each direction. FLOPs count only the experts that a token uses.
TEST(Plan, ExpertsAreReducedOncePerLayer) {
  const i64 L = 2, B = 3, T = 64, C = 32, E = 5;
  for (const i64 mp : {2, 4, 8}) {  // at 8 there are fewer experts than shards
    SCOPED_TRACE(mp);
    Planned p = Planned::config(redco::testing::kMixtral);
    p.request.per_device = B;
    const PlanReport r = p.on(1, mp);
    i64 bytes = 0, calls = 0;
    for (const PlanCollective& c : r.collectives) {
      if (c.axis != "mp" || c.where.starts_with("step") || c.where.ends_with("cross-entropy")) continue;
      bytes += c.bytes;
      calls += c.count;
    }
    const i64 large = 2 * (2 * L + 1), small = B * T * E * 4;
    EXPECT_GE(bytes, large * B * T * C * 4);
    EXPECT_LE(bytes, large * B * T * C * 4 + 2 * L * small);
    EXPECT_LE(calls, large + 2 * L);
  }
  Planned two = Planned::config(redco::testing::kMixtral);
  nlohmann::json all = nlohmann::json::parse(redco::testing::kMixtral);
  all["num_experts_per_tok"] = E;
  Planned five = Planned::config(all.dump());
  two.request.per_device = five.request.per_device = 1;
  // Three GEMMs of 32 x 88 per token and expert in the forward pass, and twice that in the backward pass.
  const double an_expert = 3 * 3 * 2.0 * 32 * 88 * L * T;
  EXPECT_NEAR(five.on(1, 1).flops - two.on(1, 1).flops, 3 * an_expert, 0.01 * an_expert);
}

// The paper's Table 1: models that can be fine-tuned completely, in fp32 with AdamW.
struct Cell {
  const char* model;
  i64 length;
  const char* devices;
};
class Table1 : public ::testing::TestWithParam<Cell> {};

TEST_P(Table1, Fits) {
  const Cell& c = GetParam();
  Planned p = Planned::preset(c.model);
  p.request.machines = parse_devices(c.devices);
  p.request.length = c.length;
  // Encoder-decoder models: the table gives one length, so source and target have it.
  if (p.model->is_encoder_decoder()) p.request.target_length = c.length;
  p.request.search = true;
  const PlanReport r = make_plan(p.request);
  EXPECT_TRUE(r.fits) << to_text(r);
  EXPECT_EQ(r.setting.sharding, StateSharding::none);
  EXPECT_EQ(r.setting.mesh.ranks(), r.setting.mesh.dp() * r.setting.mesh.mp());
  EXPECT_LE(r.memory.total(), p.request.machines.memory);
  // Parameters, gradients and moments are counted: 16 bytes per trained parameter, over mp shards.
  EXPECT_GE((r.memory.parameters + r.memory.gradients + r.memory.optimizer) * r.setting.mesh.mp(),
            4 * r.n_parameters + 12 * r.n_trained);
  ASSERT_TRUE(r.next);
  EXPECT_FALSE(r.next->fits());
  ASSERT_TRUE(r.smallest_n_model_shards);
  EXPECT_LE(*r.smallest_n_model_shards, r.setting.mesh.mp());
  if (r.setting.mesh.mp() > p.request.machines.slots[0]) {
    EXPECT_GT(r.crossing_bytes, 0);
    EXPECT_THAT(r.warnings, Contains(HasSubstr("span hosts")));
  } else {
    EXPECT_EQ(r.crossing_bytes, 0);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Cells, Table1,
    ::testing::Values(Cell{"gpt2-large", 512, "1 x 2 x 10GiB"}, Cell{"gpt2-large", 1024, "1 x 2 x 10GiB"},
                      Cell{"llama-7b", 1024, "1 x 4 x 40GiB"}, Cell{"gpt-j-6b", 1024, "1 x 4 x 40GiB"},
                      Cell{"opt-13b", 1024, "2 x 4 x 32GiB"}, Cell{"opt-66b", 512, "16 x 4 x 32GiB"},
                      Cell{"bart-large", 512, "1 x 2 x 10GiB"}, Cell{"bart-large", 1024, "1 x 2 x 10GiB"},
                      Cell{"t5-v1_1-xxl", 512, "2 x 4 x 32GiB"}));

TEST(Plan, AModelThatIsTooLargeDoesNotFit) {
  Planned p = Planned::preset("opt-66b");
  p.request.machines = parse_devices("2 x 4 x 32GiB");
  p.request.length = 512;
  p.request.search = true;
  const PlanReport r = make_plan(p.request);
  EXPECT_FALSE(r.fits);
  EXPECT_FALSE(r.smallest_n_model_shards);
  EXPECT_EQ(r.setting.mesh.mp(), 8);
}

TEST(Plan, SmallestShardsIsTheSmallestThatFits) {
  Planned p = Planned::preset("gpt-j-6b");
  p.request.machines = parse_devices("1 x 4 x 40GiB");
  p.request.length = 1024;
  const PlanReport r = p.on(1, 4);
  ASSERT_EQ(r.smallest_n_model_shards, 3);
  EXPECT_TRUE(p.on(1, 3).fits);
  EXPECT_FALSE(p.on(1, 2).fits);
}

TEST(Plan, PartsOfEvenRanksAddUpToTheModel) {
  for (const i64 mp : {1, 2, 4}) {
    Planned p = Planned::config(redco::testing::kLlama);
    const PlanReport r = p.on(1, mp);
    EXPECT_EQ(r.memory.gradients, r.memory.parameters);
    EXPECT_EQ(r.memory.optimizer, 2 * r.memory.parameters);
    EXPECT_GE(r.memory.parameters * mp, 4 * r.n_parameters);
  }
}

TEST(Plan, OptimizerMemoryIsItsState) {
  for (const double momentum : {0.0, 0.9})
    for (const bool sharded : {false, true}) {
      Planned p = Planned::config(redco::testing::kLlama);
      p.request.step.optimizer = SgdSettings{.momentum = momentum};
      p.request.step.sharding = sharded ? StateSharding::parameters : StateSharding::none;
      const RankMemory m = p.on(2, 1).memory;
      EXPECT_EQ(m.optimizer, momentum > 0 ? m.parameters : 0);
    }
}

TEST(Plan, ShardedStateSavesMemory) {
  Planned p = Planned::preset("gpt2");
  p.request.length = 256;
  const auto with = [&](StateSharding sharding) {
    p.request.step.sharding = sharding;
    return p.on(4, 1);
  };
  const RankMemory whole = with(StateSharding::none).memory;
  // Rows are split unevenly: a quarter, plus at most one row of each tensor.
  const auto expect_quarter = [&](i64 part, i64 of) {
    EXPECT_NEAR(static_cast<double>(part), static_cast<double>(of) / 4, 0.01 * static_cast<double>(of));
  };
  const i64 table = 50257 * 768 * 4;  // the largest tensor
  const PlanReport one = with(StateSharding::optimizer);
  expect_quarter(one.memory.optimizer, whole.optimizer);
  EXPECT_EQ(one.memory.parameters, whole.parameters);
  // Attention does not read key biases, so their gradients are 0 on all ranks.
  EXPECT_EQ(counted(one.collectives, "reduce_scatter", "dp", "step/gradients").bytes,
            whole.parameters - 12 * 768 * 4);
  EXPECT_EQ(counted(one.collectives, "all_gather", "dp", "step/parameters").bytes, whole.parameters);
  EXPECT_LE(one.memory.total(), whole.total() - whole.optimizer * 3 / 4 + table);
  p.request.per_device = 1;
  p.request.global_batch = 8;  // two micro-batches
  const i64 accumulated = with(StateSharding::none).memory.total();
  EXPECT_TRUE(with(StateSharding::optimizer).notes.empty());
  const PlanReport two = with(StateSharding::gradients);
  EXPECT_THAT(two.notes,
              Contains(HasSubstr("shard_gradients: gradients are summed over the replicas in each")));
  expect_quarter(two.memory.gradients, whole.gradients);
  EXPECT_LE(two.memory.total(), accumulated - (whole.gradients + whole.optimizer) * 3 / 4 + 2 * table);
  const PlanReport three = with(StateSharding::parameters);
  expect_quarter(three.memory.parameters, whole.parameters);
  EXPECT_EQ(three.memory.gradients, three.memory.parameters);
  EXPECT_EQ(three.memory.optimizer, 2 * three.memory.parameters);
  EXPECT_EQ(counted(three.collectives, "all_gather", "dp", "step").count, 0);
  // What was gathered is gone after the op.
  EXPECT_LE(three.memory.total(),
            accumulated - (whole.parameters + whole.gradients + whole.optimizer) * 3 / 4 + 3 * table);
}

TEST(Plan, SequenceParallelismIsSuggestedWhereMemoryIsShort) {
  Planned p = Planned::preset("gpt2");
  p.request.per_device = 8;
  const PlanReport roomy = p.on(1, 2);
  EXPECT_FALSE(roomy.with_sequence_parallel);
  p.request.step.sequence_parallel = true;
  const RankMemory sharded = p.on(1, 2).memory;
  EXPECT_LT(sharded.activations, roomy.memory.activations);
  EXPECT_EQ(sharded.parameters, roomy.memory.parameters);
  EXPECT_FALSE(p.on(1, 2).with_sequence_parallel);

  p.request.step.sequence_parallel = false;
  p.request.machines.memory = 2 * (sharded.total() + (i64{1} << 20));  // the two ranks share it
  const PlanReport tight = p.on(1, 2);
  EXPECT_FALSE(tight.fits);
  ASSERT_TRUE(tight.with_sequence_parallel);
  EXPECT_EQ(tight.with_sequence_parallel->memory.total(), sharded.total());
  EXPECT_THAT(to_text(tight), HasSubstr("parallel.sequence_parallel: true would need"));
  EXPECT_EQ(nlohmann::json::parse(to_json(tight))["with_sequence_parallel"]["total"], sharded.total());
  EXPECT_FALSE(p.on(2, 1).with_sequence_parallel);
}

TEST(Plan, CustomRulesThatAddCollectivesAreNamedAndStrictForbidsThem) {
  Planned p = Planned::config(redco::testing::kGptj);
  p.request.rules = {{".*fc_in.weight", {"mp", std::nullopt}}};
  EXPECT_THAT(p.on(1, 2).warnings, Contains(HasSubstr("fc_in")));
  p.request.strict = true;
  EXPECT_THROW(p.on(1, 2), UsageError);
  // A custom rule equal to the standard rule adds nothing.
  p.request.rules = {{".*fc_in.weight", {std::nullopt, "mp"}}};
  EXPECT_NO_THROW(p.on(1, 2));
}

TEST(Plan, IdleRanksAreNamed) {
  Planned p = Planned::config(redco::testing::kGpt2);  // 4 heads
  EXPECT_THAT(p.on(1, 6).warnings,
              Contains(HasSubstr("has 4 pieces for 6 shards: ranks 4 and 5 of each mp group")));
  EXPECT_TRUE(p.on(1, 4).warnings.empty());
}

TEST(Plan, TrafficBetweenHostsIsCounted) {
  Planned p = Planned::config(redco::testing::kGpt2);
  p.request.machines = parse_devices("2 x 2 x 1GiB");
  EXPECT_EQ(p.on(2, 2).crossing_bytes, 0);
  const PlanReport r = p.on(1, 4);
  // An all-reduce passes each byte once in each direction for the terms, and once for the sum, whatever ranks
  // a host has (tests/comm/conformance_mpi_test.cpp counts the bytes of a real one).
  i64 bytes = 0;
  for (const PlanCollective& c : r.collectives)
    if (c.axis == "mp") bytes += c.bytes;
  EXPECT_EQ(r.crossing_bytes, 2 * bytes);
  // Three hosts of two ranks: the tree ((01 23) 45) is added on each host as one subtree, and sent to two
  // others.
  p.request.machines = parse_devices("3 x 2 x 1GiB");
  const Crossing c = crossing(p.request.machines, Mesh(1, 6), Axis::mp);
  EXPECT_DOUBLE_EQ(c.all_gather, 2);
  EXPECT_DOUBLE_EQ(c.reduce_scatter, 2);
  EXPECT_DOUBLE_EQ(c.all_reduce, 4);
  EXPECT_DOUBLE_EQ(c.exchange, 6 * 4 / 6.0);
  // Two groups of one rank of each host, and groups on one host.
  EXPECT_DOUBLE_EQ(crossing(parse_devices("2 x 2 x 1GiB"), Mesh(2, 2), Axis::dp).all_reduce, 2 * 2);
  EXPECT_FALSE(crossing(parse_devices("2 x 2 x 1GiB"), Mesh(2, 2), Axis::mp).crosses);
}

TEST(Plan, FlopsOfManyRanksExceed64Bits) {
  Planned p = Planned::preset("gpt2");
  p.request.length = 128;
  p.request.per_device = 64;
  p.request.global_batch = i64{64} << 22;
  const PlanReport r = p.on(64, 1);
  const double tokens = 128.0 * static_cast<double>(*p.request.global_batch);
  EXPECT_GT(r.flops, 1.5e19);
  EXPECT_NEAR(r.flops / tokens, 6 * 123.65e6, 0.03 * 6 * 124e6);
}

TEST(Plan, FlopsOfATransformerAreSixPerParameterAndToken) {
  Planned p = Planned::preset("gpt2");
  p.request.length = 128;
  p.request.per_device = 2;
  const double flops = p.on(1, 1).flops, tokens = 256;
  // 6 N per token, where N excludes the position table (0.8M); attention at 128 tokens adds 6 L C T = 7M per
  // token to 746M.
  EXPECT_NEAR(flops / tokens, 6 * 123.65e6, 0.03 * 6 * 124e6);
  // The FLOPs of a step depend on the mesh only through replicated work (norms, residuals).
  EXPECT_NEAR(p.on(2, 1).flops, 2 * flops, 0.01 * flops);
  EXPECT_NEAR(p.on(1, 3).flops, flops, 0.02 * flops);
}

TEST(Plan, JsonHasTheDocumentedKeys) {
  Planned p = Planned::config(redco::testing::kGpt2);
  const auto j = nlohmann::json::parse(to_json(p.on(2, 2)));
  EXPECT_EQ(j["mesh"]["dp"], 2);
  EXPECT_EQ(j["mesh"]["mp"], 2);
  for (const char* key : {"parameters", "gradients", "optimizer", "activations", "buffers", "total"})
    EXPECT_TRUE(j["per_rank"][key].is_number_integer()) << key;
  i64 sum = 0;
  for (const auto& [key, value] : j["per_rank"].items())
    if (key != "total") sum += value.get<i64>();
  EXPECT_EQ(j["per_rank"]["total"], sum);
  EXPECT_TRUE(j["fits"].is_boolean());
  EXPECT_EQ(j["smallest_n_model_shards"], 1);
  EXPECT_GT(j["flops"].get<double>(), 0);
  ASSERT_FALSE(j["rules"].empty());
  for (const auto& r : j["rules"])
    EXPECT_TRUE(r.contains("pattern") && r["spec"].is_array() && r.contains("rule"));
  ASSERT_FALSE(j["collectives"].empty());
  for (const auto& c : j["collectives"])
    EXPECT_TRUE(c["kind"].is_string() && c["axis"].is_string() && c["count"].is_number() &&
                c["bytes"].is_number() && c["where"].is_string());
}

TEST(Devices, ParsesValidTextsAndRefusesOthers) {
  const Machines m = parse_devices("2 x 4 x 32GiB");
  EXPECT_EQ(m.slots, (std::vector<int>{4, 4}));
  EXPECT_EQ(m.memory, i64{32} << 30);
  EXPECT_EQ(parse_devices("1x1x500MB").memory, 500'000'000);
  for (const char* bad :
       {"", "2 x 4", "2 x 4 x", "0 x 4 x 32GiB", "2 x -4 x 32GiB", "2 x 4 x 32", "2 x 4 x 32GiB x 1",
        "a x b x c", "2 x 4 x infGiB", "99999999999999999999 x 1 x 1GiB", "65536 x 65536 x 1GiB",
        "2 x 4 x 0GiB", "2 x 4 x 99999999999TiB"})
    EXPECT_THROW(parse_devices(bad), UsageError) << bad;
}

TEST(Devices, TheHostWithTheLeastMemoryPerRankSetsTheLimit) {
  Machines m;
  m.slots = {2, 4, 1};
  m.names = {"small", "full", "empty"};
  m.memories = {100, 160, 10};
  EXPECT_EQ(m.tightest(2).host, "small");
  EXPECT_EQ(m.tightest(2).of_rank(), 50);
  EXPECT_EQ(m.tightest(6).host, "full");
  EXPECT_EQ(m.tightest(6).of_rank(), 40);
  EXPECT_EQ(m.tightest(6).ranks, 4);
  EXPECT_EQ(m.tightest(7).host, "empty");
}

}  // namespace
}  // namespace redco
