// Gated MLPs of a mixture of experts, applied to the rows that a router selects for each expert. R rows, C
// width, I inner width, E experts. Experts and their rows are processed in order, so results do not depend on
// the number of threads.
#pragma once

#include <span>

#include "kernels/cpu/elementwise.h"

namespace redco::kernels {

// Maximum number of rows of an expert in one piece, which limits the scratch memory.
constexpr i64 kExpertRows = 1024;
inline i64 expert_piece(i64 R) { return R < kExpertRows ? R : kExpertRows; }

// Stacked matrices: of T, or of a storage type if T is float.
struct ExpertMatrices {
  const std::byte* data;
  DType type;
};
template <class T>
struct Experts {
  i64 R, C, I, E;
  const T *x, *weights, *chosen;  // [R, C], [R, E], [R, E]; chosen is 0 where a row does not use an expert
  ExpertMatrices gate, up, down;  // [E, I, C], [E, I, C], [E, C, I]
  Unary activation;
  bool bf16 = false;  // products with the matrices may read their operands rounded to bf16 (T is float)
  // null, or `hidden_rows` rows of 2 I elements: the outputs of gate and up, written by the forward and read
  // by the backward. If null, the backward computes them again.
  T* hidden = nullptr;
  i64 hidden_rows = 0;
  const T *gate_bias = nullptr, *up_bias = nullptr;  // [E, I], or null
  double limit = 0, alpha = 1;                       // see MixtureOfExperts
};
template <class T>
struct ExpertGradients {
  T *x, *weights, *gate, *up, *down;
  T *gate_bias = nullptr, *up_bias = nullptr;
};

// Number of elements of scratch memory that the two functions need, without and with that of products.
i64 experts_scratch(i64 R, i64 C, i64 I, bool hidden, bool backward);
i64 experts_workspace(i64 R, i64 C, i64 I, DType matrices, bool bf16, bool hidden, bool backward);
// y[R, C] = sum over e of weights[r, e] down_e (act(gate_e x) * (up_e x)). `room`: the workspace of products
// (f64: none).
template <class T>
void experts(const Experts<T>& a, T* scratch, std::span<float> room, T* y);
// Overwrites all gradients in d; the gradient of `weights` is 0 where a row does not use an expert. Null: not
// computed, because the matrix is frozen.
template <class T>
void experts_backward(const Experts<T>& a, const T* g, T* scratch, std::span<float> room,
                      const ExpertGradients<T>& d);

}  // namespace redco::kernels
