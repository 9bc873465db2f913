#include "ops/embedding.h"

#include <limits>

#include "ops/dispatch.h"

namespace redco {

namespace {
const auto R = Placement::replicated();
const auto P = Placement::partial();

// ids with `id` replaced by -1, which selects no row.
Tensor without_id(const Tensor& ids, i64 id) {
  Tensor out(ids.shape(), DType::i32, ids.layout(), ids.hidden());
  Context::current().run(&Kernels::replace_id, ids, id, -1, out);
  return out;
}

// checked: false: ids outside of the table are expected.
Tensor table_rows(const Tensor& table, const Tensor& ids, i64 frozen, bool checked) {
  REDCO_CHECK(table.defined() && ids.defined(), "[embedding] its {} has no value (ids, or positions)",
              table.defined() ? "ids tensor" : "table");
  REDCO_CHECK(table.rank() == 2 && ids.dtype() == DType::i32,
              "[embedding] a table of two dims and ids are needed, not {} and {}", describe(table),
              describe(ids));
  OpCall op("embedding", {table, ids}, {0});
  Shape shape = ids.shape();
  shape.push_back(table.shape()[1]);
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement t = s.in(0), i = s.in(1);
              if (t.is_sharded(0)) {
                s.add({t, R}, {P});
              } else if (t.is_sharded(1)) {
                s.add({t, R}, {Placement::sharded(s.input(1).rank(), t.unit)});  // the last dim of the output
              } else {
                s.all_replicated();
                if (i.is_sharded()) s.add({R, i}, {i});
                if (t.is_partial()) s.add({P, R}, {P});
              }
            },
            {.stationary = {0}});
  if (checked)
    Context::current().queue().check_ids(op.in(1), {.use = kernels::IdUse::row, .end = table.shape()[0]});
  const bool stored = is_storage_type(table.dtype());
  Tensor y = op.output(shape, stored ? DType::f32 : table.dtype(), ids.hidden());
  const Tensor rows = stored ? Tensor(y.shape(), table.dtype(), y.layout(), y.hidden()) : y;
  op.run(&Kernels::gather_rows, op.in(0), op.in(0).range(0).begin, op.in(1), rows);
  if (stored) op.run(&Kernels::cast, rows, y);
  op.record({ids}, [n = table.shape()[0], layout = op.in(0).layout(), frozen](const Vjp& v) {
    const Tensor rows = frozen < 0 ? v.saved(0) : without_id(v.saved(0), frozen);
    return Tensors{scatter_rows(v.g(), rows, n, layout, v.room(0)), {}};
  });
  return y;
}

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& ids, i64 frozen) {
  return table_rows(table, ids, frozen, true);
}

Tensor scatter_rows(const Tensor& g, const Tensor& ids, i64 rows, const Layout& like,
                    const GradientRoom& room) {
  OpCall op("scatter_rows", {g, ids});
  const Shape shape = {rows, g.shape().back()};
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement a = s.in(0), i = s.in(1), l = s.wish();
              const int last = s.input(0).rank() - 1;
              s.all_replicated();
              if (l.is_sharded(0)) s.add({R, R}, {l});
              if (a.is_sharded(last)) s.add({a, R}, {Placement::sharded(1, a.unit)});
              if (l.is_sharded(1)) s.add({Placement::sharded(last, l.unit), R}, {l});
              for (const Placement& p : {a, i})
                if (p.is_sharded() && p.dim < last) s.add({p, p}, {P});
              if (a.is_partial()) s.add({P, R}, {P});
            },
            {.wish = like});
  Tensor y = op.output(shape, g.dtype(), room);
  op.flops(static_cast<double>(op.in(0).local_numel()));
  op.run(&Kernels::scatter_rows, op.in(0), op.in(1), y.range(0).begin, y);
  op.record({ids}, [](const Vjp& v) { return Tensors{table_rows(v.g(), v.saved(0), -1, false), {}}; });
  return y;
}

Tensor pick(const Tensor& x, const Tensor& ids) {
  REDCO_CHECK(ids.dtype() == DType::i32 && ids.shape() == without_last(x.shape()),
              "[pick] shapes do not match: {} and {}; expected i32 indices of the shape without its last dim",
              describe(x), describe(ids));
  OpCall op("pick", {x, ids});
  const int last = x.rank() - 1;
  op.choose({ids.numel()}, [](OpCall::Strategies& s) {
    const Placement p = s.in(0), i = s.in(1);
    const int last = s.input(0).rank() - 1;
    s.all_replicated();
    if (p.is_sharded(last)) s.add({p, R}, {P});
    for (const Placement& q : {p, i})
      if (q.is_sharded() && q.dim < last) s.add({q, q}, {q});
    if (p.is_partial()) s.add({P, R}, {P});
  });
  Tensor y = op.output(ids.shape(), x.dtype(), x.hidden());
  Context::current().queue().check_ids(
      op.in(1),
      {.use = kernels::IdUse::element, .least = std::numeric_limits<i32>::min(), .end = x.shape().back()});
  op.run(&Kernels::pick, op.in(0), op.in(1), op.in(0).range(last).begin, y);
  op.record({ids}, [n = x.shape().back(), layout = op.in(0).layout()](const Vjp& v) {
    return Tensors{unpick(v.g(), v.saved(0), n, layout), {}};
  });
  return y;
}

Tensor unpick(const Tensor& g, const Tensor& ids, i64 width, const Layout& like) {
  OpCall op("unpick", {g, ids});
  Shape shape = g.shape();
  shape.push_back(width);
  const int last = g.rank();
  op.choose({numel(shape)},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0), i = s.in(1), l = s.wish();
              s.all_replicated();
              if (l.is_sharded(s.input(0).rank())) s.add({R, R}, {l});
              for (const Placement& q : {p, i})
                if (q.is_sharded()) s.add({q, q}, {q});
              if (p.is_partial()) s.add({P, R}, {P});
            },
            {.wish = like});
  Tensor y = op.output(shape, g.dtype(), g.hidden());
  op.run(&Kernels::unpick, op.in(0), op.in(1), y.range(last).begin, y);
  op.record({ids}, [](const Vjp& v) { return Tensors{pick(v.g(), v.saved(0)), {}}; });
  return y;
}

}  // namespace redco
