// Elementwise ops. Hidden dims of operands align from the left (missing = 1); visible dims broadcast from the
// right.
#pragma once

#include <ranges>

#include "kernels/arguments.h"
#include "tensor/tensor.h"

namespace redco {

using kernels::Binary;
using kernels::Unary;

// Sum of one or more tensors. With all terms of a parallel block (x, attention, mlp) in one call, Partials
// are reduced once.
Tensor add(const Tensors& terms);
template <std::ranges::input_range Terms>
Tensor add(const Terms& terms) {
  return add(Tensors(std::ranges::begin(terms), std::ranges::end(terms)));
}
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor scale(const Tensor& x, double factor);         // keeps any placement
Tensor add_scalar(const Tensor& x, double constant);  // reduces a Partial first
Tensor operator*(const Tensor& x, double factor);
Tensor operator*(double factor, const Tensor& x);
Tensor operator/(const Tensor& x, double divisor);
Tensor operator+(const Tensor& x, double constant);
Tensor operator+(double constant, const Tensor& x);
Tensor operator-(const Tensor& x, double constant);
Tensor operator-(double constant, const Tensor& x);

// y[..., O] + bias[O]. To a Partial y the bias is added on the first rank of the axis only.
Tensor add_bias(const Tensor& y, const Tensor& bias);

// Comparisons and selections: 0 or 1, without gradient.
Tensor compare(Binary op, const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);

Tensor unary(Unary op, const Tensor& x);
inline Tensor exp(const Tensor& x) { return unary(Unary::exp, x); }
inline Tensor log(const Tensor& x) { return unary(Unary::log, x); }
inline Tensor sqrt(const Tensor& x) { return unary(Unary::sqrt, x); }
inline Tensor rsqrt(const Tensor& x) { return unary(Unary::rsqrt, x); }
inline Tensor square(const Tensor& x) { return unary(Unary::square, x); }
inline Tensor abs(const Tensor& x) { return unary(Unary::abs, x); }
inline Tensor sin(const Tensor& x) { return unary(Unary::sin, x); }
inline Tensor cos(const Tensor& x) { return unary(Unary::cos, x); }
inline Tensor tanh(const Tensor& x) { return unary(Unary::tanh, x); }
inline Tensor sigmoid(const Tensor& x) { return unary(Unary::sigmoid, x); }
inline Tensor relu(const Tensor& x) { return unary(Unary::relu, x); }
inline Tensor gelu(const Tensor& x) { return unary(Unary::gelu, x); }
inline Tensor silu(const Tensor& x) { return unary(Unary::silu, x); }
inline Tensor softplus(const Tensor& x) { return unary(Unary::softplus, x); }
const char* name_of(Unary op);
// op(gate) up, which GLU layers are made of (Shazeer 2020): one pass in each direction, and only gate and up
// are kept for the backward.
Tensor gated(Unary op, const Tensor& gate, const Tensor& up);

// The same value without a gradient.
Tensor stop_gradient(const Tensor& x);

}  // namespace redco
