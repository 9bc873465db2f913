// Elementwise loops, broadcasting, reductions, copies. T is float or double. Buffers may be in place (out ==
// an input) unless a function forbids it; n may be 0.
#pragma once

#include <bit>
#include <span>

#include "base/types.h"
#include "kernels/arguments.h"

namespace redco::kernels {

// Accuracy in f32: relative error 3e-7 (2-3 ulp), including tanh, erf and exp. In the left tails of the gelus
// the rounding of the exponential's argument z is amplified |z| times: relative error 3e-7 (1 + |z|). NaN
// gives NaN.
template <class T>
void unary(Unary op, const T* x, T* y, i64 n);
// dx = g * op'(x) for every op above; 0 for step and sign.
template <class T>
void unary_backward(Unary op, const T* x, const T* g, T* dx, i64 n);
// The same from y = op(x). REQUIRES: saves_output(op).
template <class T>
void unary_backward_of_output(Unary op, const T* y, const T* g, T* dx, i64 n);
// y = op(gate) up; dgate = g up op'(gate), dup = g op(gate). With the roundings of separate ops. REQUIRES:
// has_gate(op).
template <class T>
void gated(Unary op, const T* gate, const T* up, T* y, i64 n);
template <class T>
void gated_backward(Unary op, const T* gate, const T* up, const T* g, T* dgate, T* dup, i64 n);

// out[shape] = op(a, b). Strides are in elements, one per dim of `shape`, 0 where broadcast; out is
// contiguous. Fast paths: equal shapes; b broadcast along leading dims (bias); b broadcast along the last dim
// (per row).
template <class T>
void binary(Binary op, const T* a, std::span<const i64> a_strides, const T* b, std::span<const i64> b_strides,
            T* out, std::span<const i64> shape);

template <class T>
void fill(T* x, T value, i64 n);
template <class T>
void affine(const T* x, T* y, T mul, T add, i64 n);  // y = mul * x + add
template <class T>
void axpy(T a, const T* x, T* y, i64 n);  // y += a * x

// out = sum of in[shape] over the dims with reduce[d] true; out is contiguous over the others. X is T, or
// bf16 where T is float. Sums are in double, in an order that depends only on the shape. workspace:
// reduce_workspace() elements, uninitialized.
template <class X, class T>
void reduce_sum(const X* in, std::span<const i64> shape, std::span<const bool> reduce, T* out,
                double* workspace);
i64 reduce_workspace(std::span<const i64> shape, std::span<const bool> reduce);

// Copies a box: out[i . out_strides] = in[i . in_strides] for every index i of shape; elem_size is 1, 2, 4 or
// 8 bytes. Adjacent dims that are contiguous in both are merged, and the inner copy is memcpy if possible. in
// != out.
void copy_strided(const void* in, std::span<const i64> in_strides, void* out,
                  std::span<const i64> out_strides, std::span<const i64> shape, i64 elem_size);

// bf16 <-> fp32; to_bf16 rounds to nearest even and keeps NaN.
void to_bf16(const float* x, bf16* y, i64 n);
void from_bf16(const bf16* x, float* y, i64 n);
template <class T>
T wide(T x) {
  return x;
}
inline float wide(bf16 x) { return std::bit_cast<float>(static_cast<u32>(x.bits) << 16); }
inline bf16 narrow(float x) {
  bf16 y;
  to_bf16(&x, &y, 1);
  return y;
}
void from_fp16(const std::uint16_t* x, float* y, i64 n);
void to_fp16(const float* x, std::uint16_t* y, i64 n);

}  // namespace redco::kernels
