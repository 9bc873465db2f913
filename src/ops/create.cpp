#include "ops/create.h"

#include "base/error.h"
#include "kernels/elementwise.h"
#include "kernels/nn.h"
#include "ops/dispatch.h"
#include "ops/redistribute.h"

namespace redco {

Tensor full(const Shape& shape, double value, DType dtype, const Layout& layout) {
  Tensor t(shape, dtype, layout);
  if (t.is_meta()) return t;
  if (dtype == DType::i32) {
    std::fill_n(t.mutable_data<i32>(), t.local_numel(), static_cast<i32>(value));
  } else {
    visit_float(dtype, [&](auto zero) {
      using T = decltype(zero);
      kernels::fill<T>(t.mutable_data<T>(), static_cast<T>(value), t.local_numel());
    });
  }
  return t;
}

Tensor zeros(const Shape& shape, DType dtype, const Layout& layout) { return full(shape, 0, dtype, layout); }
Tensor zeros_like(const Tensor& t) {
  return full(t.shape(), 0, t.dtype(), t.layout()).with_hidden(t.hidden());
}

Tensor ones_like(const Tensor& t) {
  Layout l = t.layout();
  for (Axis a : Context::current().mesh().axes())
    if (l[a].is_partial()) l[a] = Placement::replicated();
  return full(t.shape(), 1, t.dtype(), l).with_hidden(t.hidden());
}

Layout batch_layout() {
  Layout l;
  l[Axis::dp] = Placement::sharded(0);
  return l;
}

namespace {

template <class T>
Tensor from_whole(const Shape& shape, std::span<const T> values, DType dtype, const Layout& layout) {
  Tensor whole(shape, dtype, Layout{});
  if (!whole.is_meta()) {
    REDCO_CHECK(static_cast<i64>(values.size()) == numel(shape), "{} values for the shape {}", values.size(),
                to_string(shape));
    if (!values.empty()) std::memcpy(whole.mutable_raw(), values.data(), whole.local_bytes());
  }
  return redistribute(whole, layout);
}

template <class T>
Tensor from_local(const Shape& shape, std::span<const T> values, DType dtype) {
  Tensor t(shape, dtype, batch_layout());
  if (!t.is_meta()) {
    REDCO_CHECK(static_cast<i64>(values.size()) == t.local_numel(), "{} values for the local part of {}",
                values.size(), describe(t));
    if (!values.empty()) std::memcpy(t.mutable_raw(), values.data(), t.local_bytes());
  }
  return t;
}

}  // namespace

Tensor from_values(const Shape& s, std::span<const float> v, const Layout& l) {
  return from_whole(s, v, DType::f32, l);
}
Tensor from_values(const Shape& s, std::span<const double> v, const Layout& l) {
  return from_whole(s, v, DType::f64, l);
}
Tensor from_ids(const Shape& s, std::span<const i32> v, const Layout& l) {
  return from_whole(s, v, DType::i32, l);
}
Tensor from_local_ids(const Shape& s, std::span<const i32> v) { return from_local(s, v, DType::i32); }
Tensor from_local_values(const Shape& s, std::span<const float> v) { return from_local(s, v, DType::f32); }

namespace {

// The coordinates of t's elements; its row 0 is row `first_row` of the batch.
kernels::Block4 block_of(const Tensor& t, i64 first_row = 0) {
  REDCO_CHECK(t.rank() <= 4, "random draws have at most 4 coordinates: {}", describe(t));
  kernels::Block4 b{{0, 0, 0, 0}, {1, 1, 1, 1}};
  for (int d = 0; d < t.rank(); ++d) {
    const Range r = t.range(d);
    b.offset[4 - t.rank() + d] = r.begin + (d == 0 ? first_row : 0);
    b.size[4 - t.rank() + d] = r.size();
  }
  return b;
}

// A dim 0 that is cut over dp is the batch; its rows are counted in the global batch.
i64 first_row_of(const Layout& layout) {
  return layout[Axis::dp].is_sharded(0) ? Context::current().random.row_offset : 0;
}

}  // namespace

Tensor random_uniform(const Shape& shape, u64 key, const Layout& layout) {
  Tensor t(shape, DType::f32, layout);
  if (!t.is_meta()) kernels::philox_uniform(key, block_of(t, first_row_of(layout)), t.mutable_data<float>());
  return t;
}
Tensor random_normal(const Shape& shape, u64 key, const Layout& layout) {
  Tensor t(shape, DType::f32, layout);
  if (!t.is_meta()) kernels::philox_normal(key, block_of(t, first_row_of(layout)), t.mutable_data<float>());
  return t;
}

void fill_normal(const Tensor& t, u64 key, double std) {
  if (t.is_meta()) return;
  float* const p = t.mutable_data<float>();
  kernels::philox_normal(key, block_of(t), p);
  if (std != 1) kernels::affine<float>(p, p, static_cast<float>(std), 0.f, t.local_numel());
}

void fill_uniform(const Tensor& t, u64 key, double bound) {
  if (t.is_meta()) return;
  float* const p = t.mutable_data<float>();
  kernels::philox_uniform(key, block_of(t), p);
  kernels::affine<float>(p, p, static_cast<float>(2 * bound), static_cast<float>(-bound), t.local_numel());
}

Tensor label_mask(const Tensor& labels, DType dtype) {
  OpCall op("label_mask", {labels});
  op.choose({labels.numel()}, [](OpCall::Strategies& s) { s.add({s.in(0)}, {s.in(0)}, true); });
  Tensor y = op.output(labels.shape(), dtype, labels.hidden());
  if (op.runs())
    visit_float(dtype, [&](auto zero) {
      using T = decltype(zero);
      for (i64 i = 0; i < y.local_numel(); ++i)
        y.mutable_data<T>()[i] = op.in(0).data<i32>()[i] >= 0 ? T(1) : T(0);
    });
  op.no_gradient();
  return y;
}

std::vector<double> to_values(const Tensor& t) {
  const Tensor r = to_replicated(t.detached());
  std::vector<double> out;
  if (r.is_meta()) return out;
  visit_float(r.dtype(), [&](auto zero) {
    using T = decltype(zero);
    out.assign(r.data<T>(), r.data<T>() + r.local_numel());
  });
  return out;
}

std::vector<i32> to_ids(const Tensor& t) {
  const Tensor r = to_replicated(t.detached());
  if (r.is_meta()) return {};
  return {r.data<i32>(), r.data<i32>() + r.local_numel()};
}

double item(const Tensor& t) {
  REDCO_CHECK(t.numel() == 1, "item() needs one element, not {}", describe(t));
  const auto v = to_values(t);
  return v.empty() ? 0.0 : v[0];
}

}  // namespace redco
