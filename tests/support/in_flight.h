// Many calls in flight, for tests of every backend: each must give the bits that it gives alone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/comm_conformance.h"

namespace redco::conformance {

// A call and its buffers. The same on every rank but for the values, the borders of segments and who sends
// what.
struct Operation {
  std::string name;
  std::vector<float> in, out, want;
  std::function<Started(Operation&)> start;
};

class Numbers {
 public:
  explicit Numbers(u64 seed) : state_(seed) {}
  i64 below(i64 n) { return static_cast<i64>((state_ = mix(state_)) % static_cast<u64>(n)); }

 private:
  u64 state_;
};

// Cuts n elements at `data` into up to five segments. Their borders differ between ranks.
inline Segments<float> cut_into_segments(float* data, i64 n, Numbers& own) {
  Segments<float> segments;
  for (i64 at = 0; at < n;) {
    const i64 m = segments.size() == 4 ? n - at : own.below(n - at) + 1;
    segments.push_back({data + at, m});
    at += m;
    if (own.below(3) == 0) segments.push_back({nullptr, 0});
  }
  return segments;
}

inline Operation make_operation(Group& g, i64 kind, Numbers& same, Numbers& own) {
  static constexpr i64 kSizes[] = {0, 1, 5, 37, 2048, 9000, 100003, 700001};
  const int p = g.size(), me = g.rank();
  std::vector<i64> counts;
  for (int r = 0; r < p; ++r)
    counts.push_back(same.below(4) == 0 ? 0
                                        : kSizes[same.below(std::ssize(kSizes))] / (p - 1) + same.below(3));
  const i64 n = total(counts), mine = counts[me], first = total({counts.begin(), counts.begin() + me});
  const u64 salt = static_cast<u64>(same.below(1000000));
  Operation o;
  const auto filled = [&](i64 size) {
    std::vector<float> v(static_cast<std::size_t>(size));
    for (i64 i = 0; i < size; ++i) v[i] = value<float>(me, i + static_cast<i64>(salt));
    return v;
  };
  switch (kind) {
    case 0:
    case 1:
      o.name = kind ? "all_reduce_max" : "all_reduce";
      o.in = filled(n);
      o.start = [&g, kind](Operation& o) {
        o.out = o.in;
        const i64 n = std::ssize(o.out);
        return kind ? g.start_all_reduce_max(o.out.data(), n) : g.start_all_reduce(o.out.data(), n);
      };
      break;
    case 2:
      o.name = "all_gather";
      o.in = filled(mine);
      o.start = [&g, counts, n](Operation& o) {
        o.out.assign(static_cast<std::size_t>(n), -1);
        return g.start_all_gather<float>(o.in.data(), o.out.data(), counts);
      };
      break;
    case 3:
      o.name = "reduce_scatter";
      o.in = filled(n);
      o.start = [&g, counts, mine](Operation& o) {
        o.out.assign(static_cast<std::size_t>(mine), -1);
        return g.start_reduce_scatter<float>(o.in.data(), o.out.data(), counts);
      };
      break;
    case 4: {
      o.name = "all_to_all";
      // Rank s sends counts[(s + r) % p] elements to rank r.
      std::vector<i64> send, recv;
      for (int r = 0; r < p; ++r) send.push_back(counts[(me + r) % p]);
      recv = send;
      o.in = filled(total(send));
      o.start = [&g, send, recv](Operation& o) {
        o.out.assign(static_cast<std::size_t>(total(recv)), -1);
        return g.start_all_to_all<float>(o.in.data(), send, o.out.data(), recv);
      };
      break;
    }
    case 5: {
      o.name = "all_gather of segments";
      o.in = filled(mine);
      const u64 seed = static_cast<u64>(own.below(1 << 30));
      o.start = [&g, counts, n, seed](Operation& o) {
        o.out.assign(static_cast<std::size_t>(n), -1);
        Numbers borders(seed);
        const auto send = cut_into_segments(o.in.data(), std::ssize(o.in), borders);
        std::vector<Segments<float>> recv;
        float* at = o.out.data();
        for (const i64 c : counts) {
          recv.push_back(cut_into_segments(at, c, borders));
          at += c;
        }
        return g.start_all_gather<float>(send, recv);
      };
      break;
    }
    case 6: {
      o.name = "reduce_scatter of segments";
      o.in = filled(n);
      const u64 seed = static_cast<u64>(own.below(1 << 30));
      o.start = [&g, counts, mine, seed](Operation& o) {
        o.out.assign(static_cast<std::size_t>(mine), -1);
        Numbers borders(seed);
        std::vector<Segments<float>> send;
        float* at = o.in.data();
        for (const i64 c : counts) {
          send.push_back(cut_into_segments(at, c, borders));
          at += c;
        }
        return g.start_reduce_scatter<float>(send, cut_into_segments(o.out.data(), mine, borders));
      };
      break;
    }
    case 7:
      o.name = "reduce_scatter in place";
      o.in = filled(n);
      o.start = [&g, counts, first](Operation& o) {
        o.out = o.in;
        return g.start_reduce_scatter<float>(o.out.data(), o.out.data() + first, counts);
      };
      break;
    case 8:
      o.name = "send";
      o.in = filled(n);
      o.start = [&g, p, me](Operation& o) {
        return g.start_send(o.in.data(), std::ssize(o.in) * 4, (me + 1) % p);
      };
      break;
    default:
      o.name = "receive";
      for (i64 i = 0; i < n; ++i)
        o.want.push_back(value<float>((me + p - 1) % p, i + static_cast<i64>(salt)));
      o.start = [&g, n, p, me](Operation& o) {
        o.out.assign(static_cast<std::size_t>(n), -1);
        return g.start_receive(o.out.data(), n * 4, (me + p - 1) % p);
      };
  }
  return o;
}

// Calls of all kinds and sizes, in flight together and waited for in an order that differs between ranks;
// some on a part of the ranks. They give the bits that each gives alone.
inline u64 in_flight(Group& g, u64 seed) {
  if (g.size() == 1) return 0;
  auto half = g.split_by([](int r) { return r % 2; });
  Numbers same(seed), own(seed * 1000 + static_cast<u64>(g.rank()));
  std::vector<Operation> ops;
  std::vector<i64> kinds = {0, 1, 2, 3, 4, 5, 6, 7, 0, 5, 6, 3};
  for (const i64 k : kinds) {
    const bool in_half = same.below(3) == 0 && g.size() % 2 == 0 && g.size() > 2;
    Group& where = in_half ? *half : g;
    Numbers part = same;  // the ranks of a half draw the same numbers
    ops.push_back(make_operation(where, k, part, own));
    same.below(2);
  }
  for (Operation& o : ops) {  // alone
    o.start(o).wait();
    o.want = o.out;
  }
  for (const i64 kind : {8, 9}) {  // a message around the ring
    Numbers part = same;
    ops.push_back(make_operation(g, kind, part, own));
  }
  u64 h = 1;
  for (int again = 0; again < 2; ++again) {
    std::vector<Started> started;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      started.push_back(ops[i].start(ops[i]));
      if (i != 5) continue;
      EXPECT_EQ(g.agree(g.rank() + 9), 9);  // completes, whatever is in flight
    }
    std::vector<std::size_t> order(ops.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[own.below(static_cast<i64>(i))]);
    for (const std::size_t i : order) started[i].wait();
    for (const Operation& o : ops) {
      EXPECT_TRUE(same_bits(o.out, o.want)) << o.name << ", seed " << seed;
      h = hash(o.out, h);
    }
  }
  return h;
}

}  // namespace redco::conformance
