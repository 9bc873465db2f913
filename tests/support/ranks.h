// Ranks as threads, and tensors with any placement, for tests of tensors, ops and gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/group.h"
#include "kernels/threads.h"
#include "ops/create.h"
#include "ops/redistribute.h"
#include "support/device.h"
#include "tensor/context.h"
#include "tensor/tensor.h"

namespace redco::testing {

// Runs body on every rank of the mesh, each on a thread with its own Context.
inline void on_mesh(const Mesh& mesh, const std::function<void(Context&)>& body) {
  run_threads(mesh.ranks(), [&](Group& g) {
    kernels::set_threads(1);
    Context c(mesh, g.split(0), test_queue());
    Context::Use use(c);
    body(c);
  });
}
inline void on_one_rank(const std::function<void(Context&)>& body) { on_mesh({1, 1}, body); }

// A small generator with the same numbers on every rank and platform.
class Random {
 public:
  explicit Random(u64 seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  u64 next() {
    u64 x = (state_ += 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  i64 below(i64 n) { return static_cast<i64>(next() % static_cast<u64>(n)); }
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }
  std::vector<double> values(i64 n, double low = -1, double high = 1) {
    std::vector<double> v(n);
    for (double& x : v) x = uniform(low, high);
    return v;
  }

 private:
  u64 state_;
};

inline Layout on_mp(const Placement& p) {
  Layout l;
  l[Axis::mp] = p;
  return l;
}
inline Layout on_dp(const Placement& p) {
  Layout l;
  l[Axis::dp] = p;
  return l;
}
inline Layout on_both(const Placement& mp, const Placement& dp) {
  Layout l;
  l[Axis::mp] = mp;
  l[Axis::dp] = dp;
  return l;
}

// A tensor with this layout. Parts of a Partial are random numbers whose sum is `values`, while from_values
// would give the whole value to the first rank.
inline Tensor place(const Shape& shape, const std::vector<double>& values, const Layout& layout,
                    DType dtype = DType::f64) {
  Context& c = Context::current();
  const Layout whole = layout.reduced();
  auto typed = [&](const std::vector<double>& v, const Layout& l) {
    if (dtype == DType::f64) return from_values(shape, std::span<const double>(v), l);
    const std::vector<float> f(v.begin(), v.end());
    return from_values(shape, std::span<const float>(f), l);
  };
  if (whole == layout || c.is_meta()) {
    const Tensor t = typed(values, whole);
    return whole == layout ? t : redistribute(t, layout);
  }
  // The ranks of the partial axes, counted together; the part of the last one makes the sum right.
  int ranks = 1, mine = 0;
  for (Axis a : Context::current().mesh().axes())
    if (layout[a].is_partial()) {
      mine = mine * c.mesh().size(a) + c.coord().at(a);
      ranks *= c.mesh().size(a);
    }
  std::vector<double> part = values;
  for (int r = 0; r < ranks - 1; ++r) {
    Random random(static_cast<u64>(r) + 77);
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = random.uniform(-1, 1);
      if (mine == r) part[i] = x;
      if (mine == ranks - 1) part[i] -= x;
    }
  }
  const Tensor t = typed(part, whole);
  return Tensor::view(t, shape, layout, 0);
}

// The largest difference, relative to the size of the numbers (absolute below 1); infinite if counts differ
// or NaN is on one side only.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double top = 1, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return INFINITY;
    if (std::isnan(a[i])) continue;
    if (std::isinf(a[i]) || std::isinf(b[i])) {
      if (a[i] != b[i]) return INFINITY;
      continue;
    }
    top = std::max(top, std::abs(a[i]));
    most = std::max(most, std::abs(a[i] - b[i]));
  }
  return most / top;
}

inline std::string show(const std::vector<double>& v, size_t most = 12) {
  std::string s;
  for (size_t i = 0; i < std::min(v.size(), most); ++i) s += fmt::format("{}{:.5g}", i ? " " : "", v[i]);
  return s + (v.size() > most ? " ..." : "");
}

}  // namespace redco::testing
