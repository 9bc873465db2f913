// Calls that are started and waited for later: over ranks as threads.
#include "support/in_flight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redco {
namespace {

using ::testing::HasSubstr;

class ManyCalls : public ::testing::TestWithParam<int> {};

TEST_P(ManyCalls, ManyCallsGiveTheBitsOfEachAlone) {
  for (const u64 seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    run_threads(GetParam(), [&](Group& g) { conformance::in_flight(g, seed); });
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, ManyCalls, ::testing::Values(1, 2, 3, 4));

TEST(StartedCalls, ManyCallsOnHostsGiveTheBitsOfEachAlone) {
  for (const int p : {4, 5})
    for (const std::vector<int>& hosts : conformance::placements(p)) {
      SCOPED_TRACE(conformance::name_of(hosts));
      run_threads(
          p, [](Group& g) { conformance::in_flight(g, 4); }, [&](int r) { return hosts[r]; });
    }
}

// More pieces than can be in flight, and more calls.
TEST(StartedCalls, WaitsForRoom) {
  run_threads(2, [](Group& g) {
    constexpr int kCalls = 40;
    std::vector<std::vector<float>> data;
    std::vector<Started> started;
    for (int i = 0; i < kCalls; ++i) {
      data.push_back(conformance::values<float>(g.rank(), i % 4 == 0 ? 2500000 : 3000, i));
      started.push_back(g.start_all_reduce(data.back().data(), std::ssize(data.back())));
    }
    for (int i = kCalls; i-- > 0;) started[i].wait();
    for (int i = 0; i < kCalls; ++i)
      for (i64 k = 0; k < std::ssize(data[i]); k += 997)
        ASSERT_EQ(data[i][k], conformance::sum<float>(2, i + k)) << i << " " << k;
  });
}

std::string message(int size, const std::function<void(Group&)>& body) {
  try {
    run_threads(size, body);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

TEST(StartedCalls, AFailingRankEndsTheOthers) {
  EXPECT_EQ(message(3,
                    [](Group& g) {
                      std::vector<float> x(100000, 1), y(10, 1);
                      Started a = g.start_all_reduce(x.data(), 100000), b = g.start_all_reduce(y.data(), 10);
                      if (g.rank() == 1) throw UsageError("rank 1 gives up");
                      b.wait();
                      a.wait();
                      g.barrier();
                    }),
            "rank 1 gives up");
}

TEST(StartedCalls, ARankThatReturnsWithoutItsCallIsAnError) {
  EXPECT_THAT(message(2,
                      [](Group& g) {
                        std::vector<float> x(10, 1);
                        if (g.rank() == 0) return;
                        Started a = g.start_all_reduce(x.data(), 10);
                        a.wait();
                      }),
              HasSubstr("all_reduce: rank 0 has ended without it"));
}

TEST(StartedCalls, ACallWithoutAWaitIsABug) {
  EXPECT_THAT(message(2,
                      [](Group& g) {
                        std::vector<float> x(10, 1);
                        { const Started lost = g.start_all_reduce(x.data(), 10); }
                        g.barrier();
                      }),
              HasSubstr("call 1 of a group, all_reduce, was started and not waited for"));
}

TEST(StartedCalls, DifferentCallsAreABug) {
  EXPECT_THAT(message(2,
                      [](Group& g) {
                        std::vector<float> x(10, 1), y(10, 1), z(20);
                        const std::vector<i64> counts = {10, 10};
                        Started a = g.start_all_reduce(x.data(), 10);
                        Started b = g.rank() == 0 ? g.start_all_reduce(y.data(), 10)
                                                  : g.start_all_gather(y.data(), z.data(), counts);
                        a.wait();
                        b.wait();
                      }),
              HasSubstr("rank 0 is in all_reduce while rank 1 is in all_gather"));
}

TEST(StartedCalls, SplitNeedsAllCallsToBeOver) {
  EXPECT_THAT(message(2,
                      [](Group& g) {
                        float x = 1;
                        const Started a = g.start_all_reduce(&x, 1);
                        g.split(0);
                      }),
              HasSubstr("split while calls of this rank are in flight"));
}

// A rank that waits in one group answers the other.
TEST(StartedCalls, GroupsProceedTogether) {
  run_threads(2, [](Group& g) {
    auto other = g.split(0);
    std::vector<float> x(300000, 1);
    Started a = other->start_all_reduce(x.data(), 300000);
    if (g.rank() == 0) g.barrier();  // rank 1 comes when its first call, of two exchanges, is complete
    a.wait();
    if (g.rank() == 1) g.barrier();
    EXPECT_EQ(x[299999], 2);
  });
}

TEST(StartedCalls, PlannedRanksOnlyCount) {
  auto g = make_meta_group(0, 4);
  Started a = g->start_all_reduce<float>(nullptr, 100);
  Started b = g->start_reduce_scatter<float>(std::vector<Segments<float>>(4, {{nullptr, 5}, {nullptr, 7}}),
                                             {{nullptr, 12}});
  Started c = g->start_send(nullptr, 64, 1);
  EXPECT_FALSE(a || b || c);
  a.wait();
  EXPECT_EQ(g->counted(Collective::all_reduce).bytes, 400);
  EXPECT_EQ(g->counted(Collective::reduce_scatter).bytes, 4 * 12 * 4);
  EXPECT_EQ(g->counted(Collective::send).bytes, 64);
}

}  // namespace
}  // namespace redco
