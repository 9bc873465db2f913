// Groups of threads (comm/thread_transport.cpp), also with a placement on hosts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "support/comm_conformance.h"

namespace redco {
namespace {

class ThreadConformance : public ::testing::TestWithParam<int> {};

TEST_P(ThreadConformance, MatchesTheSerialResults) {
  for (const auto& c : conformance::cases(GetParam())) {
    SCOPED_TRACE(c.name);
    run_threads(GetParam(), [&](Group& g) { c.run(g); });
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadConformance, ::testing::Values(1, 2, 3, 7));

// Which ranks share a host changes no bits: each case compares with the tree over ranks.
class ThreadPlacement : public ::testing::TestWithParam<int> {};
TEST_P(ThreadPlacement, MatchesTheSerialResultsOnAnyPlacement) {
  const int p = GetParam();
  for (const std::vector<int>& hosts : conformance::placements(p)) {
    SCOPED_TRACE(conformance::name_of(hosts));
    run_threads(
        p, [](Group& g) { conformance::run_all(g); }, [&](int r) { return hosts[r]; });
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPlacement, ::testing::Values(3, 4, 7));

TEST(ThreadGroup, OneMessageForEachPairOfHosts) {
  for (const auto& [p, n_hosts] : std::vector<std::pair<int, int>>{{4, 1}, {4, 2}, {4, 4}, {8, 2}, {8, 4}}) {
    SCOPED_TRACE(fmt::format("{} ranks on {} hosts", p, n_hosts));
    run_threads(
        p, [n = n_hosts](Group& g) { conformance::expect_one_message_for_each_pair_of_hosts(g, n); },
        [on_host = p / n_hosts](int r) { return r / on_host; });
  }
}

// A sum that is spread over hosts is sent as its largest subtrees on the host.
TEST(ThreadGroup, HostsSendTheirLargestSubtrees) {
  const std::vector<int> hosts = {0, 1, 0, 1, 0, 0, 0};  // (0 + 1) + (2 + 3), (4 + 5) + 6
  run_threads(
      7,
      [&](Group& g) {
        const auto got = conformance::traffic_between_hosts(
            g, [&](int r) { return hosts[r]; },
            [&] {
              float x = 1;
              g.all_reduce(&x, 1);
            });
        EXPECT_EQ(got[0][1].messages, 1);
        EXPECT_EQ(got[0][1].bytes, 3 * 4);  // 0, 2 and 4 + 5 + 6
        EXPECT_EQ(got[1][0].messages, 1);
        EXPECT_EQ(got[1][0].bytes, 2 * 4);
      },
      [&](int r) { return hosts[r]; });
}

// The trees, written out. Each small term alone is lost in the large one; two of them are not.
TEST(ThreadGroup, SumsFollowTheTreeOverRanks) {
  const auto x = [](int rank) { return rank == 0 ? 1 : std::ldexp(0.75f, -24); };
  const float three = x(0) + x(1) + x(2), four = (x(0) + x(1)) + (x(2) + x(3)), two_more = x(4) + x(5);
  const std::map<int, float> want = {{2, x(0) + x(1)},
                                     {3, three},
                                     {4, four},
                                     {5, four + x(4)},
                                     {6, four + two_more},
                                     {7, four + (two_more + x(6))},
                                     {8, four + (two_more + (x(6) + x(7)))}};
  EXPECT_NE(four, three + x(3));
  EXPECT_NE(want.at(6), four + x(4) + x(5));
  for (const auto& [size, sum] : want)
    run_threads(size, [&](Group& g) {
      for (const i64 n : {1, 40000}) {  // sent whole, and in slices
        std::vector<float> all(static_cast<std::size_t>(n), x(g.rank()));
        g.all_reduce(all.data(), n);
        EXPECT_EQ(all, std::vector<float>(all.size(), sum)) << g.size() << " ranks, " << n << " elements";
      }
      std::vector<float> mine(3), all(static_cast<std::size_t>(3 * g.size()), x(g.rank()));
      g.reduce_scatter(all.data(), mine.data(), std::vector<i64>(static_cast<std::size_t>(g.size()), 3));
      EXPECT_EQ(mine, std::vector<float>(3, sum)) << g.size() << " ranks";
    });
}

std::string error_of(int size, const std::function<void(Group&)>& body,
                     const std::function<int(int)>& host_of = {}) {
  try {
    run_threads(size, body, host_of);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no error";
}

TEST(ThreadGroup, ARankThatThrowsWakesAllOthers) {
  std::mutex mutex;
  std::vector<std::string> seen;
  const auto body = [&](Group& g) {
    if (g.rank() == 2) throw UsageError("rank 2 gives up");
    float x = 1;
    try {
      g.all_reduce(&x, 1);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::rank_failed);
      std::lock_guard lock(mutex);
      seen.push_back(e.what());
      throw;
    }
  };
  EXPECT_EQ(error_of(4, body), "rank 2 gives up");
  ASSERT_EQ(seen.size(), 3u);
  for (const auto& s : seen) EXPECT_EQ(s, "all_reduce: rank 2 failed");
}

TEST(ThreadGroup, WakesRanksInSubgroupsToo) {
  EXPECT_EQ(error_of(4,
                     [](Group& g) {
                       auto row = g.split(g.rank() / 2);
                       if (g.rank() == 3) throw IoError("disk full");
                       if (g.rank() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
                       for (;;) row->barrier();
                     }),
            "disk full");
}

TEST(ThreadGroup, TheLowestRanksOwnErrorWins) {
  EXPECT_EQ(error_of(4,
                     [](Group& g) {
                       if (g.rank() == 0) g.barrier();
                       std::this_thread::sleep_for(std::chrono::milliseconds(4 - g.rank()));
                       throw UsageError("rank {}", g.rank());
                     }),
            "rank 1");
}

TEST(ThreadGroup, OtherExceptionsKeepTheirType) {
  EXPECT_THROW(run_threads(2,
                           [](Group& g) {
                             if (g.rank() == 1) throw std::out_of_range("x");
                             g.barrier();
                           }),
               std::out_of_range);
}

TEST(ThreadGroup, ARankThatReturnsEarlyIsAnError) {
  EXPECT_EQ(error_of(3,
                     [](Group& g) {
                       if (g.rank() != 1) g.barrier();
                     }),
            "barrier: rank 1 has ended without it");
}

TEST(ThreadGroup, ARankOfAHostThatReturnsEarlyIsAnError) {
  for (int lost = 0; lost < 4; ++lost)
    for (const i64 n : {1, 50000}) {
      const std::string error = error_of(
          4,
          [&](Group& g) {
            std::vector<float> x(static_cast<std::size_t>(n), 1);
            if (g.rank() != lost) g.all_reduce(x.data(), n);
          },
          [](int r) { return r / 2; });
      EXPECT_EQ(error, fmt::format("all_reduce: rank {} has ended without it", lost)) << n;
    }
}

TEST(ThreadGroup, DifferentCollectivesAreABug) {
  const auto body = [](Group& g) {
    float x = 1;
    if (g.rank() == 0)
      g.all_reduce(&x, 1);
    else
      g.barrier();
  };
  EXPECT_NE(error_of(2, body).find("rank 0 is in all_reduce while rank 1 is in barrier"), std::string::npos)
      << error_of(2, body);
  const auto splitting = [](Group& g) {
    if (g.rank() == 0)
      g.split(0);
    else
      g.barrier();
  };
  EXPECT_NE(error_of(3, splitting).find("in split"), std::string::npos) << error_of(3, splitting);
}

// Also where ranks of different hosts have no message in common.
TEST(ThreadGroup, DifferentCallsOnHostsAreABug) {
  const std::vector<std::function<void(Group&)>> calls = {
      [](Group& g) { g.barrier(); },
      [](Group& g) {
        float x = 1;
        g.all_reduce(&x, 1);
      },
      [](Group& g) {
        std::vector<float> x(50000, 1);
        g.all_reduce(x.data(), 50000);
      },
      [](Group& g) {
        std::vector<float> x(400, 1);
        g.all_gather(x.data() + 100 * g.rank(), x.data(), std::vector<i64>(4, 100));
      },
      [](Group& g) {
        std::vector<float> x(400, 1);
        g.reduce_scatter(x.data(), x.data() + 100 * g.rank(), std::vector<i64>(4, 100));
      }};
  for (std::size_t a = 0; a < calls.size(); ++a)
    for (std::size_t b = 0; b < calls.size(); ++b)
      for (int others = 1; a != b && others < 15; ++others) {
        const std::string error = error_of(
            4, [&](Group& g) { calls[others >> g.rank() & 1 ? b : a](g); }, [](int r) { return r / 2; });
        EXPECT_THAT(error,
                    ::testing::ContainsRegex("^rank [0-3] is in .* while rank [0-3] is in |"
                                             "^all_reduce: (rank [0-3] sends|ranks [0-3] and [0-3] call it)"))
            << a << " " << b << " " << others;
      }
}

TEST(ThreadGroup, DifferentSizesAreABug) {
  const auto body = [](Group& g) {
    std::vector<float> x(8);
    g.all_reduce(x.data(), g.rank() ? 8 : 7);
  };
  EXPECT_NE(error_of(2, body).find("sends"), std::string::npos) << error_of(2, body);
}

TEST(ThreadGroup, BadArgumentsAreBugs) {
  const std::vector<i64> one{1}, negative{1, -1};
  float x[2] = {1, 2}, y[2];
  run_threads(2, [&](Group& g) {
    EXPECT_THROW(g.all_gather(x, y, one), BugError);
    EXPECT_THROW(g.reduce_scatter(x, y, negative), BugError);
    EXPECT_THROW(g.all_reduce(x, -1), BugError);
    EXPECT_THROW(g.broadcast_bytes(x, 4, 2), BugError);
    EXPECT_THROW(g.split(-1), BugError);
  });
  EXPECT_THROW(run_threads(0, [](Group&) {}), BugError);
}

TEST(ThreadGroup, NanIsTheMaximumEverywhere) {
  run_threads(3, [](Group& g) {
    std::vector<float> x{g.rank() == 1 ? NAN : 1.f, static_cast<float>(g.rank())};
    g.all_reduce_max(x.data(), 2);
    EXPECT_TRUE(std::isnan(x[0]));
    EXPECT_EQ(x[1], 2.f);
  });
}

}  // namespace
}  // namespace redco
