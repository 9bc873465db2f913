#include "comm/hosts.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/comm_conformance.h"

namespace redco {
namespace {

std::string subtrees_of(const Hosts& h, int host) {
  std::string s;
  for (const Subtree& t : h.subtrees(host)) s += fmt::format("{}+{} ", t.first, t.n);
  return s;
}

TEST(Hosts, HaveTheLargestSubtrees) {
  const Hosts pairs(0, {5, 5, 3, 3, 3});  // ((0 + 1) + (2 + 3)) + 4
  EXPECT_EQ(subtrees_of(pairs, 0), "0+2 ");
  EXPECT_EQ(subtrees_of(pairs, 1), "2+2 4+1 ");
  const Hosts in_turn(1, {0, 1, 0, 1});
  EXPECT_EQ(subtrees_of(in_turn, 0), "0+1 2+1 ");
  EXPECT_EQ(subtrees_of(in_turn, 1), "1+1 3+1 ");
  const Hosts uneven(0, {0, 0, 0, 1});
  EXPECT_EQ(subtrees_of(uneven, 0), "0+2 2+1 ");
  EXPECT_EQ(subtrees_of(uneven, 1), "3+1 ");
  EXPECT_EQ(subtrees_of(Hosts(2, {7, 7, 7}), 0), "0+3 ");
}

// Together the subtrees are all ranks, and on each host each rank has one proxy, which serves it.
TEST(Hosts, EachRankIsServedOnceOnEachHost) {
  for (const int p : {2, 3, 4, 7, 16})
    for (const std::vector<int>& host_of : conformance::placements(p)) {
      SCOPED_TRACE(conformance::name_of(host_of));
      for (int me = 0; me < p; ++me) {
        const Hosts h(me, host_of);
        int next = 0;
        for (const Subtree& t : h.all_subtrees()) {
          EXPECT_EQ(t.first, next);
          next += t.n;
        }
        EXPECT_EQ(next, p);
        const auto served = h.served_by(me);
        EXPECT_EQ(served[0], me);
        for (int r = 0; r < p; ++r)
          EXPECT_EQ(std::count(served.begin(), served.end(), r), h.proxy(h.mine(), r) == me);
        EXPECT_EQ(h.most_staged(), Hosts(0, host_of).most_staged());
      }
    }
}

// Where hosts have equal numbers of consecutive ranks that are subtrees, sums take no more memory than on one
// host.
TEST(Hosts, StagingDoesNotGrowWithHosts) {
  for (const int on_host : {1, 2, 4, 8, 16}) {
    std::vector<int> host_of;
    for (int r = 0; r < 16; ++r) host_of.push_back(r / on_host);
    EXPECT_EQ(Hosts(0, host_of).most_staged(), 15) << on_host;
  }
}

}  // namespace
}  // namespace redco
