// Random inputs of the linear recurrences, and their definitions one token at a time.
#pragma once

#include <functional>

#include "ops/delta_rule.h"
#include "support/op_cases.h"

namespace redco::testing {

struct RecurrenceSizes {
  i64 B = 1, T = 3, H = 2, G = 1, N = 2, P = 1;
};
struct RecurrenceValues {
  std::vector<double> decay, k, q, v, initial;
};
inline RecurrenceValues recurrence_values(const RecurrenceSizes& s, u64 seed) {
  Random r(seed);
  return {r.values(s.B * s.T * s.H, -1.5, -0.01), r.values(s.B * s.T * s.G * s.N),
          r.values(s.B * s.T * s.G * s.N), r.values(s.B * s.T * s.H * s.P), r.values(s.B * s.H * s.N * s.P)};
}

struct RecurrenceResults {
  std::vector<double> y, state;
};
// The state [N] of one column p, decayed, and `v` of it; at [b, t, h]. Adds what the token writes.
using Write = std::function<void(double* state, i64 stride, const double* k, double v, i64 at)>;
// segments: empty or [B, T].
inline RecurrenceResults recurrence_by_definition(const RecurrenceSizes& s, const RecurrenceValues& x,
                                                  bool initial, const std::vector<i32>& segments,
                                                  const Write& write) {
  RecurrenceResults e{std::vector<double>(s.B * s.T * s.H * s.P), std::vector<double>(s.B * s.H * s.N * s.P)};
  for (i64 b = 0; b < s.B; ++b)
    for (i64 h = 0; h < s.H; ++h) {
      double* state = e.state.data() + (b * s.H + h) * s.N * s.P;
      if (initial) std::copy_n(x.initial.data() + (b * s.H + h) * s.N * s.P, s.N * s.P, state);
      for (i64 t = 0; t < s.T; ++t) {
        const i64 row = b * s.T + t, at = row * s.H + h, kq = (row * s.G + h / (s.H / s.G)) * s.N;
        if (!segments.empty() && t > 0 && segments[row] != segments[row - 1])
          std::fill_n(state, s.N * s.P, 0.0);
        for (i64 i = 0; i < s.N * s.P; ++i) state[i] *= std::exp(x.decay[at]);
        for (i64 p = 0; p < s.P; ++p) {
          write(state + p, s.P, x.k.data() + kq, x.v[at * s.P + p], at);
          for (i64 n = 0; n < s.N; ++n) e.y[at * s.P + p] += x.q[kq + n] * state[n * s.P + p];
        }
      }
    }
  return e;
}

inline Tensor cut_heads(const Shape& shape, const std::vector<double>& values, const Placement& p, int dim) {
  return place(shape, values, on_mp(p.is_sharded() ? Placement::sharded(dim, p.unit) : p));
}
// `heads`, `groups`: how mp cuts them.
inline RecurrenceInputs recurrence_inputs(const RecurrenceSizes& s, const RecurrenceValues& x, bool initial,
                                          const std::vector<i32>& segments = {},
                                          const Placement& heads = Placement::replicated(),
                                          const Placement& groups = Placement::replicated()) {
  RecurrenceInputs in{
      cut_heads({s.B, s.T, s.H}, x.decay, heads, 2), cut_heads({s.B, s.T, s.G, s.N}, x.k, groups, 2),
      cut_heads({s.B, s.T, s.G, s.N}, x.q, groups, 2), cut_heads({s.B, s.T, s.H, s.P}, x.v, heads, 2)};
  if (initial) in.initial = cut_heads({s.B, s.H, s.N, s.P}, x.initial, heads, 1);
  if (!segments.empty()) in.segments = from_ids({s.B, s.T}, segments);
  return in;
}

// Samples of several lengths in 2 rows of 11 tokens: within a chunk, over chunk borders, and longer than
// chunks.
inline const std::vector<i32> kSegments = {1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 5, 6, 6, 6, 6, 7, 7, 0, 0, 0, 0};

inline void expect_recurrence(const Recurrence& r, const RecurrenceResults& e, double tolerance,
                              const std::string& what) {
  EXPECT_LT(distance(to_values(r.y), e.y), tolerance) << what;
  EXPECT_LT(distance(to_values(r.state), e.state), tolerance) << what;
}

// Heads cut like those of a model: more or fewer shards than groups, and numbers that do not divide. `run`
// computes with these placements of heads and groups and expects the right results.
inline void on_cut_heads(
    const std::function<void(Context&, const RecurrenceSizes&, const Placement&, const Placement&)>& run) {
  for (const i64 G : {1, 2, 3})
    for (const int shards : {2, 3})
      on_mesh({1, shards}, [&](Context& c) {
        const RecurrenceSizes s{2, 7, 6, G, 3, 2};
        const i64 f = kv_repeat(s.H, G, shards);
        run(c, s, Placement::sharded(0, s.H / (G * f)),
            f == 1 && G > 1 ? Placement::sharded(0) : Placement::replicated());
      });
}

}  // namespace redco::testing
