#include "kernels/cpu/experts.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/expert_gates.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/products.h"
#include "kernels/cpu/views.h"

namespace redco::kernels {
namespace {

// Some rows of an expert. `before`: number of rows in all previous pieces.
struct Piece {
  i64 expert, before;
  const i64* rows;
  i64 m;
};

template <class T, class F>
void for_pieces(const Experts<T>& a, const F& f) {
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

// Rows of fp32.
Matrix rows_of(const float* x, i64 columns) {
  return {.data = reinterpret_cast<const std::byte*>(x),
          .type = DType::f32,
          .row = columns * i64{sizeof(float)},
          .trans = false};
}
// Matrix e of w[E, rows, columns].
Matrix matrix_of(const ExpertMatrices& w, i64 e, i64 rows, i64 columns, bool trans) {
  const i64 row = bytes_of(w.type, stored_numel(w.type, {columns}));
  return {.data = w.data + e * rows * row, .type = w.type, .row = row, .trans = trans};
}
template <class T>
const T* elements_of(const ExpertMatrices& w, i64 e, i64 matrix) {
  return reinterpret_cast<const T*>(w.data) + e * matrix;
}
// The product x[m, k] w[e]^T with matrix e of w[E, n, k].
Product expert_product(i64 m, i64 n, i64 k, const float* x, const ExpertMatrices& w, i64 e, float* y) {
  return {.m = m, .n = n, .terms = {{.a = rows_of(x, k), .b = matrix_of(w, e, n, k, true), .k = k}}, .y = y};
}

// gate x and up x of a piece, one after the other, [m, I] each.
template <class T>
void inner_layers(const Experts<T>& a, const Piece& p, const T* xs, std::span<float> room, T* gate) {
  T* const up = gate + p.m * a.I;
  if constexpr (std::is_same_v<T, float>) {
    const std::array<Product, 2> both = {expert_product(p.m, a.I, a.C, xs, a.gate, p.expert, gate),
                                         expert_product(p.m, a.I, a.C, xs, a.up, p.expert, up)};
    products(both, a.bf16, room);
  } else {
    const i64 matrix = a.I * a.C;
    gemm<T>(false, true, p.m, a.I, a.C, 1, xs, a.C, elements_of<T>(a.gate, p.expert, matrix), a.C, 0, gate,
            a.I);
    gemm<T>(false, true, p.m, a.I, a.C, 1, xs, a.C, elements_of<T>(a.up, p.expert, matrix), a.C, 0, up, a.I);
  }
}
// The biases of a piece's rows, to gate and up [m, I] each.
template <class T>
void add_biases(const Experts<T>& a, const Piece& p, T* gate) {
  if (a.gate_bias) add_to_rows(a.gate_bias + p.expert * a.I, p.m, a.I, gate);
  if (a.up_bias) add_to_rows(a.up_bias + p.expert * a.I, p.m, a.I, gate + p.m * a.I);
}
template <class T>
void outer_layer(const Experts<T>& a, const Piece& p, const T* inner, std::span<float> room, T* ys) {
  if constexpr (std::is_same_v<T, float>) {
    const std::array<Product, 1> one = {expert_product(p.m, a.C, a.I, inner, a.down, p.expert, ys)};
    products(one, a.bf16, room);
  } else {
    gemm<T>(false, true, p.m, a.C, a.I, 1, inner, a.I, elements_of<T>(a.down, p.expert, a.I * a.C), a.I, 0,
            ys, a.C);
  }
}

// Whether products read these matrices in their storage type, or gemm reads elements of T.
bool is_stored(const ExpertMatrices& w) { return is_storage_type(w.type); }

// g down of a piece: y[m, I] of g[m, C].
template <class T>
void outer_gradient(const Experts<T>& a, const Piece& p, const T* g, std::span<float> room, T* y) {
  if constexpr (std::is_same_v<T, float>)
    if (is_stored(a.down)) {
      const Product one{
          .m = p.m,
          .n = a.I,
          .terms = {{.a = rows_of(g, a.C), .b = matrix_of(a.down, p.expert, a.C, a.I, false), .k = a.C}},
          .y = y};
      return products({&one, 1}, a.bf16, room);
    }
  gemm<T>(false, false, p.m, a.I, a.C, 1, g, a.C, elements_of<T>(a.down, p.expert, a.I * a.C), a.I, 0, y,
          a.I);
}
// dgate gate + dup up of a piece: y[m, C] of dgate and dup [m, I].
template <class T>
void inner_gradient(const Experts<T>& a, const Piece& p, const T* dgate, const T* dup, std::span<float> room,
                    T* y) {
  if constexpr (std::is_same_v<T, float>)
    if (is_stored(a.gate) || is_stored(a.up)) {
      const Product sum{
          .m = p.m,
          .n = a.C,
          .terms = {{.a = rows_of(dgate, a.I), .b = matrix_of(a.gate, p.expert, a.I, a.C, false), .k = a.I},
                    {.a = rows_of(dup, a.I), .b = matrix_of(a.up, p.expert, a.I, a.C, false), .k = a.I}},
          .y = y};
      return products({&sum, 1}, a.bf16, room);
    }
  const i64 matrix = a.I * a.C;
  gemm<T>(false, false, p.m, a.C, a.I, 1, dgate, a.I, elements_of<T>(a.gate, p.expert, matrix), a.C, 0, y,
          a.C);
  gemm<T>(false, false, p.m, a.C, a.I, 1, dup, a.I, elements_of<T>(a.up, p.expert, matrix), a.C, 1, y, a.C);
}

}  // namespace

i64 experts_scratch(i64 R, i64 C, i64 I, bool hidden, bool backward) {
  return expert_piece(R) * (2 * C + (backward ? 3 : 1) * I + (hidden ? 0 : 2) * I);
}

i64 experts_workspace(i64 R, i64 C, i64 I, DType matrices, bool bf16, bool hidden, bool backward) {
  i64 gradients = 0;
  if (backward && is_storage_type(matrices))
    gradients = std::max(stored_product_workspace(I, C, matrices, false, bf16),
                         stored_product_workspace(C, I, matrices, false, bf16));
  return experts_scratch(R, C, I, hidden, backward) +
         std::max({gradients, stored_product_workspace(I, C, matrices, true, bf16),
                   stored_product_workspace(C, I, matrices, true, bf16)});
}

template <class T>
void experts(const Experts<T>& a, T* scratch, std::span<float> room, T* y) {
  const i64 n = expert_piece(a.R);
  T *const xs = scratch, *const ys = xs + n * a.C, *const inner = ys + n * a.C, *const own = inner + n * a.I;
  fill(y, T(0), a.R * a.C);
  for_pieces(a, [&](const Piece& p) {
    gather(a.x, p, a.C, xs);
    T* const gate = a.hidden ? a.hidden + 2 * p.before * a.I : own;
    inner_layers(a, p, xs, room, gate);
    add_biases(a, p, gate);
    if (a.limit > 0) {
      clamped_swiglu(a.limit, a.alpha, gate, gate + p.m * a.I, p.m * a.I, inner);
    } else {
      unary(a.activation, gate, inner, p.m * a.I);
      multiply(inner, gate + p.m * a.I, p.m * a.I);
    }
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
    const i64 size = p.m * a.I;
    const T keep = seen[p.expert] ? T(1) : T(0);  // a later piece of an expert adds to its gradients
    seen[p.expert] = true;
    gather(a.x, p, a.C, xs);
    if (!a.hidden) {
      inner_layers(a, p, xs, room, own);
      add_biases(a, p, own);
    }
    const T *const gate = a.hidden ? a.hidden + 2 * p.before * a.I : own, *const up = gate + size;
    if (a.limit > 0) {
      clamped_swiglu(a.limit, a.alpha, gate, up, size, inner);
    } else {
      unary(a.activation, gate, act, size);
      std::copy_n(act, size, inner);
      multiply(inner, up, size);
    }

    // First d inner = g down with weight 1, because the gradient of the weight is its product with inner.
    gather(g, p, a.C, gs);
    outer_gradient(a, p, gs, room, di);
    for_rows(p.m, a.I, [&](i64 i, i64 end) {
      for (; i < end; ++i) {
        double dot = 0;
        for (i64 k = i * a.I; k < (i + 1) * a.I; ++k)
          dot += static_cast<double>(inner[k]) * static_cast<double>(di[k]);
        d.weights[p.rows[i] * a.E + p.expert] = static_cast<T>(dot);
      }
    });
    weigh(a, p, a.I, di);
    if (d.down) {
      weigh(a, p, a.C, gs);
      gemm<T>(true, false, a.C, a.I, p.m, 1, gs, a.C, inner, a.I, keep, d.down + p.expert * matrix, a.I);
    }

    // d up = d inner act(gate); d gate = act'(gate) (d inner up).
    if (a.limit > 0) {
      clamped_swiglu_backward(a.limit, a.alpha, gate, up, size, di, act);
    } else {
      multiply(act, di, size);
      multiply(di, up, size);
      unary_backward(a.activation, gate, di, di, size);
    }
    if (d.gate_bias) sum_rows(di, p.m, a.I, keep, d.gate_bias + p.expert * a.I);
    if (d.up_bias) sum_rows(act, p.m, a.I, keep, d.up_bias + p.expert * a.I);
    const auto add_gradient = [&](const T* of_layer, T* to) {
      if (to)
        gemm<T>(true, false, a.I, a.C, p.m, 1, of_layer, a.I, xs, a.C, keep, to + p.expert * matrix, a.C);
    };
    add_gradient(di, d.gate);
    add_gradient(act, d.up);
    inner_gradient(a, p, di, act, room, xs);
    scatter<T>(xs, p, a.C, nullptr, 0, d.x);
  });
  for (i64 e = 0; e < a.E; ++e)
    if (!seen[e])
      for (T* b : {d.gate_bias, d.up_bias})
        if (b) fill(b + e * a.I, T(0), a.I);
  for (i64 e = 0; e < a.E; ++e)
    if (!seen[e])
      for (T* m : {d.gate, d.up, d.down})
        if (m) fill(m + e * matrix, T(0), matrix);
}

#define INSTANTIATE(T)                                                              \
  template void experts(const Experts<T>&, T*, std::span<float>, T*);               \
  template void experts_backward(const Experts<T>&, const T*, T*, std::span<float>, \
                                 const ExpertGradients<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

namespace {

template <class T>
Experts<T> experts_of(const MixtureOfExperts& m, const View& x, const View& weights, const View& chosen,
                      const View& gate, const View& up, const View& down, const View& hidden,
                      const View& gate_bias, const View& up_bias) {
  const i64 R = x.leading();
  return {.R = R,
          .C = gate.shape[2],
          .I = gate.shape[1],
          .E = gate.shape[0],
          .x = pointer<T>(x),
          .weights = pointer<T>(weights),
          .chosen = pointer<T>(chosen),
          .gate = {pointer<std::byte>(gate), gate.dtype},
          .up = {pointer<std::byte>(up), up.dtype},
          .down = {pointer<std::byte>(down), down.dtype},
          .activation = m.activation,
          .bf16 = m.bf16,
          .hidden = pointer<T>(hidden),
          .hidden_rows = R * m.per_row,
          .gate_bias = pointer<T>(gate_bias),
          .up_bias = pointer<T>(up_bias),
          .limit = m.limit,
          .alpha = m.alpha};
}

// The k largest elements of each row become 1, of equal ones the first.
template <class T>
void top_k_mask(const T* x, i64 k, T* y, i64 rows, i64 columns) {
  fill(y, T(0), rows * columns);
  for (; rows > 0; --rows, x += columns, y += columns)
    for (i64 i = 0; i < k; ++i) {
      i64 best = -1;
      for (i64 c = 0; c < columns; ++c)
        if (y[c] == 0 && (best < 0 || x[c] > x[best])) best = c;
      y[best] = 1;
    }
}

}  // namespace

void add_experts(Kernels& t) {
  t.experts.run = [](const MixtureOfExperts& m, const View& x, const View& weights, const View& chosen,
                     const View& gate, const View& up, const View& down, const View& hidden,
                     const View& workspace, const View& y, const View& gate_bias, const View& up_bias) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const Experts<T> e = experts_of<T>(m, x, weights, chosen, gate, up, down, hidden, gate_bias, up_bias);
      T* const own = pointer<T>(workspace);
      experts<T>(e, own, floats_of(workspace, experts_scratch(e.R, e.C, e.I, hidden.present, false)),
                 pointer<T>(y));
    });
  };
  t.experts_backward.run = [](const MixtureOfExperts& m, const View& x, const View& weights,
                              const View& chosen, const View& gate, const View& up, const View& down,
                              const View& hidden, const View& g, const View& workspace, const View& dx,
                              const View& dweights, const View& dgate, const View& dup, const View& ddown,
                              const View& gate_bias, const View& up_bias, const View& dgate_bias,
                              const View& dup_bias) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const Experts<T> e = experts_of<T>(m, x, weights, chosen, gate, up, down, hidden, gate_bias, up_bias);
      experts_backward<T>(e, pointer<T>(g), pointer<T>(workspace),
                          floats_of(workspace, experts_scratch(e.R, e.C, e.I, hidden.present, true)),
                          {pointer<T>(dx), pointer<T>(dweights), pointer<T>(dgate), pointer<T>(dup),
                           pointer<T>(ddown), pointer<T>(dgate_bias), pointer<T>(dup_bias)});
    });
  };
  t.experts_workspace = [](const MixtureOfExperts& m, i64 rows, i64 width, i64 inner, DType matrices,
                           bool hidden, bool backward) {
    return experts_workspace(rows, width, inner, matrices, m.bf16, hidden, backward);
  };
  t.top_k_mask.run = [](const View& x, const i64& k, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      top_k_mask<T>(pointer<T>(x), k, pointer<T>(y), x.leading(), x.last());
    });
  };
}

}  // namespace redco::kernels
