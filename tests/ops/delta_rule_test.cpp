#include "ops/delta_rule.h"

#include <gtest/gtest.h>

#include "ops/elementwise.h"
#include "ops/recurrence_values.h"
#include "ops/shape.h"

namespace redco {
namespace {

using namespace redco::testing;

struct DeltaValues : RecurrenceValues {
  std::vector<double> beta;
};
DeltaValues delta_values(const RecurrenceSizes& s, u64 seed) {
  DeltaValues x{recurrence_values(s, seed), Random(seed + 1).values(s.B * s.T * s.H, 0.1, 0.95)};
  for (size_t i = 0; i < x.k.size(); i += s.N) {  // keys of length 1
    double length = 0;
    for (i64 n = 0; n < s.N; ++n) length += x.k[i + n] * x.k[i + n];
    for (i64 n = 0; n < s.N; ++n) x.k[i + n] /= std::sqrt(length);
  }
  return x;
}

RecurrenceResults delta_by_definition(const RecurrenceSizes& s, const DeltaValues& x, bool initial,
                                      const std::vector<i32>& segments = {}) {
  return recurrence_by_definition(s, x, initial, segments,
                                  [&](double* state, i64 stride, const double* k, double v, i64 at) {
                                    double held = 0;
                                    for (i64 n = 0; n < s.N; ++n) held += state[n * stride] * k[n];
                                    for (i64 n = 0; n < s.N; ++n)
                                      state[n * stride] += k[n] * x.beta[at] * (v - held);
                                  });
}

Tensor delta_rates(const RecurrenceSizes& s, const DeltaValues& x,
                   const Placement& heads = Placement::replicated()) {
  return cut_heads({s.B, s.T, s.H}, x.beta, heads, 2);
}

TEST(GatedDeltaRule, EqualsTheDefinition) {
  on_one_rank([](Context&) {
    for (const i64 T : {1, 2, 7, 16, 21})
      for (const i64 G : {1, 2})
        for (const bool initial : {false, true})
          for (const i64 chunk : {1, 3, 8, 32}) {
            const RecurrenceSizes s{2, T, 4, G, 3, 5};
            const DeltaValues x = delta_values(s, 3);
            expect_recurrence(gated_delta_rule(recurrence_inputs(s, x, initial), delta_rates(s, x), chunk),
                              delta_by_definition(s, x, initial), 1e-13,
                              fmt::format("{} tokens in chunks of {}", T, chunk));
          }
  });
}

TEST(GatedDeltaRule, SegmentsAreApart) {
  on_one_rank([](Context&) {
    const RecurrenceSizes s{2, 11, 2, 1, 3, 2};
    const DeltaValues x = delta_values(s, 4);
    const RecurrenceInputs in = recurrence_inputs(s, x, false, kSegments);
    for (const i64 chunk : {1, 2, 3, 4, 11, 64})
      expect_recurrence(gated_delta_rule(in, delta_rates(s, x), chunk),
                        delta_by_definition(s, x, false, kSegments), 1e-13,
                        fmt::format("chunks of {}", chunk));
  });
}

// All tokens have the same key, nothing is forgotten: powers of the system that a chunk solves are larger
// than 1e16, its solution is not.
TEST(GatedDeltaRule, EqualKeysLoseNoDigitsInFp32) {
  on_one_rank([](Context&) {
    const RecurrenceSizes s{1, 128, 1, 1, 2, 2};
    DeltaValues x = delta_values(s, 5);
    for (size_t i = 0; i < x.k.size(); ++i) x.k[i] = i % 2 ? 0.6F : 0.8F;
    std::fill(x.beta.begin(), x.beta.end(), 0.96875);
    std::fill(x.decay.begin(), x.decay.end(), 0.0);
    for (auto* values : {&x.q, &x.v})
      for (double& v : *values) v = static_cast<float>(v);
    RecurrenceInputs in = recurrence_inputs(s, x, false);
    for (Tensor* t : {&in.log_decay, &in.k, &in.q, &in.v}) *t = cast(*t, DType::f32);
    expect_recurrence(gated_delta_rule(in, cast(delta_rates(s, x), DType::f32), 64),
                      delta_by_definition(s, x, false), 3e-6, "fp32");
  });
}

OpCase delta_case(const std::string& name, const RecurrenceSizes& s, i64 chunk, bool state) {
  OpCase c{name,
           {{{s.B, s.T, s.H}, -1.5, -0.1},
            {{s.B, s.T, s.H}, 0.2, 0.9},
            {{s.B, s.T, s.G, s.N}},
            {{s.B, s.T, s.G, s.N}},
            {{s.B, s.T, s.H, s.P}},
            {{s.B, s.H, s.N, s.P}}},
           [=](const std::vector<Tensor>& x) {
             const Recurrence r = gated_delta_rule({x[0], x[2], x[3], x[4], x[5]}, x[1], chunk);
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
  on_cut_heads([](Context& c, const RecurrenceSizes& s, const Placement& heads, const Placement& groups) {
    const DeltaValues x = delta_values(s, 6);
    const RecurrenceInputs in = recurrence_inputs(s, x, true, {}, heads, groups);
    const Tensor beta = delta_rates(s, x, heads);
    c.keep_ledger();
    const Recurrence r = gated_delta_rule(in, beta, 3);
    EXPECT_TRUE(c.ledger()->collectives().empty()) << s.G << " groups";
    EXPECT_TRUE(r.y.layout()[Axis::mp].is_sharded(2));
    expect_recurrence(r, delta_by_definition(s, x, true), 1e-13, fmt::format("{} groups", s.G));
  });
}

TEST(GatedDeltaRule, MisuseIsAnError) {
  on_one_rank([](Context&) {
    const RecurrenceSizes s;
    const DeltaValues x = delta_values(s, 1);
    const Tensor beta = delta_rates(s, x);
    RecurrenceInputs in = recurrence_inputs(s, x, true, std::vector<i32>(s.B * s.T, 1));
    EXPECT_THROW(gated_delta_rule(in, beta), BugError);  // a state and segments
    in.initial = {};
    EXPECT_NO_THROW(gated_delta_rule(in, beta));
    EXPECT_THROW(gated_delta_rule(in, beta, 0), BugError);
    EXPECT_THROW(gated_delta_rule(in, narrow(beta, 1, 0, 2)), BugError);
    EXPECT_THROW(gated_delta_rule(in, Tensor()), BugError);
    in.v = Tensor();
    EXPECT_THROW(gated_delta_rule(in, beta), BugError);
  });
}

}  // namespace
}  // namespace redco
