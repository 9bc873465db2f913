// Gated MLPs of a mixture of experts on the rows that a router chose for each. R rows, C width, I inner
// width, E experts. Expert after expert in order, each on its rows in order: the bits don't depend on
// threads.
#pragma once

#include "base/types.h"
#include "kernels/elementwise.h"

namespace redco::kernels {

// One expert's rows are worked at in pieces of at most this many, which bounds the scratch.
constexpr i64 kExpertRows = 1024;
inline i64 expert_piece(i64 R) { return R < kExpertRows ? R : kExpertRows; }

template <class T>
struct Experts {
  i64 R, C, I, E;
  const T *x, *weights, *chosen;  // [R, C], [R, E], [R, E]: 0 where a row doesn't go through an expert
  const T *gate, *up, *down;      // [E, I, C], [E, I, C], [E, C, I]
  Unary activation;
  bool bf16 = false;  // round the rows that products read (fp32 alone; the matrices are the caller's)
  // null, or of `hidden_rows` rows of 2 I: what gate and up gave, written by the forward and read by the
  // backward, which makes it again where it is null.
  T* hidden = nullptr;
  i64 hidden_rows = 0;
};
template <class T>
struct ExpertGradients {
  T *x, *weights, *gate, *up, *down;
};

// Elements of scratch that the two need.
i64 experts_scratch(i64 R, i64 C, i64 I, bool hidden, bool backward);
// y[R, C] = sum over e of weights[r, e] down_e (act(gate_e x) * (up_e x)).
template <class T>
void experts(const Experts<T>& a, T* scratch, T* y);
// All of d is overwritten; weights' gradient is 0 where a row isn't chosen.
template <class T>
void experts_backward(const Experts<T>& a, const T* g, T* scratch, const ExpertGradients<T>& d);

}  // namespace redco::kernels
