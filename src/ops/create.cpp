#include "ops/create.h"

#include "base/error.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/redistribute.h"
#include "ops/shape.h"
#include "tensor/transfer.h"

namespace redco {

Tensor full(const Shape& shape, double value, DType dtype, const Layout& layout) {
  Tensor t(shape, dtype, layout);
  Context::current().constant(value);
  Context::current().run(&Kernels::fill, t, value);
  return t;
}

Tensor zeros(const Shape& shape, DType dtype, const Layout& layout) { return full(shape, 0, dtype, layout); }
Tensor zeros_like(const Tensor& t) {
  return full(t.shape(), 0, t.dtype(), t.layout()).with_hidden(t.hidden());
}

Tensor ones_like(const Tensor& t) {
  return full(t.shape(), 1, t.dtype(), t.layout().reduced()).with_hidden(t.hidden());
}

Tensor parameter(const Shape& shape, DType dtype, const Layout& layout, StateSharding sharding) {
  if (sharding != StateSharding::parameters) return {shape, dtype, layout};
  const Layout parts = sharded_over_replicas(layout, shape, Context::current().mesh());
  return Tensor(shape, dtype, parts).gathered_on_use();
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
    copy_from_host(values, whole);
  }
  return redistribute(whole, layout);
}

template <class T>
Tensor from_local(const Shape& shape, std::span<const T> values, DType dtype) {
  Tensor t(shape, dtype, batch_layout());
  if (!t.is_meta()) {
    REDCO_CHECK(static_cast<i64>(values.size()) == t.local_numel(),
                "from_local_values() got {} values; expected {}, this rank's part of {}", values.size(),
                t.local_numel(), describe(t));
    copy_from_host(values, t);
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

using DrawKernel = Kernel<u64, kernels::Block4, View> Kernels::*;

// A dim 0 that is cut over dp is the batch.
Tensor drawn(DrawKernel draw, const Shape& shape, u64 key, const Layout& layout) {
  Context& c = Context::current();
  Tensor t(shape, DType::f32, layout);
  const bool batch = layout[Axis::dp].is_sharded(0);
  const std::vector<i64>& rows = c.random.rows;
  const i64 n = static_cast<i64>(rows.size());
  if (!batch || n == 0 || shape[0] % n != 0) {
    c.run(draw, key, block_of(t, batch ? c.random.row_offset : 0), t);
    return t;
  }
  kernels::Block4 one = block_of(t);
  const int dim0 = 4 - t.rank();
  one.size[dim0] = 1;
  const Range local = t.range(0);
  const i64 each = shape[0] / n, width = local.size() > 0 ? t.local_numel() / local.size() : 0;
  for (i64 r = local.begin; r < local.end; ++r) {
    one.offset[dim0] = rows[static_cast<std::size_t>(r / each)] * each + r % each;
    c.run(draw, key, one, t.view().flat((r - local.begin) * width, width));
  }
  return t;
}

}  // namespace

Tensor random_uniform(const Shape& shape, u64 key, const Layout& layout) {
  return drawn(&Kernels::uniform, shape, key, layout);
}
Tensor random_normal(const Shape& shape, u64 key, const Layout& layout) {
  return drawn(&Kernels::normal, shape, key, layout);
}
Tensor random_uniform(const Shape& shape, u64 key) { return random_uniform(shape, key, batch_layout()); }
Tensor random_normal(const Shape& shape, u64 key) { return random_normal(shape, key, batch_layout()); }

void fill_normal(const Tensor& t, u64 key, double std) {
  Context& c = Context::current();
  c.run(&Kernels::normal, key, block_of(t), t);
  if (std != 1) c.run(&Kernels::affine, t, t, std, 0);
}

void fill_uniform(const Tensor& t, u64 key, double bound) {
  Context& c = Context::current();
  c.run(&Kernels::uniform, key, block_of(t), t);
  c.run(&Kernels::affine, t, t, 2 * bound, -bound);
}

Tensor label_mask(const Tensor& labels, DType dtype) {
  if (dtype == DType::i32) return cast(label_mask(labels, DType::f32), DType::i32);  // the sign is exact
  return compare(Binary::le, zeros({}, dtype, {}), cast(labels, dtype));
}

std::vector<double> to_values(const Tensor& t) {
  const Tensor r = to_replicated(t.detached());
  if (r.is_meta()) return std::vector<double>(static_cast<std::size_t>(r.local_numel()));
  return visit_float(r.dtype() == DType::bf16 ? DType::f32 : r.dtype(), [&](auto zero) {
    const auto values = host_copy<decltype(zero)>(r);
    return std::vector<double>(values.begin(), values.end());
  });
}

std::vector<i32> to_ids(const Tensor& t) {
  const Tensor r = to_replicated(t.detached());
  if (r.is_meta()) return std::vector<i32>(static_cast<std::size_t>(r.local_numel()));
  return host_copy<i32>(r);
}

double item(const Tensor& t) {
  REDCO_CHECK(t.numel() == 1, "item() needs one element, not {}", describe(t));
  return to_values(t)[0];
}

}  // namespace redco
