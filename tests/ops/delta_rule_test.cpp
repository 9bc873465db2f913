#include "ops/delta_rule.h"

#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "support/op_cases.h"

namespace redco {
namespace {

using namespace redco::testing;

struct DeltaSizes {
  i64 B = 1, T = 3, H = 2, G = 1, N = 2, P = 1;
};
struct DeltaValues {
  std::vector<double> decay, beta, k, q, v, initial;
};
DeltaValues delta_values(const DeltaSizes& s, u64 seed) {
  Random r(seed);
  DeltaValues x{r.values(s.B * s.T * s.H, -1.5, -0.01), r.values(s.B * s.T * s.H, 0.1, 0.95),
                r.values(s.B * s.T * s.G * s.N),        r.values(s.B * s.T * s.G * s.N),
                r.values(s.B * s.T * s.H * s.P),        r.values(s.B * s.H * s.N * s.P)};
  for (size_t i = 0; i < x.k.size(); i += s.N) {  // keys of length 1
    double length = 0;
    for (i64 n = 0; n < s.N; ++n) length += x.k[i + n] * x.k[i + n];
    for (i64 n = 0; n < s.N; ++n) x.k[i + n] /= std::sqrt(length);
  }
  return x;
}

struct DeltaExpected {
  std::vector<double> y, state;
};
// The definition, one token at a time. segments: empty or [B, T].
DeltaExpected delta_by_definition(const DeltaSizes& s, const DeltaValues& x, bool initial,
                                  const std::vector<i32>& segments = {}) {
  DeltaExpected e{std::vector<double>(s.B * s.T * s.H * s.P), std::vector<double>(s.B * s.H * s.N * s.P)};
  for (i64 b = 0; b < s.B; ++b)
    for (i64 h = 0; h < s.H; ++h) {
      double* state = e.state.data() + (b * s.H + h) * s.N * s.P;
      if (initial) std::copy_n(x.initial.data() + (b * s.H + h) * s.N * s.P, s.N * s.P, state);
      for (i64 t = 0; t < s.T; ++t) {
        const i64 at = b * s.T + t, kq = (at * s.G + h / (s.H / s.G)) * s.N;
        if (!segments.empty() && t > 0 && segments[at] != segments[at - 1])
          std::fill_n(state, s.N * s.P, 0.0);
        for (i64 p = 0; p < s.P; ++p) {
          double held = 0;
          for (i64 n = 0; n < s.N; ++n) {
            state[n * s.P + p] *= std::exp(x.decay[at * s.H + h]);
            held += state[n * s.P + p] * x.k[kq + n];
          }
          const double u = x.beta[at * s.H + h] * (x.v[(at * s.H + h) * s.P + p] - held);
          for (i64 n = 0; n < s.N; ++n) {
            state[n * s.P + p] += x.k[kq + n] * u;
            e.y[(at * s.H + h) * s.P + p] += x.q[kq + n] * state[n * s.P + p];
          }
        }
      }
    }
  return e;
}

DeltaRuleInputs delta_inputs(const DeltaSizes& s, const DeltaValues& x, bool initial,
                             const std::vector<i32>& segments = {},
                             const Placement& heads = Placement::replicated(),
                             const Placement& groups = Placement::replicated()) {
  const auto cut = [](const Placement& p, int dim) {
    return on_mp(p.is_sharded() ? Placement::sharded(dim, p.unit) : p);
  };
  DeltaRuleInputs in{
      place({s.B, s.T, s.H}, x.decay, cut(heads, 2)), place({s.B, s.T, s.H}, x.beta, cut(heads, 2)),
      place({s.B, s.T, s.G, s.N}, x.k, cut(groups, 2)), place({s.B, s.T, s.G, s.N}, x.q, cut(groups, 2)),
      place({s.B, s.T, s.H, s.P}, x.v, cut(heads, 2))};
  if (initial) in.initial = place({s.B, s.H, s.N, s.P}, x.initial, cut(heads, 1));
  if (!segments.empty()) in.segments = from_ids({s.B, s.T}, segments);
  return in;
}

TEST(GatedDeltaRule, EqualsTheDefinition) {
  on_one_rank([](Context&) {
    for (const i64 T : {1, 2, 7, 16, 21})
      for (const i64 G : {1, 2})
        for (const bool initial : {false, true})
          for (const i64 chunk : {1, 3, 8, 32}) {
            const DeltaSizes s{2, T, 4, G, 3, 5};
            const DeltaValues x = delta_values(s, 3);
            const DeltaExpected e = delta_by_definition(s, x, initial);
            const Recurrence r = gated_delta_rule(delta_inputs(s, x, initial), chunk);
            EXPECT_LT(distance(to_values(r.y), e.y), 1e-13) << T << " tokens in chunks of " << chunk;
            EXPECT_LT(distance(to_values(r.state), e.state), 1e-13) << T << " tokens in chunks of " << chunk;
          }
  });
}

TEST(GatedDeltaRule, SegmentsAreApart) {
  on_one_rank([](Context&) {
    const DeltaSizes s{2, 11, 2, 1, 3, 2};
    const DeltaValues x = delta_values(s, 4);
    const std::vector<i32> segments = {1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 5, 6, 6, 6, 6, 7, 7, 0, 0, 0, 0};
    const DeltaExpected e = delta_by_definition(s, x, false, segments);
    for (const i64 chunk : {1, 2, 3, 4, 11, 64}) {
      const Recurrence r = gated_delta_rule(delta_inputs(s, x, false, segments), chunk);
      EXPECT_LT(distance(to_values(r.y), e.y), 1e-13) << chunk;
      EXPECT_LT(distance(to_values(r.state), e.state), 1e-13) << chunk;
    }
  });
}

// All tokens have the same key, nothing is forgotten: powers of the system that a chunk solves are larger
// than 1e16, its solution is not.
TEST(GatedDeltaRule, EqualKeysLoseNoDigitsInFp32) {
  on_one_rank([](Context&) {
    const DeltaSizes s{1, 128, 1, 1, 2, 2};
    DeltaValues x = delta_values(s, 5);
    for (size_t i = 0; i < x.k.size(); ++i) x.k[i] = i % 2 ? 0.6F : 0.8F;
    std::fill(x.beta.begin(), x.beta.end(), 0.96875);
    std::fill(x.decay.begin(), x.decay.end(), 0.0);
    for (auto* values : {&x.q, &x.v})
      for (double& v : *values) v = static_cast<float>(v);
    const DeltaExpected e = delta_by_definition(s, x, false);
    DeltaRuleInputs in = delta_inputs(s, x, false);
    for (Tensor* t : {&in.log_decay, &in.beta, &in.k, &in.q, &in.v}) *t = cast(*t, DType::f32);
    const Recurrence r = gated_delta_rule(in, 64);
    EXPECT_LT(distance(to_values(r.y), e.y), 3e-6);
    EXPECT_LT(distance(to_values(r.state), e.state), 3e-6);
  });
}

OpCase delta_case(const std::string& name, const DeltaSizes& s, i64 chunk, bool state) {
  OpCase c{name,
           {{{s.B, s.T, s.H}, -1.5, -0.1},
            {{s.B, s.T, s.H}, 0.2, 0.9},
            {{s.B, s.T, s.G, s.N}},
            {{s.B, s.T, s.G, s.N}},
            {{s.B, s.T, s.H, s.P}},
            {{s.B, s.H, s.N, s.P}}},
           [=](const std::vector<Tensor>& x) {
             const Recurrence r = gated_delta_rule({x[0], x[1], x[2], x[3], x[4], x[5]}, chunk);
             return state ? r.state : r.y;
           }};
  c.combinations = 16;
  return c;
}

TEST(GatedDeltaRule, PassesCheckOp) {
  check_op(delta_case("chunks", {.B = 1, .T = 3, .H = 2, .G = 1, .N = 2, .P = 1}, 2, false));
  check_op(delta_case("groups", {.B = 2, .T = 3, .H = 2, .G = 2, .N = 1, .P = 1}, 3, false));
  check_op(delta_case("state", {.B = 1, .T = 3, .H = 2, .G = 1, .N = 1, .P = 2}, 2, true));
  check_op(delta_case("one token", {.B = 2, .T = 1, .H = 2, .G = 1, .N = 2, .P = 2}, 2, false));
}

TEST(GatedDeltaRule, CutHeadsCommunicateNothing) {
  for (const i64 G : {1, 2, 3})
    for (const int shards : {2, 3})
      on_mesh({1, shards}, [&](Context& c) {
        const DeltaSizes s{2, 7, 6, G, 3, 2};
        const DeltaValues x = delta_values(s, 6);
        const DeltaExpected e = delta_by_definition(s, x, true);
        const i64 f = kv_repeat(s.H, G, shards);
        const Placement heads = Placement::sharded(0, s.H / (G * f));
        const Placement groups = f == 1 && G > 1 ? Placement::sharded(0) : Placement::replicated();
        const DeltaRuleInputs in = delta_inputs(s, x, true, {}, heads, groups);
        c.keep_ledger();
        const Recurrence r = gated_delta_rule(in, 3);
        EXPECT_TRUE(c.ledger()->collectives().empty()) << G << " groups on " << shards << " shards";
        EXPECT_TRUE(r.y.layout()[Axis::mp].is_sharded(2));
        EXPECT_LT(distance(to_values(r.y), e.y), 1e-13);
        EXPECT_LT(distance(to_values(r.state), e.state), 1e-13);
      });
}

TEST(GatedDeltaRule, MisuseIsAnError) {
  on_one_rank([](Context&) {
    const DeltaSizes s;
    const DeltaValues x = delta_values(s, 1);
    DeltaRuleInputs in = delta_inputs(s, x, true, std::vector<i32>(s.B * s.T, 1));
    EXPECT_THROW(gated_delta_rule(in), BugError);  // a state and segments
    in.initial = {};
    EXPECT_THROW(gated_delta_rule(in, 0), BugError);
    in.beta = narrow(in.beta, 1, 0, 2);
    EXPECT_THROW(gated_delta_rule(in), BugError);
    in.v = Tensor();
    EXPECT_THROW(gated_delta_rule(in), BugError);
  });
}

}  // namespace
}  // namespace redco
