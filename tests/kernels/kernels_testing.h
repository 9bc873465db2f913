// Shared by the tests of kernels: random arrays, every instruction set, every thread count.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "base/types.h"
#include "kernels/isa.h"
#include "kernels/native.h"
#include "kernels/threads.h"
#include "kernels/view.h"

namespace redco::kernels {

template <class T>
std::vector<T> random_array(i64 n, unsigned seed, double scale = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, scale);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& v : x) v = static_cast<T>(normal(engine));
  return x;
}

// A view of the test's own memory, as an operand of a kernel.
template <class T>
View view_of(std::span<T> x) {
  View v;
  v.data = Native::pointer(const_cast<std::remove_const_t<T>*>(x.data()));
  v.dtype = std::is_same_v<std::remove_const_t<T>, bf16> ? DType::bf16 : DType::f32;
  v.present = true;
  v.shape = {static_cast<i64>(x.size())};
  return v;
}

inline std::vector<i32> random_ids(i64 n, int low, int high, unsigned seed) {  // in [low, high]
  std::mt19937 engine(seed);
  std::uniform_int_distribution<i32> uniform(low, high);
  std::vector<i32> x(static_cast<std::size_t>(n));
  for (i32& v : x) v = uniform(engine);
  return x;
}

// |x - y| <= tolerance * max(1, |y|) everywhere; NaN equals NaN and inf equals inf.
template <class X, class Y>
void expect_close(const std::vector<X>& x, const std::vector<Y>& y, double tolerance,
                  const std::string& what = "") {
  ASSERT_EQ(x.size(), y.size()) << what;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
    if (std::isnan(b) || std::isinf(b)) {
      ASSERT_TRUE(std::isnan(b) ? std::isnan(a) : a == b) << what << " [" << i << "] " << a << ", want " << b;
      continue;
    }
    ASSERT_LE(std::fabs(a - b), tolerance * std::max(1.0, std::fabs(b)))
        << what << " [" << i << "] " << a << ", want " << b;
  }
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

// Calls f() with every instruction set of this CPU.
template <class F>
void on_every_isa(const F& f) {
  const Isa before = isa();
  for (Isa i : kIsas) {
    if (i > best_isa()) continue;
    use_isa(i);
    SCOPED_TRACE(name_of(i));
    f();
  }
  use_isa(before);
}

// f() returns a vector: expects the same bits with 1, 2 and 3 threads.
template <class F>
void expect_same_on_any_threads(const F& f, const std::string& what = "") {
  const int before = threads();
  set_threads(1);
  const auto one = f();
  for (int n : {2, 3}) {
    set_threads(n);
    EXPECT_TRUE(same_bits(one, f())) << what << " differs with " << n << " threads";
  }
  set_threads(before);
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace redco::kernels
