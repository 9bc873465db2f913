#include "ops/recurrence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/recurrence_values.h"
#include "ops/shape.h"

namespace redco {
namespace {

using namespace redco::testing;
using Xs = std::vector<Tensor>;

RecurrenceResults linear_by_definition(const RecurrenceSizes& s, const RecurrenceValues& x, bool initial,
                                       const std::vector<i32>& segments = {}) {
  return recurrence_by_definition(s, x, initial, segments,
                                  [&](double* state, i64 stride, const double* k, double v, i64) {
                                    for (i64 n = 0; n < s.N; ++n) state[n * stride] += k[n] * v;
                                  });
}

TEST(LinearRecurrence, EqualsTheDefinition) {
  on_one_rank([](Context&) {
    for (const i64 T : {1, 2, 7, 8, 9, 24})
      for (const i64 G : {1, 2})
        for (const bool initial : {false, true})
          for (const i64 chunk : {1, 4, 8, 64}) {
            const RecurrenceSizes s{2, T, 4, G, 3, 5};
            const RecurrenceValues x = recurrence_values(s, 3);
            expect_recurrence(linear_recurrence(recurrence_inputs(s, x, initial), chunk),
                              linear_by_definition(s, x, initial), 1e-13,
                              fmt::format("{} tokens in chunks of {}", T, chunk));
          }
  });
}

TEST(LinearRecurrence, SegmentsAreApart) {
  on_one_rank([](Context&) {
    const RecurrenceSizes s{2, 11, 2, 1, 3, 2};
    const RecurrenceValues x = recurrence_values(s, 4);
    const RecurrenceInputs in = recurrence_inputs(s, x, false, kSegments);
    for (const i64 chunk : {1, 2, 3, 4, 11, 64})
      expect_recurrence(linear_recurrence(in, chunk), linear_by_definition(s, x, false, kSegments), 1e-13,
                        fmt::format("chunks of {}", chunk));
  });
}

// Decays that leave nothing, and none at all: no overflow in the products of a chunk.
TEST(LinearRecurrence, ExtremeDecaysStayFinite) {
  on_one_rank([](Context&) {
    const RecurrenceSizes s{1, 9, 1, 1, 2, 2};
    RecurrenceValues x = recurrence_values(s, 5);
    for (const double decay : {-1e4, 0.0}) {
      std::fill(x.decay.begin(), x.decay.end(), decay);
      RecurrenceInputs in = recurrence_inputs(s, x, true);
      in.log_decay = in.log_decay.watched();
      const Recurrence r = linear_recurrence(in, 4);
      EXPECT_LT(distance(to_values(r.y), linear_by_definition(s, x, true).y), 1e-13);
      for (const double g : to_values(grad(sum_all(square(r.y)), {in.log_decay})[0]))
        EXPECT_TRUE(std::isfinite(g));
    }
  });
}

// Long sums of log decays and small differences between them, in fp32: tokens that forget everything, then
// tokens that remember, within a chunk and over chunks.
TEST(LinearRecurrence, SmallDecaysAfterLargeOnesAreExact) {
  on_one_rank([](Context&) {
    const RecurrenceSizes s{1, 48, 2, 1, 2, 2};
    RecurrenceValues x = recurrence_values(s, 6);
    for (std::size_t i = 0; i < x.decay.size(); ++i) x.decay[i] = i % 48 < 24 ? -3000.0 : -1.0 / 128;
    for (auto* values : {&x.decay, &x.k, &x.q, &x.v})
      for (double& v : *values) v = static_cast<float>(v);
    const RecurrenceResults e = linear_by_definition(s, x, false);
    RecurrenceInputs in = recurrence_inputs(s, x, false);
    for (Tensor* t : {&in.log_decay, &in.k, &in.q, &in.v}) *t = cast(*t, DType::f32);
    for (const i64 chunk : {4, 64}) {
      // Sums of at most 24 terms, each rounded a few times.
      const Recurrence r = linear_recurrence(in, chunk);
      expect_recurrence(r, e, 3e-6, fmt::format("chunks of {}", chunk));
    }
  });
}

OpCase recurrence_case(const std::string& name, const RecurrenceSizes& s, i64 chunk, bool state,
                       const std::vector<i32>& segments = {}) {
  OpCase c{
      name,
      {{{s.B, s.T, s.H}, -1.5, -0.1}, {{s.B, s.T, s.G, s.N}}, {{s.B, s.T, s.G, s.N}}, {{s.B, s.T, s.H, s.P}}},
      [=](const Xs& x) {
        RecurrenceInputs in{x[0], x[1], x[2], x[3]};
        if (segments.empty()) in.initial = x[4];
        if (!segments.empty()) in.segments = x[4];
        const Recurrence r = linear_recurrence(in, chunk);
        return state ? r.state : r.y;
      }};
  if (segments.empty()) {
    c.inputs.push_back({{s.B, s.H, s.N, s.P}});
  } else {
    c.inputs.push_back(ids_input({s.B, s.T}, segments));
  }
  c.combinations = 24;
  return c;
}

TEST(LinearRecurrence, PassesCheckOp) {
  check_op(recurrence_case("chunks", {.B = 1, .T = 3, .H = 2, .G = 1, .N = 2, .P = 1}, 2, false));
  check_op(recurrence_case("groups", {.B = 2, .T = 3, .H = 2, .G = 2, .N = 1, .P = 2}, 3, false));
  check_op(recurrence_case("state", {.B = 1, .T = 3, .H = 3, .G = 1, .N = 1, .P = 2}, 2, true));
  check_op(
      recurrence_case("segments", {.B = 1, .T = 4, .H = 2, .G = 1, .N = 1, .P = 2}, 2, false, {1, 1, 2, 2}));
  check_op(recurrence_case("one token", {.B = 2, .T = 1, .H = 2, .G = 1, .N = 2, .P = 2}, 2, false));
}

TEST(LinearRecurrence, CutHeadsCommunicateNothing) {
  on_cut_heads([](Context& c, const RecurrenceSizes& s, const Placement& heads, const Placement& groups) {
    const RecurrenceValues x = recurrence_values(s, 6);
    const RecurrenceInputs in = recurrence_inputs(s, x, true, {}, heads, groups);
    c.keep_ledger();
    const Recurrence r = linear_recurrence(in, 3);
    EXPECT_TRUE(c.ledger()->collectives().empty()) << s.G << " groups";
    EXPECT_TRUE(r.y.layout()[Axis::mp].is_sharded(2));
    EXPECT_TRUE(r.state.layout()[Axis::mp].is_sharded(1));
    expect_recurrence(r, linear_by_definition(s, x, true), 1e-13, fmt::format("{} groups", s.G));
  });
}

TEST(LinearRecurrence, MisuseIsAnError) {
  on_one_rank([](Context&) {
    const RecurrenceSizes s;
    const RecurrenceValues x = recurrence_values(s, 1);
    RecurrenceInputs in = recurrence_inputs(s, x, true, std::vector<i32>(s.B * s.T, 1));
    EXPECT_THROW(linear_recurrence(in), BugError);  // a state and segments
    in.initial = {};
    EXPECT_THROW(linear_recurrence(in, 0), BugError);
    in.v = narrow(in.v, 1, 0, 2);
    EXPECT_THROW(linear_recurrence(in), BugError);
    in.v = Tensor();
    EXPECT_THROW(linear_recurrence(in), BugError);
  });
}

TEST(CausalConv1d, PassesCheckOp) {
  OpCase c{
      "plain", {{{2, 4, 3}}, {{3, 2}}, {{3}}}, [](const Xs& x) { return causal_conv1d(x[0], x[1], x[2]); }};
  c.inputs[0].units = c.inputs[1].units = {1, 2};
  c.combinations = 100;
  check_op(c);
  check_op({"continued", {{{2, 2, 2}}, {{2, 4}}, {{2, 3, 2}}}, [](const Xs& x) {
              return causal_conv1d(x[0], x[1], {}, x[2]);
            }});
  check_op({"segments", {{{1, 5, 2}}, {{2, 3}}, ids_input({1, 5}, {1, 1, 2, 2, 2})}, [](const Xs& x) {
              return causal_conv1d(x[0], x[1], {}, {}, x[2]);
            }});
}

TEST(CausalConv1d, EqualsTheDefinition) {
  on_one_rank([](Context&) {
    const std::vector<i32> segments = {1, 1, 1, 2, 2, 2, 3, 4, 4, 4};
    for (const i64 T : {1, 2, 5})
      for (const i64 K : {1, 2, 4}) {
        const i64 B = 2, C = 3;
        Random r(8);
        const auto x = r.values(B * T * C), w = r.values(C * K), before = r.values(B * (K - 1) * C);
        const std::vector<i32> ids(segments.begin(), segments.begin() + B * T);
        const Tensor tx = place({B, T, C}, x, {}), tw = place({C, K}, w, {});
        for (const bool apart : {false, true}) {
          std::vector<double> expected(B * T * C);
          for (i64 b = 0; b < B; ++b)
            for (i64 t = 0; t < T; ++t)
              for (i64 c = 0; c < C; ++c)
                for (i64 k = 0; k < K; ++k) {
                  const i64 at = t + k - K + 1;
                  if (at < 0 ? apart : apart && ids[b * T + at] != ids[b * T + t]) continue;
                  const double value =
                      at < 0 ? before[(b * (K - 1) + at + K - 1) * C + c] : x[(b * T + at) * C + c];
                  expected[(b * T + t) * C + c] += w[c * K + k] * value;
                }
          const Tensor y = apart ? causal_conv1d(tx, tw, {}, {}, from_ids({B, T}, ids))
                                 : causal_conv1d(tx, tw, {}, place({B, K - 1, C}, before, {}));
          EXPECT_LT(distance(to_values(y), expected), 1e-14) << T << " tokens, " << K << " taps";
        }
      }
    EXPECT_THROW(causal_conv1d(zeros({1, 2, 3}), zeros({3, 4}), {}, zeros({1, 2, 3})), BugError);
  });
}

constexpr i64 kRows = 2, kChannels = 3, kNumbers = 2;

SelectiveInputs selective_inputs(i64 T, u64 seed, bool initial, const std::vector<i32>& segments = {}) {
  Random r(seed);
  const auto draw = [&](const Shape& s, double low, double high) {
    return place(s, r.values(numel(s), low, high), {});
  };
  const i64 B = kRows, C = kChannels, N = kNumbers;
  SelectiveInputs in{.dt = draw({B, T, C}, 0.1, 1),
                     .x = draw({B, T, C}, -1, 1),
                     .rates = draw({C, N}, 0.2, 2),
                     .k = draw({B, T, N}, -1, 1),
                     .q = draw({B, T, N}, -1, 1)};
  if (initial) in.initial = draw({B, C, N}, -1, 1);
  if (!segments.empty()) in.segments = from_ids({B, T}, segments);
  return in;
}

// The same with a head of linear_recurrence for each number of each channel.
Recurrence by_heads(const SelectiveInputs& in, i64 T) {
  const i64 B = kRows, C = kChannels, N = kNumbers, H = C * N;
  const auto each = [&](const Tensor& t) {  // [B, T, N] -> [B, T, H, 1]
    return reshape(broadcast_to(reshape(t, {B, T, 1, N}), {B, T, C, N}), {B, T, H, 1});
  };
  RecurrenceInputs r{
      .log_decay = reshape(reshape(in.dt, {B, T, C, 1}) * -in.rates, {B, T, H}),
      .k = each(in.k),
      .q = each(in.q),
      .v = reshape(broadcast_to(reshape(in.dt * in.x, {B, T, C, 1}), {B, T, C, N}), {B, T, H, 1}),
      .segments = in.segments};
  if (in.initial.defined()) r.initial = reshape(in.initial, {B, H, 1, 1});
  const Recurrence out = linear_recurrence(r);
  return {sum(reshape(out.y, {B, T, C, N}), {-1}), reshape(out.state, {B, C, N})};
}

TEST(SelectiveScan, EqualsARecurrenceOfEachNumber) {
  on_one_rank([](Context&) {
    for (const i64 T : {1, 2, 9})
      for (const bool initial : {false, true}) {
        const SelectiveInputs in = selective_inputs(T, 7, initial);
        const Recurrence r = selective_scan(in), e = by_heads(in, T);
        EXPECT_LT(distance(to_values(r.y), to_values(e.y)), 1e-13) << T;
        EXPECT_LT(distance(to_values(r.state), to_values(e.state)), 1e-13) << T;
      }
    const SelectiveInputs in = selective_inputs(5, 8, false, {1, 1, 2, 2, 2, 1, 2, 3, 0, 0});
    EXPECT_LT(distance(to_values(selective_scan(in).y), to_values(by_heads(in, 5).y)), 1e-13);
    SelectiveInputs wrong = selective_inputs(2, 9, false);
    wrong.k = wrong.x;
    EXPECT_THROW(selective_scan(wrong), BugError);
  });
}

TEST(SelectiveScan, PassesCheckOp) {
  const Input dt{{2, 3, 4}, 0.1, 1}, x{{2, 3, 4}}, rates{{4, 2}, 0.2, 2}, k{{2, 3, 2}}, initial{{2, 4, 2}};
  for (const bool state : {false, true}) {
    OpCase c{state ? "state" : "y", {dt, x, rates, k, k, initial}, [=](const Xs& in) {
               const Recurrence r = selective_scan({in[0], in[1], in[2], in[3], in[4], in[5]});
               return state ? r.state : r.y;
             }};
    c.combinations = 8;
    check_op(c);
  }
}

// Cut along channels, nothing is communicated.
TEST(SelectiveScan, CutChannelsCommunicateNothing) {
  on_mesh({1, 2}, [](Context& c) {
    SelectiveInputs in = selective_inputs(4, 7, false);
    const std::vector<double> expected = to_values(selective_scan(in).y);
    for (Tensor* t : {&in.dt, &in.x}) *t = redistribute(*t, on_mp(Placement::sharded(2)));
    in.rates = redistribute(in.rates, on_mp(Placement::sharded(0)));
    c.keep_ledger();
    const Recurrence r = selective_scan(in);
    EXPECT_TRUE(c.ledger()->collectives().empty());
    EXPECT_TRUE(r.y.layout()[Axis::mp].is_sharded(2));
    EXPECT_LT(distance(to_values(r.y), expected), 1e-13);
  });
}

}  // namespace
}  // namespace redco
