// Buddy checkpoints: which hosts keep what, what counts as complete, and what a next start gets back.
#include "train/buddy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "support/ranks.h"
#include "tensor/transfer.h"
#include "train/checkpoint_files.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kRun = "0123456789abcdef0123456789abcdef";

class Buddy : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::error); }
  void TearDown() override { set_log_level(LogLevel::info); }

  // Parameters a and their moments; `sharded`: the moments over dp, as with parallel.shard_optimizer.
  struct Trees {
    ParamTree params, moments;
    CheckpointContents contents() const { return {.params = params, .optimizer = {{"exp_avg", moments}}}; }
  };
  static Trees trees(u64 key, bool sharded = false) {
    ModelParams p;
    SpecBuilder(p).linear("a.fc1", 24, 48, true, 1);
    const auto layouts = shard_specs(p.specs, Context::current().mesh().mp()).layouts;
    Trees t{make_params(p, layouts),
            make_params(p, layouts, {.sharding = sharded ? StateSharding::parameters : StateSharding::none})};
    set(t, key);
    return t;
  }
  static void set(const Trees& t, u64 key) {
    for (const Tensor& x : t.params.values()) fill_normal(x, key, 1);
    for (const Tensor& x : t.moments.values()) fill_normal(x, key + 100, 1);
  }
  static std::vector<float> values(const Trees& t) {
    std::vector<float> out;
    for (const ParamTree* tree : {&t.params, &t.moments})
      for (const Tensor& x : tree->values())
        for (const float v : host_copy<float>(x)) out.push_back(v);
    return out;
  }
  static TrainState at(i64 step) { return {.step = step, .global_batch_size = 1, .n_examples = 1}; }
  static ckpt::RunIdentity run(i64 start, std::vector<ckpt::RunIdentity::Start> starts = {}) {
    return {.id = kRun, .start = start, .starts = std::move(starts)};
  }
  // The host of a rank: ranks_per_host ranks on each.
  static std::string host(int ranks_per_host) {
    return "host" + std::to_string(Context::current().world().rank() / ranks_per_host);
  }

  // A start that saves `steps`, each with other values.
  static void start(i64 number, const std::vector<i64>& steps, const std::string& on, bool sharded = false) {
    const Trees t = trees(1, sharded);
    BuddyCopies copies(job_, on, t.contents());
    ASSERT_TRUE(copies.open(run(number)));
    for (const i64 step : steps) {
      set(t, static_cast<u64>(step));
      copies.save(at(step));
    }
    copies.finish();
  }
  // The step that a next start finds and loads, and whether it has the values of that step; -1: none.
  static i64 found(const std::string& on, i64 newer_than = -1, bool sharded = false,
                   const ckpt::RunIdentity& now = run(1)) {
    const Trees t = trees(1, sharded), expected = trees(2, sharded);
    BuddyCopies copies(job_, on, t.contents());
    const auto state = copies.find(now, newer_than);
    if (!state) return -1;
    copies.load();
    set(expected, static_cast<u64>(state->step));
    EXPECT_EQ(values(t), values(expected));
    return state->step;
  }
  // Files of a host's memory, by number.
  static std::vector<std::string> blocks(int n) {
    return kept_blocks(kept_key(job_, "host" + std::to_string(n)));
  }
  static void lose(int n) {
    for (const std::string& name : blocks(n))
      remove_kept_block(kept_key(job_, "host" + std::to_string(n)), name);
  }
  static void change_byte(int n, const std::string& name, i64 at) {
    const auto b = KeptBlock::open(kept_key(job_, "host" + std::to_string(n)), name);
    ASSERT_TRUE(b);
    b->data()[at < 0 ? b->bytes() + at : at] ^= std::byte{1};
  }

  static inline const std::string job_ = "buddy test " + std::to_string(getpid());
  const Keeper keepers_[4] = {Keeper(kept_key(job_, "host0")), Keeper(kept_key(job_, "host1")),
                              Keeper(kept_key(job_, "host2")), Keeper(kept_key(job_, "host3"))};
};

TEST_F(Buddy, TheNewestGenerationComesBack) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{2, 2}})
    for (const bool sharded : {false, true})
      on_mesh(mesh, [&](Context& c) {
        start(1, {5, 10, 15}, host(1), sharded);
        EXPECT_EQ(found(host(1), -1, sharded), 15);
        EXPECT_EQ(found(host(1), 14, sharded), 15);
        EXPECT_EQ(found(host(1), 15, sharded), -1) << "a checkpoint of the same step is no older";
        c.world().barrier();
        if (c.rank() == 0)
          for (int h = 0; h < 4; ++h) lose(h);
        c.world().barrier();
      });
}

TEST_F(Buddy, AnyOneHostMayBeLost) {
  for (const bool sharded : {false, true})
    for (int lost = 0; lost < 2; ++lost)
      on_mesh({2, 2}, [&](Context& c) {  // mp 2 inside of each of two hosts
        start(1, {5, 10}, host(2), sharded);
        c.world().barrier();
        if (c.rank() == 0) lose(lost);
        c.world().barrier();
        EXPECT_EQ(found(host(2), -1, sharded), 10);
        EXPECT_EQ(found("host" + std::to_string(1 - lost), -1, sharded), 10) << "all ranks on the other host";
        c.world().barrier();
        if (c.rank() == 0) lose(1 - lost);
        c.world().barrier();
        EXPECT_EQ(found(host(2), -1, sharded), -1);
      });
}

// Replicas without sharded state have the same part: two hosts have it without a message.
TEST_F(Buddy, ReplicasKeepOnePartOnTwoHosts) {
  on_mesh({4, 1}, [&](Context& c) {
    start(1, {5, 10}, host(1));
    c.world().barrier();
    if (c.rank() == 0) {
      for (int h = 0; h < 4; ++h) EXPECT_THAT(blocks(h), SizeIs(h < 2 ? 2 : 0)) << h;
      for (int h = 0; h < 4; ++h) lose(h);
    }
    c.world().barrier();
  });
  // The plan counts what ranks keep.
  on_mesh({2, 1}, [&](Context& c) {
    const Trees t = trees(1);
    const i64 part = buddy_part_bytes(t.contents(), c.mesh(), 0);
    EXPECT_EQ(part, 2 * 4 * (24 * 48 + 24));
    const i64 extra = 2 * ((i64{64} << 10) + 4096);
    EXPECT_EQ(buddy_bytes(t.contents(), c.mesh(), 0, {0, 0}), 2 * part + extra);
    EXPECT_EQ(buddy_bytes(t.contents(), c.mesh(), 1, {0, 0}), 0);
    EXPECT_EQ(buddy_bytes(t.contents(), c.mesh(), 1, {0, 1}), 2 * part + extra);
    const Trees s = trees(1, true);
    EXPECT_EQ(
        buddy_bytes(s.contents(), c.mesh(), 1, {0, 1}),
        2 * (buddy_part_bytes(s.contents(), c.mesh(), 0) + buddy_part_bytes(s.contents(), c.mesh(), 1)) +
            2 * extra);
  });
}

// Fewer replicas have the same parts; without a replica, sharded state has others.
TEST_F(Buddy, AnotherMeshGetsTheSamePartsOrNone) {
  for (const bool sharded : {false, true}) {
    on_mesh({2, 2}, [&](Context&) { start(1, {5}, host(2), sharded); });
    on_mesh({1, 2}, [&](Context&) { EXPECT_EQ(found("host0", -1, sharded), sharded ? -1 : 5); });
    on_mesh({2, 1}, [&](Context&) { EXPECT_EQ(found("host0", -1, sharded), -1) << "other model shards"; });
    for (int h = 0; h < 2; ++h) lose(h);
  }
}

TEST_F(Buddy, WhatIsDamagedDoesNotCount) {
  for (const i64 at : {i64{0}, i64{40}, i64{4096 + 3}, i64{-5}}) {  // the header, the state, a tensor
    on_mesh({1, 2}, [&](Context&) { start(1, {5, 10}, "host0"); });
    const auto names = blocks(0);
    ASSERT_THAT(names, SizeIs(4));
    for (const std::string& name : names)
      if (name.starts_with("start-1-1-")) {  // a part of the second generation
        change_byte(0, name, at);
        break;
      }
    on_mesh({1, 2}, [&](Context&) { EXPECT_EQ(found("host0"), 5) << at; });
    lose(0);
  }
}

// A former start whose ranks lived on, without network, must not come back.
TEST_F(Buddy, OnlyThisRunsStartsCount) {
  on_mesh({2, 1}, [&](Context&) {
    start(1, {5, 10}, "host0");
    const auto later = run(2, {{1, 0}, {2, 7}});
    EXPECT_EQ(found("host0", -1, false, later), 5) << "start 2 began after step 7";
    auto other = run(1);
    other.id[0] = 'f';
    EXPECT_EQ(found("host0", -1, false, other), -1);
  });
}

// A next start needs no more memory than two generations, and loses none before its first one is complete.
TEST_F(Buddy, AStartReplacesTheGenerationsOfTheFormerOne) {
  on_mesh({2, 1}, [&](Context& c) {
    start(1, {5, 10}, "host0");
    const Trees t = trees(1);
    BuddyCopies copies(job_, "host0", t.contents());
    EXPECT_EQ(copies.find(run(1), -1)->step, 10);
    copies.load();
    ASSERT_TRUE(copies.open(run(2)));
    const auto starts = [&] {
      c.world().barrier();
      std::string text;
      for (const std::string& name : blocks(0)) text += name.substr(0, 10) + " ";
      c.world().barrier();
      return text;
    };
    EXPECT_EQ(starts(), "start-1-1- start-2-0- ");
    copies.save(at(15));
    copies.save(at(20));
    EXPECT_EQ(starts(), "start-2-0- start-2-1- ");
    copies.finish();
  });
}

TEST_F(Buddy, AHostWithoutAKeeperOrWithoutRoom) {
  on_mesh({1, 2}, [&](Context&) {
    const Trees t = trees(1);
    BuddyCopies copies(job_, "host9", t.contents());
    EXPECT_FALSE(copies.open(run(1), 0.1));
  });
  EXPECT_THROW(KeptBlock::make(kept_key(job_, "host0"), "huge", i64{1} << 52), Error);
  EXPECT_THAT(blocks(0), IsEmpty());
}

TEST_F(Buddy, TheKeeperRemovesItsMemory) {
  const std::string key = kept_key(job_, "host8");
  {
    const Keeper keeper(key);
    EXPECT_TRUE(is_kept(key));
    KeptBlock::make(key, "a", 5000);
    KeptBlock::make(key, "b", 5000);
    remove_unkept_blocks();
    EXPECT_THAT(kept_blocks(key), SizeIs(2));
  }
  EXPECT_FALSE(is_kept(key));
  EXPECT_THAT(kept_blocks(key), IsEmpty());
}

}  // namespace
}  // namespace redco
