#include "tensor/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ops/elementwise.h"
#include "ops/linear.h"
#include "support/ranks.h"
#include "tensor/collectives.h"

namespace redco {
namespace {

using namespace redco::testing;  // NOLINT: ranks as threads
using ::testing::Contains;

std::vector<std::string> names_of(const Profile& p, ProfileEvent::Kind kind) {
  std::vector<std::string> out;
  for (const ProfileEvent& e : p.events())
    if (e.kind == kind) out.emplace_back(e.name);
  return out;
}

TEST(Profile, HoldsOpsAndPhasesOfItsTime) {
  on_one_rank([](Context& c) {
    const Tensor x = zeros({4, 3}), w = zeros({2, 3});
    linear(x, w);  // before the profile
    c.start_profile();
    {
      const ProfilePhase phase("forward");
      const Scope scope("mlp");
      linear(x, w);
    }
    const auto p = c.end_profile();
    linear(x, w);  // after it
    EXPECT_EQ(c.profile(), nullptr);
    EXPECT_EQ(names_of(*p, ProfileEvent::Kind::phase), std::vector<std::string>{"forward"});
    ASSERT_EQ(names_of(*p, ProfileEvent::Kind::op), std::vector<std::string>{"linear"});
    EXPECT_EQ(names_of(*p, ProfileEvent::Kind::kernel), std::vector<std::string>{"linear"});
    const auto events = p->events();
    const ProfileEvent& op = *std::find_if(events.begin(), events.end(),
                                           [](const auto& e) { return e.kind == ProfileEvent::Kind::op; });
    EXPECT_STREQ(op.scope, "mlp");
    EXPECT_EQ(op.flops, 2 * 4 * 3 * 2);
    EXPECT_EQ(op.bytes, 4 * 2 * 4);
    EXPECT_LE(op.begin, op.end);
    EXPECT_GE(p->memory_peak(), (12 + 6) * 4);
  });
}

TEST(Profile, CollectivesHaveTheirAxis) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = place({4, 6}, std::vector<double>(24, 1), on_mp(Placement::sharded(1)));
    const Tensor w = place({2, 6}, std::vector<double>(12, 1), on_mp(Placement::sharded(1)));
    c.start_profile();
    to_replicated(linear(x, w));
    const auto p = c.end_profile();
    ASSERT_EQ(names_of(*p, ProfileEvent::Kind::collective), std::vector<std::string>{"all_reduce"});
    for (const ProfileEvent& e : p->events())
      if (e.kind == ProfileEvent::Kind::collective) {
        EXPECT_STREQ(e.axis, "mp");
        EXPECT_EQ(e.bytes, 4 * 2 * 8);
      }
  });
}

// A transfer lasts from start to completion, and may overlap ops; its wait is a separate event.
TEST(Profile, TransfersAndTheirWaits) {
  on_mesh({1, 2}, [](Context& c) {
    const Tensor x = zeros({4, 3});
    c.start_profile();
    Pending sum = Collectives(Axis::mp).start_all_reduce(x.view());
    x + x;
    sum.wait();
    const auto p = c.end_profile();
    const auto of = [&](ProfileEvent::Kind kind) {
      for (const ProfileEvent& e : p->events())
        if (e.kind == kind) return e;
      return ProfileEvent{};
    };
    const ProfileEvent wait = of(ProfileEvent::Kind::collective), transfer = of(ProfileEvent::Kind::transfer);
    EXPECT_STREQ(transfer.name, "all_reduce");
    EXPECT_STREQ(transfer.axis, "mp");
    EXPECT_LT(transfer.begin, wait.begin);
    EXPECT_LE(transfer.end, wait.end);
    std::vector<std::string> kinds;
    const auto trace = nlohmann::json::parse(p->chrome_trace(0));
    for (const auto& e : trace.at("traceEvents")) kinds.push_back(e.at("ph"));
    EXPECT_THAT(kinds, Contains("b").Times(1));
    EXPECT_THAT(kinds, Contains("e").Times(1));
  });
}

TEST(Profile, SelfTimesLeaveOutTheEventsInside) {
  Profile p;
  const auto event = [&](ProfileEvent::Kind kind, i64 begin, i64 end) {
    p.add({.kind = kind, .name = "e", .begin = begin, .end = end});
  };
  event(ProfileEvent::Kind::collective, 20, 30);  // events are added when they end
  event(ProfileEvent::Kind::op, 10, 40);
  event(ProfileEvent::Kind::op, 40, 45);
  event(ProfileEvent::Kind::kernel, 41, 44);
  event(ProfileEvent::Kind::phase, 0, 50);
  event(ProfileEvent::Kind::phase, 50, 60);
  event(ProfileEvent::Kind::transfer, 15, 55);
  EXPECT_EQ(p.self_times(), (std::vector<i64>{10, 20, 5, 3, 15, 10, 40}));
}

TEST(Profile, TheTraceIsJson) {
  on_one_rank([](Context& c) {
    c.start_profile();
    const Tensor x = zeros({4, 3});
    {
      const ProfilePhase phase("forward");
      x + x;
    }
    const nlohmann::json j = nlohmann::json::parse(c.end_profile()->chrome_trace(3));
    std::vector<std::string> kinds;
    for (const auto& e : j.at("traceEvents")) {
      EXPECT_EQ(e.at("pid"), 3);
      kinds.push_back(e.at("ph"));
      if (e.at("ph") == "X") EXPECT_GE(e.at("dur").get<double>(), 0);
    }
    EXPECT_THAT(kinds, Contains("X").Times(4));  // the phase, zeros, the sum and its kernel
    EXPECT_THAT(kinds, Contains("C").Times(1));
  });
}

}  // namespace
}  // namespace redco
