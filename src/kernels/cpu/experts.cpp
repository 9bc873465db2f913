#include "kernels/cpu/experts.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/products.h"

namespace redco::kernels {
namespace {

// Some rows of an expert. `before`: number of rows in all previous pieces.
struct Piece {
  i64 expert, before;
  const i64* rows;
  i64 m;
};

template <class T, class S, class F>
void for_pieces(const Experts<T, S>& a, const F& f) {
  std::vector<i64> rows;
  i64 before = 0;
  for (i64 e = 0; e < a.E; ++e) {
    rows.clear();
    for (i64 r = 0; r < a.R; ++r)
      if (a.chosen[r * a.E + e] != 0) rows.push_back(r);
    const i64 n = static_cast<i64>(rows.size());
    for (i64 i = 0; i < n; i += kExpertRows) {
      const i64 m = std::min(kExpertRows, n - i);
      REDCO_CHECK(!a.hidden || before + m <= a.hidden_rows, "experts need {} hidden rows, but there are {}",
                  before + m, a.hidden_rows);
      f(Piece{e, before, rows.data() + i, m});
      before += m;
    }
  }
}

template <class T>
void gather(const T* from, const Piece& p, i64 C, T* to) {
  for_rows(p.m, C, [&](i64 i, i64 end) {
    for (; i < end; ++i) std::copy_n(from + p.rows[i] * C, C, to + i * C);
  });
}

// to[rows] += x, where each row of x is multiplied by by[row * step]; the rows are distinct.
template <class T>
void scatter(const T* x, const Piece& p, i64 C, const T* by, i64 step, T* to) {
  for_rows(p.m, C, [&](i64 i, i64 end) {
    for (; i < end; ++i) {
      const T f = by ? by[p.rows[i] * step] : T(1);
      T* const y = to + p.rows[i] * C;
      const T* const from = x + i * C;
#pragma omp simd
      for (i64 c = 0; c < C; ++c) y[c] += f * from[c];
    }
  });
}

template <class T>
void multiply(T* y, const T* x, i64 n) {  // y *= x
  for_blocks(n, [&](i64 i, i64 end) {
#pragma omp simd
    for (i64 k = i; k < end; ++k) y[k] *= x[k];
  });
}

// Multiplies each row by the weight of its expert.
template <class T>
void weigh(const Experts<T>& a, const Piece& p, i64 width, T* x) {
  for_rows(p.m, width, [&](i64 i, i64 end) {
    for (; i < end; ++i) {
      const T w = a.weights[p.rows[i] * a.E + p.expert];
      T* const row = x + i * width;
#pragma omp simd
      for (i64 c = 0; c < width; ++c) row[c] *= w;
    }
  });
}

// The product x[m, k] w[e]^T with matrix e of w[E, n, k].
template <class S>
Product expert_product(i64 m, i64 n, i64 k, const float* x, const S* w, i64 e, float* y) {
  constexpr DType kType = std::is_same_v<S, float>    ? DType::f32
                          : std::is_same_v<S, bf16>   ? DType::bf16
                          : std::is_same_v<S, Group8> ? DType::q8
                                                      : DType::q4;
  const i64 row = stored_row<S>(k);
  return {.m = m,
          .n = n,
          .terms = {{.a = {.data = reinterpret_cast<const std::byte*>(x), .row = k * i64{sizeof(float)}},
                     .b = {.data = reinterpret_cast<const std::byte*>(w + e * n * row),
                           .type = kType,
                           .row = row * i64{sizeof(S)},
                           .trans = true},
                     .k = k}},
          .y = y};
}

// gate x and up x of a piece, one after the other, [m, I] each.
template <class T, class S>
void inner_layers(const Experts<T, S>& a, const Piece& p, const T* xs, std::span<float> room, T* gate) {
  T* const up = gate + p.m * a.I;
  if constexpr (std::is_same_v<T, float>) {
    const std::array<Product, 2> both = {expert_product(p.m, a.I, a.C, xs, a.gate, p.expert, gate),
                                         expert_product(p.m, a.I, a.C, xs, a.up, p.expert, up)};
    products(both, a.bf16, room);
  } else {
    const i64 matrix = a.I * a.C;
    gemm<T>(false, true, p.m, a.I, a.C, 1, xs, a.C, a.gate + p.expert * matrix, a.C, 0, gate, a.I);
    gemm<T>(false, true, p.m, a.I, a.C, 1, xs, a.C, a.up + p.expert * matrix, a.C, 0, up, a.I);
  }
}
template <class T, class S>
void outer_layer(const Experts<T, S>& a, const Piece& p, const T* inner, std::span<float> room, T* ys) {
  if constexpr (std::is_same_v<T, float>) {
    const std::array<Product, 1> one = {expert_product(p.m, a.C, a.I, inner, a.down, p.expert, ys)};
    products(one, a.bf16, room);
  } else {
    gemm<T>(false, true, p.m, a.C, a.I, 1, inner, a.I, a.down + p.expert * a.I * a.C, a.I, 0, ys, a.C);
  }
}

}  // namespace

i64 experts_scratch(i64 R, i64 C, i64 I, bool hidden, bool backward) {
  return expert_piece(R) * (2 * C + (backward ? 3 : 1) * I + (hidden ? 0 : 2) * I);
}

i64 experts_workspace(i64 R, i64 C, i64 I, DType matrices, bool bf16, bool hidden, bool backward) {
  return experts_scratch(R, C, I, hidden, backward) +
         std::max(stored_product_workspace(I, C, matrices, bf16),
                  stored_product_workspace(C, I, matrices, bf16));
}

template <class T, class S>
void experts(const Experts<T, S>& a, T* scratch, std::span<float> room, T* y) {
  const i64 n = expert_piece(a.R);
  T *const xs = scratch, *const ys = xs + n * a.C, *const inner = ys + n * a.C, *const own = inner + n * a.I;
  fill(y, T(0), a.R * a.C);
  for_pieces(a, [&](const Piece& p) {
    gather(a.x, p, a.C, xs);
    T* const gate = a.hidden ? a.hidden + 2 * p.before * a.I : own;
    inner_layers(a, p, xs, room, gate);
    unary(a.activation, gate, inner, p.m * a.I);
    multiply(inner, gate + p.m * a.I, p.m * a.I);
    outer_layer(a, p, inner, room, ys);
    scatter(ys, p, a.C, a.weights + p.expert, a.E, y);
  });
}

template <class T>
void experts_backward(const Experts<T>& a, const T* g, T* scratch, std::span<float> room,
                      const ExpertGradients<T>& d) {
  const i64 n = expert_piece(a.R), matrix = a.I * a.C;
  T *const xs = scratch, *const gs = xs + n * a.C, *const inner = gs + n * a.C, *const act = inner + n * a.I,
           *const di = act + n * a.I, *const own = di + n * a.I;
  fill(d.x, T(0), a.R * a.C);
  fill(d.weights, T(0), a.R * a.E);
  std::vector<bool> seen(static_cast<std::size_t>(a.E));
  for_pieces(a, [&](const Piece& p) {
    const i64 at = p.expert * matrix, size = p.m * a.I;
    const T keep = seen[p.expert] ? T(1) : T(0);  // a later piece of an expert adds to its gradients
    seen[p.expert] = true;
    gather(a.x, p, a.C, xs);
    if (!a.hidden) inner_layers(a, p, xs, room, own);
    const T *const gate = a.hidden ? a.hidden + 2 * p.before * a.I : own, *const up = gate + size;
    unary(a.activation, gate, act, size);
    std::copy_n(act, size, inner);
    multiply(inner, up, size);

    // First d inner = g down with weight 1, because the gradient of the weight is its product with inner.
    gather(g, p, a.C, gs);
    gemm<T>(false, false, p.m, a.I, a.C, 1, gs, a.C, a.down + at, a.I, 0, di, a.I);
    for_rows(p.m, a.I, [&](i64 i, i64 end) {
      for (; i < end; ++i) {
        double dot = 0;
        for (i64 k = i * a.I; k < (i + 1) * a.I; ++k)
          dot += static_cast<double>(inner[k]) * static_cast<double>(di[k]);
        d.weights[p.rows[i] * a.E + p.expert] = static_cast<T>(dot);
      }
    });
    weigh(a, p, a.I, di);
    weigh(a, p, a.C, gs);
    gemm<T>(true, false, a.C, a.I, p.m, 1, gs, a.C, inner, a.I, keep, d.down + at, a.I);

    // d up = d inner act(gate); d gate = act'(gate) (d inner up).
    multiply(act, di, size);
    multiply(di, up, size);
    unary_backward(a.activation, gate, di, di, size);
    gemm<T>(true, false, a.I, a.C, p.m, 1, di, a.I, xs, a.C, keep, d.gate + at, a.C);
    gemm<T>(true, false, a.I, a.C, p.m, 1, act, a.I, xs, a.C, keep, d.up + at, a.C);
    gemm<T>(false, false, p.m, a.C, a.I, 1, di, a.I, a.gate + at, a.C, 0, xs, a.C);
    gemm<T>(false, false, p.m, a.C, a.I, 1, act, a.I, a.up + at, a.C, 1, xs, a.C);
    scatter<T>(xs, p, a.C, nullptr, 0, d.x);
  });
  for (i64 e = 0; e < a.E; ++e)
    if (!seen[e])
      for (T* m : {d.gate, d.up, d.down}) fill(m + e * matrix, T(0), matrix);
}

#define INSTANTIATE(T)                                                              \
  template void experts(const Experts<T>&, T*, std::span<float>, T*);               \
  template void experts_backward(const Experts<T>&, const T*, T*, std::span<float>, \
                                 const ExpertGradients<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE
template void experts(const Experts<float, bf16>&, float*, std::span<float>, float*);
template void experts(const Experts<float, Group8>&, float*, std::span<float>, float*);
template void experts(const Experts<float, Group4>&, float*, std::span<float>, float*);

}  // namespace redco::kernels
