#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/nn.h"
#include "kernels/kernels_testing.h"
#include "kernels/philox.h"

namespace redco::kernels {
namespace {

// The parameters and inputs of a case.
template <class T>
struct Problem {
  AttentionShape s;
  AttentionArgs a;
  std::vector<T> q, k, v, g, bias, sinks;
  std::vector<float> slopes;
  std::vector<i32> mask, q_segment, k_segment;

  void point() {
    a.key_mask = mask.empty() ? nullptr : mask.data();
    a.q_segment = q_segment.empty() ? nullptr : q_segment.data();
    a.k_segment = k_segment.empty() ? nullptr : k_segment.data();
    a.bias = bias.empty() ? nullptr : bias.data();
    a.sinks = sinks.empty() ? nullptr : sinks.data();
    a.slopes = slopes.empty() ? nullptr : slopes.data();
  }
};

enum Extra {
  kMask = 1,
  kSegments = 2,
  kDropout = 4,
  kBias = 8,
  kBiasShared = 16,
  kCausal = 32,
  kWindow = 64,
  kCap = 256,
  kAhead = 512,
  kSlopes = 1024,
  kSinks = 2048,
  kSinksShared = 4096,
};

template <class T>
Problem<T> make(i64 B, i64 Tq, i64 Tk, i64 H, i64 Hkv, i64 D, int extra) {
  Problem<T> p;
  // Strides larger than necessary, and a cache longer than Tk.
  const i64 qs = H * D + 3, ks = Hkv * D + 5, vs = Hkv * D + 1;
  p.s = {B, Tq, Tk, H, Hkv, D, qs, ks, vs, (Tk + 2) * ks, (Tk + 1) * vs};
  p.q = random_array<T>(B * Tq * qs, 1);
  p.k = random_array<T>(B * (Tk + 2) * ks, 2);
  p.v = random_array<T>(B * (Tk + 1) * vs, 3);
  p.g = random_array<T>(B * Tq * H * D, 4);
  p.a.scale = D ? 1 / std::sqrt(static_cast<double>(D)) : 1;
  p.a.causal = extra & kCausal;
  if (extra & kWindow) p.a.window = std::max<i64>(1, Tk / 3);
  if (extra & kMask) {
    p.mask = random_ids(B * Tk, 0, 2, 5);  // 2 is visible like 1
    for (i64 j = 0; j < std::min<i64>(Tk, 3); ++j) p.mask[j] = 0;
  }
  if (extra & kSegments) {
    p.q_segment = random_ids(B * Tq, 0, 2, 6);
    p.k_segment = random_ids(B * Tk, 0, 2, 7);
  }
  if (extra & kDropout) {
    p.a.dropout = 0.3;
    p.a.dropout_key = 99;
    p.a.batch_offset = 5;
    p.a.head_offset = 7;
  }
  if (extra & kCap) p.a.softcap = 1.2;
  if (extra & kAhead) p.a.ahead = Tk / 4;
  if (extra & kSlopes) {
    p.slopes = random_array<float>(H, 9);
    for (float& slope : p.slopes) slope /= static_cast<float>(Tk);  // so that scores keep their size
  }
  if (extra & (kSinks | kSinksShared)) {
    p.a.sinks_B = extra & kSinksShared ? 1 : B;
    p.sinks = random_array<T>(p.a.sinks_B * H, 10);
  }
  if (extra & (kBias | kBiasShared)) {
    p.a.bias_B = extra & kBiasShared ? 1 : B;
    p.a.bias_H = extra & kBiasShared ? (extra & kBias ? 1 : H) : H;
    p.bias = random_array<T>(p.a.bias_B * p.a.bias_H * Tq * Tk, 8);
  }
  p.point();
  return p;
}

// Naive attention in fp64.
template <class T>
void slow(const Problem<T>& p, std::vector<double>& out, std::vector<double>& lse) {
  const auto& [B, Tq, Tk, H, Hkv, D, qs, ks, vs, kb, vb] = p.s;
  out.assign(static_cast<std::size_t>(B * Tq * H * D), 0);
  lse.assign(static_cast<std::size_t>(B * H * Tq), -INFINITY);
  for (i64 b = 0; b < B; ++b)
    for (i64 h = 0; h < H; ++h)
      for (i64 i = 0; i < Tq; ++i) {
        const i64 hk = h / (H / Hkv),
                  cell = (p.a.bias_B == 1 ? 0 : b) * p.a.bias_H + (p.a.bias_H == 1 ? 0 : h);
        std::vector<double> e(static_cast<std::size_t>(Tk), -INFINITY);
        double top = -INFINITY, sum = 0;
        for (i64 j = 0; j < Tk; ++j) {
          const i64 last = i + Tk - Tq;
          if (p.a.causal && j > last) continue;
          if (p.a.window > 0 && j <= last - p.a.window) continue;
          if (p.a.ahead >= 0 && j > last + p.a.ahead) continue;
          if (!p.mask.empty() && !p.mask[b * Tk + j]) continue;
          if (!p.q_segment.empty() && p.q_segment[b * Tq + i] != p.k_segment[b * Tk + j]) continue;
          double s = 0;
          for (i64 d = 0; d < D; ++d)
            s += static_cast<double>(p.q[(b * Tq + i) * qs + h * D + d]) *
                 static_cast<double>(p.k[b * kb + j * ks + hk * D + d]);
          s *= p.a.scale;
          if (p.a.softcap > 0) s = p.a.softcap * std::tanh(s / p.a.softcap);
          e[j] = s + (p.bias.empty() ? 0 : static_cast<double>(p.bias[(cell * Tq + i) * Tk + j]));
          if (!p.slopes.empty()) e[j] += static_cast<double>(p.slopes[h]) * static_cast<double>(j - last);
          top = std::max(top, e[j]);
        }
        const double sink =
            p.sinks.empty() ? -INFINITY : static_cast<double>(p.sinks[(p.a.sinks_B == 1 ? 0 : b) * H + h]);
        top = std::max(top, sink);
        if (top == -INFINITY) continue;
        sum = std::exp(sink - top);
        for (double& v : e) sum += v = std::exp(v - top);
        lse[(b * H + h) * Tq + i] = top + std::log(sum);
        for (i64 j = 0; j < Tk; ++j) {
          double w = e[j] / sum;
          if (p.a.dropout > 0)
            w = (philox_word(p.a.dropout_key, p.a.batch_offset + b, p.a.head_offset + h, i, j) >> 8) *
                            0x1p-24 >=
                        p.a.dropout
                    ? w / (1 - p.a.dropout)
                    : 0;
          for (i64 d = 0; d < D; ++d)
            out[((b * Tq + i) * H + h) * D + d] += w * static_cast<double>(p.v[b * vb + j * vs + hk * D + d]);
        }
      }
}

// The problem with keys and values rounded to bf16, as fp32 or fp64 in `wide`, and in bf16.
template <class T>
struct Stored {
  Problem<T> wide;
  std::vector<bf16> k, v;
};
template <class T>
Stored<T> in_bf16(Problem<T> p) {
  const auto rounded = [](std::vector<T>& x) {
    std::vector<bf16> out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float value = static_cast<float>(x[i]);
      float back;
      to_bf16(&value, &out[i], 1);
      from_bf16(&out[i], &back, 1);
      x[i] = static_cast<T>(back);
    }
    return out;
  };
  std::vector<bf16> k = rounded(p.k), v = rounded(p.v);
  p.point();
  return {std::move(p), std::move(k), std::move(v)};
}

template <class T>
struct Result {
  std::vector<T> out, lse, dq, dk, dv, dbias;
};
template <class T>
Result<T> run(const Stored<T>& p) {
  const auto& s = p.wide.s;
  Result<T> r;
  r.out.assign(static_cast<std::size_t>(s.B * s.Tq * s.H * s.D), T(9));
  r.lse.assign(static_cast<std::size_t>(s.B * s.Tq * s.H), T(9));
  std::vector<T> room(static_cast<std::size_t>(attention_workspace(s, p.wide.a, false, true)), T(7e30));
  attention(s, p.wide.a, p.wide.q.data(), p.k.data(), p.v.data(), r.out.data(), r.lse.data(), room.data());
  return r;
}
template <class T>
Result<T> run(const Problem<T>& p, bool backward) {
  const auto& s = p.s;
  Result<T> r;
  r.out.assign(static_cast<std::size_t>(s.B * s.Tq * s.H * s.D), T(9));
  r.lse.assign(static_cast<std::size_t>(s.B * s.Tq * s.H), T(9));
  // Workspaces of exactly the requested size, filled with values that must not be used.
  std::vector<T> room(static_cast<std::size_t>(attention_workspace(s, p.a, false, false)), T(7e30));
  attention(s, p.a, p.q.data(), p.k.data(), p.v.data(), r.out.data(), r.lse.data(), room.data());
  if (!backward) return r;
  r.dq.assign(r.out.size(), T(9));
  r.dk.assign(static_cast<std::size_t>(s.B * s.Tk * s.Hkv * s.D), T(9));
  r.dv = r.dk;
  r.dbias.assign(p.bias.size(), T(9));
  room.assign(static_cast<std::size_t>(attention_backward_workspace(s, false)), T(7e30));
  attention_backward(s, p.a, p.q.data(), p.k.data(), p.v.data(), r.out.data(), r.lse.data(), p.g.data(),
                     r.dq.data(), r.dk.data(), r.dv.data(), p.bias.empty() ? nullptr : r.dbias.data(),
                     room.data());
  return r;
}

struct Size {
  i64 B, Tq, Tk, H, Hkv, D;
};
const Size kSizes[] = {{1, 1, 1, 1, 1, 4},    {2, 5, 5, 2, 2, 8},     {1, 70, 70, 2, 1, 16},
                       {2, 3, 150, 4, 2, 7},  {1, 130, 300, 2, 2, 5}, {2, 1, 200, 6, 2, 16},
                       {1, 1, 2500, 4, 1, 8}, {1, 40, 10, 1, 1, 4},   {2, 9, 140, 18, 2, 3},
                       {1, 1, 30, 20, 2, 6}};
const int kExtras[] = {0,
                       kCausal,
                       kCausal | kWindow,
                       kWindow,
                       kMask | kCausal,
                       kSegments,
                       kSegments | kMask | kCausal | kWindow,
                       kDropout | kCausal,
                       kCap | kCausal,
                       kCap | kMask | kDropout | kWindow,
                       kBias,
                       kBiasShared | kCausal,
                       kBias | kBiasShared | kDropout | kMask,
                       kWindow | kAhead | kMask,
                       kSlopes | kCausal | kMask,
                       kSinks | kCausal | kWindow,
                       kSinksShared | kMask | kDropout | kSlopes};

TEST(Attention, ForwardAgreesWithTheSlowTwin) {
  for (const Size& z : kSizes)
    for (int extra : kExtras) {
      SCOPED_TRACE(fmt::format("B{} Tq{} Tk{} H{}/{} D{} extra {}", z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra));
      const auto p = make<double>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra);
      const auto f = make<float>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra);
      std::vector<double> out, lse, out32, lse32;
      slow(p, out, lse);
      slow(f, out32, lse32);
      on_every_isa([&] {
        const auto r = run(p, false);
        expect_close(r.out, out, 1e-13, "out");
        expect_close(r.lse, lse, 1e-13, "lse");
        // fp32 scores ~ N(0, 1..2) have errors of ~ 1e-6, and so do their exponentials.
        const auto r32 = run(f, false);
        expect_close(r32.out, out32, 5e-6, "out");
        expect_close(r32.lse, lse32, 2e-6, "lse");
      });
    }
}

// bf16 keys and values are widened exactly, and sums are those of the wide type.
TEST(Attention, ReadsKeysAndValuesInBf16) {
  for (const Size& z : kSizes)
    for (const int extra : {0, kMask | kCausal | kWindow, kBias | kDropout}) {
      SCOPED_TRACE(fmt::format("B{} Tq{} Tk{} H{}/{} D{} extra {}", z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra));
      const auto p = in_bf16(make<double>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra));
      const auto f = in_bf16(make<float>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra));
      std::vector<double> out, lse, out32, lse32;
      slow(p.wide, out, lse);
      slow(f.wide, out32, lse32);
      on_every_isa([&] {
        const auto r = run(p);
        expect_close(r.out, out, 1e-13, "out");
        expect_close(r.lse, lse, 1e-13, "lse");
        const auto r32 = run(f);  // errors as above
        expect_close(r32.out, out32, 5e-6, "out");
        expect_close(r32.lse, lse32, 2e-6, "lse");
      });
    }
}

TEST(Attention, BackwardIsTheNumericDerivative) {
  const Size sizes[] = {{2, 5, 7, 4, 2, 3}, {1, 7, 5, 2, 1, 4}, {2, 1, 6, 2, 2, 3}};
  for (const Size& z : sizes)
    for (int extra : kExtras) {
      SCOPED_TRACE(fmt::format("B{} Tq{} Tk{} H{}/{} D{} extra {}", z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra));
      auto p = make<double>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra);
      const auto r = run(p, true);
      const double h = 1e-5;
      const auto loss = [&] {
        std::vector<double> out, lse;
        slow(p, out, lse);
        double s = 0;
        for (std::size_t i = 0; i < out.size(); ++i) s += p.g[i] * out[i];
        return s;
      };
      const auto numeric = [&](double& x) {
        const double keep = x;
        x = keep + h;
        const double up = loss();
        x = keep - h;
        const double down = loss();
        x = keep;
        return (up - down) / (2 * h);
      };
      // h^2 f''' / 6 ~ 1e-10, rounding 30 * 2^-53 / h ~ 1e-9.
      for (i64 b = 0; b < z.B; ++b) {
        for (i64 i = 0; i < z.Tq; ++i)
          for (i64 c = 0; c < z.H * z.D; ++c)
            ASSERT_NEAR(r.dq[(b * z.Tq + i) * z.H * z.D + c], numeric(p.q[(b * z.Tq + i) * p.s.q_stride + c]),
                        1e-7);
        for (i64 j = 0; j < z.Tk; ++j)
          for (i64 c = 0; c < z.Hkv * z.D; ++c) {
            ASSERT_NEAR(r.dk[(b * z.Tk + j) * z.Hkv * z.D + c],
                        numeric(p.k[b * p.s.k_batch_stride + j * p.s.k_stride + c]), 1e-7);
            ASSERT_NEAR(r.dv[(b * z.Tk + j) * z.Hkv * z.D + c],
                        numeric(p.v[b * p.s.v_batch_stride + j * p.s.v_stride + c]), 1e-7);
          }
      }
      for (std::size_t i = 0; i < p.bias.size(); ++i)
        ASSERT_NEAR(r.dbias[i], numeric(p.bias[i]), 1e-7) << "bias " << i;
    }
}

// Gradients over several blocks: in fp64 computed from the probabilities (the test above proves the formula
// for one block); fp32 and every instruction set are compared with that.
TEST(Attention, BackwardOverSeveralBlocksAgreesWithTheFormula) {
  for (const Size& z : {Size{1, 150, 300, 2, 1, 6}, Size{2, 140, 140, 3, 3, 10}})
    for (int extra : kExtras) {
      SCOPED_TRACE(fmt::format("Tq{} Tk{} extra {}", z.Tq, z.Tk, extra));
      const auto p = make<double>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra);
      const auto& s = p.s;
      const auto r = run(p, true);
      std::vector<double> dq(r.dq.size()), dk(r.dk.size()), dv(r.dv.size()), dbias(r.dbias.size());
      for (i64 b = 0; b < z.B; ++b)
        for (i64 h = 0; h < z.H; ++h)
          for (i64 i = 0; i < z.Tq; ++i) {
            const i64 hk = h / (z.H / z.Hkv), at = ((b * z.Tq + i) * z.H + h) * z.D, last = i + z.Tk - z.Tq;
            const i64 cell =
                ((p.a.bias_B == 1 ? 0 : b) * p.a.bias_H + (p.a.bias_H == 1 ? 0 : h)) * z.Tq * z.Tk;
            const double lse = r.lse[(b * z.H + h) * z.Tq + i];
            if (lse == -INFINITY) continue;
            double delta = 0;
            for (i64 d = 0; d < z.D; ++d) delta += p.g[at + d] * r.out[at + d];
            for (i64 j = 0; j < z.Tk; ++j) {
              if ((p.a.causal && j > last) || (p.a.window > 0 && j <= last - p.a.window)) continue;
              if (p.a.ahead >= 0 && j > last + p.a.ahead) continue;
              if (!p.mask.empty() && !p.mask[b * z.Tk + j]) continue;
              if (!p.q_segment.empty() && p.q_segment[b * z.Tq + i] != p.k_segment[b * z.Tk + j]) continue;
              const double* q = &p.q[(b * z.Tq + i) * s.q_stride + h * z.D];
              const double* k = &p.k[b * s.k_batch_stride + j * s.k_stride + hk * z.D];
              const double* v = &p.v[b * s.v_batch_stride + j * s.v_stride + hk * z.D];
              double score = 0, dp = 0, keep = 1;
              for (i64 d = 0; d < z.D; ++d) score += q[d] * k[d], dp += p.g[at + d] * v[d];
              score *= p.a.scale;
              double slope = p.a.scale;
              if (p.a.softcap > 0) {
                const double t = std::tanh(score / p.a.softcap);
                score = p.a.softcap * t;
                slope *= 1 - t * t;
              }
              score += p.bias.empty() ? 0 : p.bias[cell + i * z.Tk + j];
              if (!p.slopes.empty())
                score += static_cast<double>(p.slopes[h]) * static_cast<double>(j - last);
              if (p.a.dropout > 0)
                keep = (philox_word(p.a.dropout_key, p.a.batch_offset + b, p.a.head_offset + h, i, j) >> 8) *
                                   0x1p-24 >=
                               p.a.dropout
                           ? 1 / (1 - p.a.dropout)
                           : 0;
              const double w = std::exp(score - lse), ds = w * (dp * keep - delta);
              const i64 to = ((b * z.Tk + j) * z.Hkv + hk) * z.D;
              for (i64 d = 0; d < z.D; ++d) {
                dq[at + d] += slope * ds * k[d];
                dk[to + d] += slope * ds * q[d];
                dv[to + d] += w * keep * p.g[at + d];
              }
              if (!dbias.empty()) dbias[cell + i * z.Tk + j] += ds;
            }
          }
      const auto f = make<float>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra);
      on_every_isa([&] {
        const auto now = run(p, true);
        expect_close(now.dq, dq, 1e-12, "dq");
        expect_close(now.dk, dk, 1e-12, "dk");
        expect_close(now.dv, dv, 1e-12, "dv");
        expect_close(now.dbias, dbias, 1e-12, "dbias");
        // Sums of up to 300 terms ~ 1, each with an error of ~ 1e-6.
        const auto r32 = run(f, true);
        expect_close(r32.dq, dq, 3e-5, "dq");
        expect_close(r32.dk, dk, 3e-5, "dk");
        expect_close(r32.dv, dv, 3e-5, "dv");
        expect_close(r32.dbias, dbias, 3e-5, "dbias");
      });
    }
}

TEST(Attention, SameBitsOnAnyThreads) {
  for (const Size& z : {Size{2, 150, 150, 4, 2, 16}, Size{2, 1, 3000, 8, 2, 16}})
    for (int extra : {static_cast<int>(kCausal), kDropout | kBiasShared}) {
      const auto p = make<float>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, extra);
      expect_same_on_any_threads([&] {
        auto r = run(p, true);
        for (const auto* x : {&r.lse, &r.dq, &r.dk, &r.dv, &r.dbias})
          r.out.insert(r.out.end(), x->begin(), x->end());
        return r.out;
      });
    }
}

TEST(Attention, ZeroSizesAreAllowed) {
  for (const Size& z : {Size{0, 3, 3, 2, 1, 4}, Size{2, 0, 3, 2, 1, 4}, Size{2, 3, 0, 2, 1, 4},
                        Size{2, 1, 0, 2, 1, 4}, Size{2, 3, 3, 0, 0, 4}, Size{2, 3, 3, 2, 1, 0}}) {
    const auto r = run(make<float>(z.B, z.Tq, z.Tk, z.H, z.Hkv, z.D, kCausal), true);
    EXPECT_THAT(r.out, testing::Each(0.0f));
    EXPECT_THAT(r.dq, testing::Each(0.0f));
    EXPECT_THAT(r.dk, testing::Each(0.0f));
    EXPECT_THAT(r.dv, testing::Each(0.0f));
    if (z.Tk == 0) {
      EXPECT_THAT(r.lse, testing::Each(-kInf));
    }
  }
}

TEST(Attention, AQueryWithoutVisibleKeysGivesZeros) {
  auto p = make<float>(1, 4, 6, 2, 2, 8, kMask);
  std::fill(p.mask.begin(), p.mask.end(), 0);
  const auto r = run(p, true);
  EXPECT_THAT(r.out, testing::Each(0.0f));
  EXPECT_THAT(r.lse, testing::Each(-kInf));
  EXPECT_THAT(r.dq, testing::Each(0.0f));
  EXPECT_THAT(r.dk, testing::Each(0.0f));
  EXPECT_THAT(r.dv, testing::Each(0.0f));
}

}  // namespace
}  // namespace redco::kernels
