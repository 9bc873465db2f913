// The search for the fastest layout, and the predicted scaling.
#include "plan/layout_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/scaling.h"
#include "planning.h"

namespace redco {
namespace {

using redco::testing::Planned;
using enum StateSharding;

const std::vector<StateSharding> kAll = {none, optimizer, parameters};

Planned on_devices(const std::string& devices, i64 batch,
                   StatedSpeeds speeds = {.flops_per_s = 1e11, .memory_bytes_per_s = 1e10}) {
  Planned p = Planned::config(redco::testing::kLlama);
  p.request.machines = parse_devices(devices);
  p.request.n_ranks = p.request.machines.ranks();
  p.request.global_batch = batch;
  p.request.model = std::make_shared<const CostModel>(speeds_of(speeds));
  return p;
}

// The fastest of all settings, one after the other.
double best_of_all(const PlanRequest& r) {
  CandidateMemory memory(r);
  double best = 1e30;
  const i64 n = *r.n_ranks;
  for (i64 mp = 1; mp <= n; ++mp)
    for (const StateSharding s : kAll)
      for (const bool recompute : {false, true})
        for (i64 rows = 1; n % mp == 0 && rows <= *r.global_batch; ++rows) {
          auto setting = with_batches(r, {static_cast<int>(n / mp), static_cast<int>(mp)}, rows);
          if (!setting) continue;
          setting->recompute = recompute;
          setting->sharding = s;
          Trace trace;
          if (memory.of(*setting, 0, &trace).fits()) best = std::min(best, trace.time.total);
        }
  return best;
}

TEST(LayoutSearch, FindsTheFastestOfAllSettings) {
  for (const char* devices : {"1 x 4 x 1GiB", "2 x 2 x 1GiB", "1 x 4 x little"}) {
    SCOPED_TRACE(devices);
    const bool little = std::string(devices).ends_with("little");
    Planned p = on_devices(little ? "1 x 4 x 1GiB" : devices, 12);
    if (little) {  // a tenth of what the fastest needs beyond the least
      i64 least = i64{1} << 40;
      const LayoutSearch all = search_layouts(p.request, kAll);
      for (const TimedSetting& t : all.fitting) least = std::min(least, t.memory.total());
      p.request.machines.memory = least + (all.fitting.front().memory.total() - least) / 10;
    }
    const LayoutSearch found = search_layouts(p.request, kAll);
    ASSERT_FALSE(found.fitting.empty());
    EXPECT_FALSE(found.nearest);
    EXPECT_LE(found.fitting.front().seconds, 1.1 * best_of_all(p.request));
    for (std::size_t i = 1; i < found.fitting.size(); ++i)
      EXPECT_LE(found.fitting[i - 1].seconds, found.fitting[i].seconds);
  }
}

TEST(LayoutSearch, KeepsWhatTheJobGives) {
  Planned p = on_devices("1 x 4 x 1GiB", 8);
  p.request.n_model_shards = 2;
  p.request.per_device = 2;
  p.request.recompute = true;
  for (const TimedSetting& t : search_layouts(p.request, {optimizer}).fitting) {
    EXPECT_EQ(t.setting.mesh.mp(), 2);
    EXPECT_EQ(t.setting.per_device, 2);
    EXPECT_TRUE(t.setting.recompute);
    EXPECT_EQ(t.setting.sharding, optimizer);
  }
}

// A slow network between hosts: model shards stay inside of a host.
TEST(LayoutSearch, ModelShardsSpanHostsOnlyIfNothingElseFits) {
  const Planned p = on_devices("2 x 2 x 1GiB", 8);
  for (const TimedSetting& t : search_layouts(p.request, kAll).fitting) EXPECT_LE(t.setting.mesh.mp(), 2);
  const Planned one = on_devices("4 x 1 x 1GiB", 1);  // one row: four replicas can't be
  const LayoutSearch found = search_layouts(one.request, kAll);
  ASSERT_FALSE(found.fitting.empty());
  EXPECT_EQ(found.fitting.front().setting.mesh.mp(), 4);
}

TEST(LayoutSearch, NothingFits) {
  const Planned p = on_devices("1 x 2 x 1MiB", 8);
  const LayoutSearch found = search_layouts(p.request, kAll);
  EXPECT_TRUE(found.fitting.empty());
  ASSERT_TRUE(found.nearest);
  EXPECT_GT(found.nearest->memory.total(), found.nearest->limit);
}

TEST(Scaling, EndsAtAllDevices) {
  const Planned p = on_devices("3 x 4 x 1GiB", 24);
  const Scaling s = predict_scaling(p.request, kAll);
  std::vector<int> ranks;
  for (const ScalingPoint& x : s.weak) {
    ranks.push_back(x.setting.mesh.ranks());
    EXPECT_EQ(x.setting.global_batch, 2 * x.setting.mesh.ranks());
    EXPECT_LE(x.efficiency, 1.0);
  }
  EXPECT_EQ(ranks, (std::vector<int>{1, 2, 4, 8, 12}));
  ASSERT_EQ(s.strong.size(), 5u);
  for (const ScalingPoint& x : s.strong) EXPECT_EQ(x.setting.global_batch, 24);
  EXPECT_EQ(s.weak.back().seconds, s.strong.back().seconds);
  EXPECT_GT(s.strong.back().tokens_per_s, s.strong.front().tokens_per_s);
  EXPECT_LT(s.strong.back().efficiency, s.strong.front().efficiency);
  EXPECT_THAT(to_text(s), ::testing::HasSubstr("12"));
  EXPECT_EQ(nlohmann::json::parse(to_json(s))["weak"].size(), 5u);
}

TEST(Scaling, NoLayoutFits) {
  const Planned p = on_devices("1 x 2 x 1MiB", 8);
  EXPECT_EQ(to_text(predict_scaling(p.request, kAll)), "no layout fits on 1 host x 2 devices x 1MiB\n");
}

}  // namespace
}  // namespace redco
