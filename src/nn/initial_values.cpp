// The initial values of parameters: initialize() and copy_initial_values().
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "nn/param_tree.h"
#include "ops/create.h"
#include "ops/redistribute.h"

namespace redco {

namespace {

// Every rank makes the whole value and keeps its part.
void fill_whole(const Tensor& t, const std::vector<double>& values) {
  const std::vector<float> v(values.begin(), values.end());
  Context::current().run(&Kernels::copy, from_values(t.shape(), std::span<const float>(v), t.layout()), t);
}

// x with softplus(x) = low (high / low)^u for uniform u.
void fill_time_step(const Tensor& t, u64 key, double low, double high) {
  std::vector<double> v = to_values(random_uniform(t.shape(), key, {}));
  for (double& x : v) {
    const double step = low * std::pow(high / low, x);
    x = step + std::log(-std::expm1(-step));
  }
  fill_whole(t, v);
}

void fill_log_count(const Tensor& t) {
  std::vector<double> v(static_cast<size_t>(t.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::log(static_cast<double>(i + 1));
  fill_whole(t, v);
}

// Fills t with vectors of `width` normal numbers, where each group of `width` vectors is made orthogonal
// without changing their lengths. Length and direction of a normal vector are independent, so each vector is
// still normally distributed.
void fill_orthogonal(const Tensor& t, u64 key, i64 width) {
  std::vector<double> v = to_values(random_normal(t.shape(), key, {}));
  const auto dot = [&](const double* a, const double* b) { return std::inner_product(a, a + width, b, 0.0); };
  for (i64 row = 0; row * width < numel(t.shape()); ++row) {
    double* x = v.data() + row * width;
    const double length = std::sqrt(dot(x, x));
    // Twice, because the second pass removes what rounding leaves in the first.
    for (int pass = 0; pass < 2; ++pass)
      for (i64 other = row / width * width; other < row; ++other) {
        const double* y = v.data() + other * width;
        const double share = dot(x, y) / dot(y, y);
        for (i64 i = 0; i < width; ++i) x[i] -= share * y[i];
      }
    const double left = std::sqrt(dot(x, x));
    for (i64 i = 0; i < width; ++i) x[i] *= length / left;
  }
  fill_whole(t, v);
}

}  // namespace

void initialize(const ParamSpec& s, const Tensor& t) {
  if (t.is_meta()) return;
  Context& c = Context::current();
  if (t.dtype() != DType::f32) {
    const Tensor wide(t.shape(), DType::f32, t.layout());
    initialize(s, wide);
    return c.run(&Kernels::cast, wide, t);
  }
  switch (s.init.kind) {
    case Init::Kind::normal: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_normal(t, c.key("init"), s.init.std);
      const Range rows = t.range(0);
      if (s.init.zero_row < rows.begin || s.init.zero_row >= rows.end) break;
      c.run(&Kernels::fill, t.view().narrowed(0, s.init.zero_row - rows.begin, 1), 0);
      break;
    }
    case Init::Kind::uniform: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_uniform(t, c.key("init"), s.init.std);
      break;
    }
    case Init::Kind::orthogonal: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_orthogonal(t, c.key("init"), s.init.width);
      break;
    }
    case Init::Kind::time_step: {
      Restore<SharedText> scope(c.random_scope, s.name);
      fill_time_step(t, c.key("init"), s.init.low, s.init.high);
      break;
    }
    case Init::Kind::values: {
      const std::size_t n = s.init.values ? s.init.values->size() : 0;
      if (n != static_cast<std::size_t>(t.numel()))
        throw UsageError("[model] {} {} has {} initial values; expected {}", s.name, to_string(s.shape), n,
                         t.numel());
      fill_whole(t, {s.init.values->begin(), s.init.values->end()});
      break;
    }
    case Init::Kind::copy:  // copy_initial_values() follows
      break;
    case Init::Kind::log_count:
      fill_log_count(t);
      break;
    case Init::Kind::constant:
      c.run(&Kernels::fill, t, s.init.std);
      break;
    case Init::Kind::ones:
      c.run(&Kernels::fill, t, 1);
      break;
    case Init::Kind::zeros:
      c.run(&Kernels::fill, t, 0);
      break;
  }
}

void copy_initial_values(ParamTree& tree, const std::vector<std::string>& made) {
  const auto copies = [&](const ParamSpec& s) {
    return s.init.kind == Init::Kind::copy && std::ranges::count(made, s.name) > 0;
  };
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const ParamSpec& s = tree.specs()[i];
    if (!copies(s)) continue;
    const ParamSpec* source = tree.find_spec(s.init.source);
    for (std::size_t hops = 0; source && copies(*source) && hops < tree.size(); ++hops)
      source = tree.find_spec(source->init.source);
    if (!source || copies(*source) || source->shape != s.shape)
      throw UsageError("[pipeline] {} {} begins as a copy of '{}', which is {}", s.name, to_string(s.shape),
                       s.init.source,
                       source ? fmt::format("of shape {}", to_string(source->shape)) : "no parameter");
    const Tensor& to = tree.values()[i];
    if (to.is_meta()) continue;
    const Tensor from = redistribute(tree[source->name].detached(), to.layout());
    if (from.dtype() == to.dtype())
      Context::current().run(&Kernels::copy, from, to);
    else
      Context::current().run(&Kernels::cast, from, to);
  }
}

void initialize(ParamTree& tree, u64 seed) {
  Context& c = Context::current();
  Restore<RandomState> random(c.random, {.seed = seed, .step = -1, .row_offset = 0});
  for (size_t i = 0; i < tree.size(); ++i) initialize(tree.specs()[i], tree.values()[i]);
}

}  // namespace redco
