// Elementwise functions of one argument and their derivatives.
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa/math.h"
#include "kernels/cpu/isa/ranges.h"

namespace redco::kernels::REDCO_ISA {
namespace {

constexpr i64 kPiece = 256;  // elements

constexpr double kGeluA = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluB = 0.044715;
constexpr double kInvSqrt2Pi = 0.39894228040143267794;
constexpr double kTwoOverSqrtPi = 1.12837916709551257390;

template <class T, class F>
inline void map(const T* x, T* y, i64 n, F f) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T, class F>
inline void map_grad(const T* x, const T* g, T* dx, i64 n, F f) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) dx[i] = g[i] * f(x[i]);
}

// 0.5 (1 + tanh u) = sigmoid(2 u)
template <class T>
REDCO_INLINE T gelu_tanh_gate(T x) {
  return sigmoid_(T(2 * kGeluA) * (x + T(kGeluB) * (x * x * x)));
}

// Avoids NaN from a value times 0 in a far tail: gelu(-inf) = 0, its limit.
template <class T>
REDCO_INLINE T tail(T x, T factor) {
  return factor == 0 ? factor : x * factor;
}

// Activations that multiply their argument by a gate, and their derivatives.
struct Gelu {
  template <class T>
  REDCO_INLINE T value(T v) {
    return tail(v, normal_(v).phi);
  }
  template <class T>
  REDCO_INLINE T slope(T v) {  // Phi(x) + x phi(x)
    const auto [phi, e] = normal_(v);
    return phi + tail(v, T(kInvSqrt2Pi) * e);
  }
};
struct GeluTanh {
  template <class T>
  REDCO_INLINE T value(T v) {
    return tail(v, gelu_tanh_gate(v));
  }
  template <class T>
  REDCO_INLINE T slope(T v) {  // s + x s (1 - s) 2 u'
    const T s = gelu_tanh_gate(v);
    return s + tail(v * (T(1) + T(3 * kGeluB) * (v * v)), T(2 * kGeluA) * (s * (T(1) - s)));
  }
};
struct GeluQuick {
  template <class T>
  REDCO_INLINE T value(T v) {
    return tail(v, sigmoid_(T(1.702) * v));
  }
  template <class T>
  REDCO_INLINE T slope(T v) {
    const T s = sigmoid_(T(1.702) * v);
    return s + tail(v, T(1.702) * (s * (T(1) - s)));
  }
};
struct Silu {
  template <class T>
  REDCO_INLINE T value(T v) {
    return tail(v, sigmoid_(v));
  }
  template <class T>
  REDCO_INLINE T slope(T v) {
    const T s = sigmoid_(v);
    return s + tail(v, s * (T(1) - s));
  }
};

template <class F>
void visit_gate(int op, const F& f) {
  switch (static_cast<Unary>(op)) {
    case Unary::gelu:
      return f(Gelu());
    case Unary::gelu_tanh:
      return f(GeluTanh());
    case Unary::gelu_quick:
      return f(GeluQuick());
    case Unary::silu:
      return f(Silu());
    default:
      __builtin_unreachable();
  }
}

}  // namespace

template <class T>
void unary(int op, const T* x, T* y, i64 n) {
  switch (static_cast<Unary>(op)) {
    case Unary::neg:
      return map(x, y, n, [](T v) { return -v; });
    case Unary::abs:
      return map(x, y, n, [](T v) { return abs_(v); });
    case Unary::sign:
      return map(x, y, n, [](T v) { return v > 0 ? T(1) : v < 0 ? T(-1) : v; });
    case Unary::exp:
      return map(x, y, n, [](T v) { return exp_(v); });
    case Unary::log:
      return map(x, y, n, [](T v) { return log_(v); });
    case Unary::sqrt:
      return map(x, y, n, [](T v) { return sqrt_(v); });
    case Unary::rsqrt:
      return map(x, y, n, [](T v) { return T(1) / sqrt_(v); });
    case Unary::reciprocal:
      return map(x, y, n, [](T v) { return T(1) / v; });
    case Unary::square:
      return map(x, y, n, [](T v) { return v * v; });
    case Unary::sin:
      return map(x, y, n, [](T v) { return sin_(v); });
    case Unary::cos:
      return map(x, y, n, [](T v) { return cos_(v); });
    case Unary::tanh:
      return map(x, y, n, [](T v) { return tanh_(v); });
    case Unary::sigmoid:
      return map(x, y, n, [](T v) { return sigmoid_(v); });
    case Unary::erf:
      return map(x, y, n, [](T v) { return erf_(v); });
    case Unary::relu:
      return map(x, y, n, [](T v) { return v < 0 ? T(0) : v; });
    case Unary::step:
      return map(x, y, n, [](T v) { return v > 0 ? T(1) : T(0); });
    case Unary::gelu:
    case Unary::gelu_tanh:
    case Unary::gelu_quick:
    case Unary::silu:
      return visit_gate(op, [&](auto f) { map(x, y, n, [f](T v) { return f.value(v); }); });
    case Unary::softplus:
      return map(x, y, n, [](T v) { return (v < 0 ? T(0) : v) + log1p_(exp_(-abs_(v))); });
  }
}

template <class T>
void unary_backward(int op, const T* x, const T* g, T* dx, i64 n) {
  switch (static_cast<Unary>(op)) {
    case Unary::neg:
      return map_grad(x, g, dx, n, [](T) { return T(-1); });
    case Unary::abs:
      return map_grad(x, g, dx, n, [](T v) { return v > 0 ? T(1) : v < 0 ? T(-1) : v; });
    case Unary::exp:
      return map_grad(x, g, dx, n, [](T v) { return exp_(v); });
    case Unary::log:
      return map_grad(x, g, dx, n, [](T v) { return T(1) / v; });
    case Unary::sqrt:
      return map_grad(x, g, dx, n, [](T v) { return T(0.5) / sqrt_(v); });
    case Unary::rsqrt:
      return map_grad(x, g, dx, n, [](T v) { return T(-0.5) / (v * sqrt_(v)); });
    case Unary::reciprocal:
      return map_grad(x, g, dx, n, [](T v) { return T(-1) / (v * v); });
    case Unary::square:
      return map_grad(x, g, dx, n, [](T v) { return 2 * v; });
    case Unary::sin:
      return map_grad(x, g, dx, n, [](T v) { return cos_(v); });
    case Unary::cos:
      return map_grad(x, g, dx, n, [](T v) { return -sin_(v); });
    case Unary::tanh:
      return map_grad(x, g, dx, n, [](T v) {
        const T t = tanh_(v);
        return T(1) - t * t;
      });
    case Unary::sigmoid:
      return map_grad(x, g, dx, n, [](T v) {
        const T s = sigmoid_(v);
        return s * (T(1) - s);
      });
    case Unary::erf:
      return map_grad(x, g, dx, n, [](T v) { return T(kTwoOverSqrtPi) * exp_(-v * v); });
    case Unary::relu:
      return map_grad(x, g, dx, n, [](T v) { return v > 0 ? T(1) : T(0); });
    case Unary::sign:
    case Unary::step:
#pragma omp simd
      for (i64 i = 0; i < n; ++i) dx[i] = 0;
      return;
    case Unary::gelu:
    case Unary::gelu_tanh:
    case Unary::gelu_quick:
    case Unary::silu:
      return visit_gate(op, [&](auto f) { map_grad(x, g, dx, n, [f](T v) { return f.slope(v); }); });
    case Unary::softplus:
      return map_grad(x, g, dx, n, [](T v) { return sigmoid_(v); });
  }
}

// Rounds like separate ops do.
template <class T>
void unary_backward_of_output(int op, const T* y, const T* g, T* dx, i64 n) {
  switch (static_cast<Unary>(op)) {
    case Unary::exp:
      return map_grad(y, g, dx, n, [](T v) { return v; });
    case Unary::tanh:  // in one loop, 1 - y^2 would be one instruction, which rounds once
      for (i64 i = 0; i < n; i += kPiece) {
        const i64 here = n - i < kPiece ? n - i : kPiece;
        T squares[kPiece];  // NOLINT: written below
        map(y + i, squares, here, [](T v) { return v * v; });
        map_grad(squares, g + i, dx + i, here, [](T square) { return T(1) - square; });
      }
      return;
    case Unary::sigmoid:
      return map_grad(y, g, dx, n, [](T v) { return v * (T(1) - v); });
    case Unary::sqrt:
#pragma omp simd
      for (i64 i = 0; i < n; ++i) dx[i] = T(0.5) * (g[i] / y[i]);
      return;
    case Unary::rsqrt:
#pragma omp simd
      for (i64 i = 0; i < n; ++i) dx[i] = T(-0.5) * (g[i] * (y[i] * y[i] * y[i]));
      return;
    case Unary::reciprocal:
#pragma omp simd
      for (i64 i = 0; i < n; ++i) dx[i] = -(g[i] * (y[i] * y[i]));
      return;
    default:
      __builtin_unreachable();
  }
}

template <class T>
void gated(int op, const T* gate, const T* up, T* y, i64 n) {
  visit_gate(op, [&](auto f) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = f.value(gate[i]) * up[i];
  });
}

template <class T>
void gated_backward(int op, const T* gate, const T* up, const T* g, T* dgate, T* dup, i64 n) {
  visit_gate(op, [&](auto f) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) {
      const T v = gate[i], d = g[i];
      dgate[i] = (d * up[i]) * f.slope(v);
      dup[i] = d * f.value(v);
    }
  });
}

template void unary(int, const float*, float*, i64);
template void unary(int, const double*, double*, i64);
template void unary_backward(int, const float*, const float*, float*, i64);
template void unary_backward(int, const double*, const double*, double*, i64);
template void unary_backward_of_output(int, const float*, const float*, float*, i64);
template void unary_backward_of_output(int, const double*, const double*, double*, i64);
template void gated(int, const float*, const float*, float*, i64);
template void gated(int, const double*, const double*, double*, i64);
template void gated_backward(int, const float*, const float*, const float*, float*, float*, i64);
template void gated_backward(int, const double*, const double*, const double*, double*, double*, i64);

}  // namespace redco::kernels::REDCO_ISA
