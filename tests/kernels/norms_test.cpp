#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/nn.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

// Forward of both norms in fp64; rms omits the mean.
template <class T>
std::vector<double> slow(bool rms, const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& b,
                         double eps, i64 R, i64 C) {
  std::vector<double> y(x.size());
  for (i64 r = 0; r < R; ++r) {
    double m = 0, v = 0;
    for (i64 c = 0; c < C && !rms; ++c) m += static_cast<double>(x[r * C + c]) / static_cast<double>(C);
    for (i64 c = 0; c < C; ++c)
      v += std::pow(static_cast<double>(x[r * C + c]) - m, 2) / static_cast<double>(C);
    for (i64 c = 0; c < C; ++c)
      y[r * C + c] = (static_cast<double>(x[r * C + c]) - m) / std::sqrt(v + eps) * (w.empty() ? 1 : w[c]) +
                     (b.empty() ? 0 : b[c]);
  }
  return y;
}

template <class T>
const T* pointer(const std::vector<T>& x) {
  return x.empty() ? nullptr : x.data();
}

template <class T>
struct Out {
  std::vector<T> y, mean, rstd;
};
template <class T>
Out<T> forward(bool rms, const std::vector<T>& x, const std::vector<T>& w, const std::vector<T>& b, T eps,
               i64 R, i64 C) {
  Out<T> o{std::vector<T>(x.size()), std::vector<T>(static_cast<std::size_t>(R)),
           std::vector<T>(static_cast<std::size_t>(R))};
  if (rms)
    rms_norm(x.data(), pointer(w), eps, o.y.data(), o.rstd.data(), R, C);
  else
    layer_norm(x.data(), pointer(w), pointer(b), eps, o.y.data(), o.mean.data(), o.rstd.data(), R, C);
  return o;
}

TEST(Norms, ForwardAgreesWithTheSlowTwin) {
  on_every_isa([] {
    for (bool rms : {false, true})
      for (auto [R, C] : {std::array<i64, 2>{0, 5}, {3, 1}, {1, 7}, {5, 33}, {70, 768}, {300, 100}})
        for (int with : {0, 1, 2, 3}) {
          auto x = random_array<float>(R * C, 1, 3);
          for (float& v : x) v += 10;  // a large mean, which makes one-pass variances inaccurate
          std::vector<float> w, b;
          if (with & 1) w = random_array<float>(C, 2);
          if ((with & 2) && !rms) b = random_array<float>(C, 3);
          // The error of the mean (10) is a few times 10 * 2^-24, divided by the deviation 3.
          expect_close(forward(rms, x, w, b, 1e-5f, R, C).y, slow(rms, x, w, b, 1e-5, R, C), 1e-5);
        }
  });
}

// d sum(g y) / d each input by central differences, fp64.
TEST(Norms, BackwardIsTheNumericDerivative) {
  const i64 R = 11, C = 9;
  const double eps = 1e-5, h = 1e-5;
  for (bool rms : {false, true})
    for (bool weights : {false, true}) {
      auto x = random_array<double>(R * C, 1),
           w = weights ? random_array<double>(C, 2) : std::vector<double>{},
           b = weights ? random_array<double>(C, 3) : std::vector<double>{};
      const auto g = random_array<double>(R * C, 4);
      const auto loss = [&] {
        const auto y = forward(rms, x, w, b, eps, R, C).y;
        double s = 0;
        for (std::size_t i = 0; i < y.size(); ++i) s += g[i] * y[i];
        return s;
      };
      const auto numeric = [&](std::vector<double>& p) {
        std::vector<double> d(p.size());
        for (std::size_t i = 0; i < p.size(); ++i) {
          const double keep = p[i];
          p[i] = keep + h;
          const double up = loss();
          p[i] = keep - h;
          d[i] = (up - loss()) / (2 * h);
          p[i] = keep;
        }
        return d;
      };
      on_every_isa([&] {
        const auto o = forward(rms, x, w, b, eps, R, C);
        std::vector<double> dx(x.size()), dw(static_cast<std::size_t>(C)), db(dw);
        std::vector<double> room(static_cast<std::size_t>(norm_backward_workspace(R, C, 2)), 7e30);
        if (rms)
          rms_norm_backward(x.data(), pointer(w), o.rstd.data(), g.data(), dx.data(), dw.data(), R, C,
                            room.data());
        else
          layer_norm_backward(x.data(), pointer(w), o.mean.data(), o.rstd.data(), g.data(), dx.data(),
                              dw.data(), db.data(), R, C, room.data());
        // h^2 f'''/6 ~ 1e-10 f''', rounding 100 * 2^-53 / h ~ 1e-9.
        expect_close(dx, numeric(x), 1e-7, "dx");
        if (weights) {
          expect_close(dw, numeric(w), 1e-7, "dw");
          if (!rms) expect_close(db, numeric(b), 1e-7, "db");
        }
        // dw and db are optional, independently, and do not affect the other outputs.
        std::vector<double> again(x.size()), dw2(dw.size()), db2(dw.size());
        if (rms) {
          rms_norm_backward<double>(x.data(), pointer(w), o.rstd.data(), g.data(), again.data(), nullptr, R,
                                    C, room.data());
          EXPECT_TRUE(same_bits(dx, again));
        } else {
          layer_norm_backward<double>(x.data(), pointer(w), o.mean.data(), o.rstd.data(), g.data(),
                                      again.data(), dw2.data(), nullptr, R, C, room.data());
          EXPECT_TRUE(same_bits(dw, dw2));
          layer_norm_backward<double>(x.data(), pointer(w), o.mean.data(), o.rstd.data(), g.data(),
                                      again.data(), nullptr, db2.data(), R, C, room.data());
          EXPECT_TRUE(same_bits(db, db2));
          layer_norm_backward<double>(x.data(), pointer(w), o.mean.data(), o.rstd.data(), g.data(),
                                      again.data(), nullptr, nullptr, R, C, room.data());
          expect_close(again, dx, 1e-14);
        }
      });
    }
}

TEST(Norms, Fp32BackwardAgreesWithFp64OnAnyThreads) {
  const i64 R = 700, C = 129;
  const auto x = random_array<double>(R * C, 1), w = random_array<double>(C, 2),
             g = random_array<double>(R * C, 3);
  const std::vector<float> xf(x.begin(), x.end()), wf(w.begin(), w.end()), gf(g.begin(), g.end());
  for (bool rms : {false, true}) {
    const auto run = [&]<class T>(const std::vector<T>& X, const std::vector<T>& W, const std::vector<T>& G) {
      const auto o = forward<T>(rms, X, W, {}, T(1e-5), R, C);
      std::vector<T> all(static_cast<std::size_t>(R * C + 2 * C));
      T *dx = all.data(), *dw = dx + R * C, *db = dw + C;
      std::vector<T> room(static_cast<std::size_t>(norm_backward_workspace(R, C, 2)), T(7e30));
      if (rms)
        rms_norm_backward(X.data(), W.data(), o.rstd.data(), G.data(), dx, dw, R, C, room.data());
      else
        layer_norm_backward(X.data(), W.data(), o.mean.data(), o.rstd.data(), G.data(), dx, dw, db, R, C,
                            room.data());
      return all;
    };
    const auto want = run(x, w, g);
    // dw sums 700 rows of ~1: chunks of 11 in fp32, then fp64: at most 700 * 2^-24, |dw| ~ 26.
    on_every_isa([&] { expect_close(run(xf, wf, gf), want, 2e-5); });
    expect_same_on_any_threads([&] { return run(xf, wf, gf); });
  }
}

TEST(Norms, ZeroRowsAreAllowed) {
  std::vector<float> dw(3, 7.0f), db(3, 7.0f), w(3, 1.0f);
  layer_norm_backward<float, float, float>(nullptr, w.data(), nullptr, nullptr, nullptr, nullptr, dw.data(),
                                           db.data(), 0, 3, nullptr);
  EXPECT_THAT(dw, testing::Each(0.0f));
  EXPECT_THAT(db, testing::Each(0.0f));
}

}  // namespace
}  // namespace redco::kernels
