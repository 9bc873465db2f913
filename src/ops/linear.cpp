// Legend: R rows (all leading dims of x), I inputs, O outputs.
#include "ops/linear.h"

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

const auto R = Placement::replicated();
const auto P = Placement::partial();

// All dims but the last are rows.
View as_matrix(const Tensor& y) {
  const View v = y;
  return v.reshaped({v.leading(), v.last()});
}

// x and the output cut along rows, i.e. any dim but the last.
void row_strategies(OpCall::Strategies& s, int x, OpCall::Strategies::Placements in) {
  const Placement p = s.in(x);
  if (p.is_sharded() && p.dim < s.input(x).rank() - 1) {
    in[x] = p;
    s.add(in, {p});
  }
}

// partial: a Partial operand is never reduced, whatever it costs (linear_partial)
enum class Sums : std::uint8_t { cheapest, partial };

// The attribute of the products.
Sums sums_of(const OpCall::Strategies& s) { return static_cast<Sums>(s.attribute(0)); }

// y[..., N] = x[..., K] times a stationary weight, where dim k_dim is contracted and dim n_dim remains.
void stationary_strategies(OpCall::Strategies& s, int n_dim, int k_dim) {
  const Placement x = s.in(0), w = s.in(1);
  const int last = s.input(0).rank() - 1;
  if (sums_of(s) == Sums::partial && x.is_partial() && w.is_replicated()) {
    s.add({P, R}, {P});
    return;
  }
  if (w.is_replicated()) {
    s.all_replicated();
    row_strategies(s, 0, {R, R});
    if (x.is_partial()) s.add({P, R}, {P});
    if (x.is_sharded(last)) s.add({x, Placement::sharded(k_dim, x.unit)}, {P});
  } else if (w.is_sharded(n_dim)) {
    s.add({R, w}, {Placement::sharded(last, w.unit)});
  } else if (w.is_sharded(k_dim)) {
    s.add({Placement::sharded(last, w.unit), w}, {P});
  } else if (w.is_partial()) {
    s.add({R, P}, {P});
    s.all_replicated();
  }
}

// A weight with leading dims. If these are only hidden dims, the rows of x, in any number of dims, become one
// dim of the product; then the weight's gradient is one product too.
Tensor batched_linear(const Tensor& x, const Tensor& w) {
  if (w.visible() > 2 || x.visible() == 2) return matmul(x, w, false, true);
  Shape rows(x.shape().begin() + x.hidden(), x.shape().end() - 1), out = rows;
  out.push_back(w.size(-2));
  return reshape(matmul(reshape(x, {numel(rows), x.size(-1)}), w, false, true), out);
}

// g with all its rows where the weight is cut along its inputs: then both products of the vjp need them, and
// each would gather them. Sequence parallelism cuts rows.
Tensor with_all_rows(const Tensor& g, const Tensor& w) {
  const Mesh& mesh = Context::current().mesh();
  Tensor out = g;
  for (Axis a : mesh.axes()) {
    const Placement p = out.layout()[a];
    const bool rows_cut = p.is_sharded() && p.dim < g.rank() - 1;
    if (mesh.role(a) == AxisRole::model && rows_cut && w.layout()[a].is_sharded(1))
      out = redistribute(out, a, R);
  }
  return out;
}

Tensor product(const Tensor& x, const Tensor& w, Sums sums);
Tensor product_transposed(const Tensor& g, const Tensor& w, Sums sums);
Tensor weight_gradient(const Tensor& g, const Tensor& x, Sums sums, const GradientRoom& room = {});

Tensor product(const Tensor& x, const Tensor& w, Sums sums) {
  REDCO_CHECK(x.rank() >= 1 && w.visible() >= 2 && x.shape().back() == w.shape().back(),
              "[linear] shapes do not match: {} and {}", describe(x), describe(w));
  if (w.rank() > 2) return batched_linear(x, w);
  const i64 O = w.shape()[0];
  Shape shape = x.shape();
  shape.back() = O;
  OpCall op("linear", {x, w}, {1});
  op.choose({numel(shape)}, [](OpCall::Strategies& s) { stationary_strategies(s, 0, 1); },
            {.attributes = {static_cast<i64>(sums)}, .stationary = {1}});
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  const Tensor rows = product_operand(op.in(0));
  const View a = as_matrix(rows);
  op.flops(2.0 * a.shape[0] * op.in(1).local()[0] * a.shape[1]);
  // Products that read bf16 operands round the elements of groups too.
  const bool rounded = is_grouped(w.dtype()) && products_in_bf16(x.dtype());
  if (is_storage_type(w.dtype()) && !rounded && may_fuse(&Kernels::stored_linear)) {
    const Shape& local = op.in(1).local();
    const i64 room = op.kernels().stored_linear_workspace(a.shape[0], local[0], local[1]);
    op.run(&Kernels::stored_linear, a, op.in(1), as_matrix(y), OpCall::workspace(room, DType::f32));
  } else {
    const Tensor weight = product_operand(widened(op.in(1)));
    op.run(&Kernels::matmul, a, false, as_matrix(weight), true, as_matrix(y));
  }
  // Only the weight's gradient needs x.
  op.record({w.node() ? x : Tensor(), w}, [sums](const Vjp& v) {
    Tensors d(2);
    const Tensor g = with_all_rows(v.g(), v.saved(1));
    if (v.needs(0)) d[0] = product_transposed(g, v.saved(1), sums);
    if (auto* factors = v.needs(1) ? v.factors(1) : nullptr)
      factors->push_back({g, v.saved(0)});
    else if (v.needs(1))
      d[1] = weight_gradient(g, v.saved(0), sums, v.room(1));
    return d;
  });
  return y;
}

Tensor product_transposed(const Tensor& g, const Tensor& w, Sums sums) {
  REDCO_CHECK(w.rank() == 2 && g.shape().back() == w.shape()[0],
              "[linear_transposed] shapes do not match: {} and {}", describe(g), describe(w));
  Shape shape = g.shape();
  shape.back() = w.shape()[1];
  OpCall op("linear_transposed", {g, w});
  op.choose({numel(shape)}, [](OpCall::Strategies& s) { stationary_strategies(s, 1, 0); },
            {.attributes = {static_cast<i64>(sums)}, .stationary = {1}});
  Tensor y = op.output(shape, g.dtype(), g.hidden());
  const Tensor rows = product_operand(op.in(0)), weight = product_operand(op.in(1));
  const View a = as_matrix(rows), b = as_matrix(weight);
  op.flops(2.0 * a.shape[0] * b.shape[1] * a.shape[1]);
  op.run(&Kernels::matmul, a, false, b, false, as_matrix(y));
  op.record({g, w}, [sums](const Vjp& v) {
    Tensors d(2);
    if (v.needs(0)) d[0] = product(v.g(), v.saved(1), sums);
    if (v.needs(1)) d[1] = weight_gradient(v.saved(0), v.g(), sums);
    return d;
  });
  return y;
}

void weight_gradient_strategies(OpCall::Strategies& s) {
  const Placement a = s.in(0), b = s.in(1);
  const int last = s.input(0).rank() - 1;
  if (sums_of(s) == Sums::partial && a.is_partial() != b.is_partial() && !a.is_sharded() && !b.is_sharded()) {
    s.add({a, b}, {P});
    return;
  }
  s.all_replicated();
  if (a.is_sharded(last)) s.add({a, R}, {Placement::sharded(0, a.unit)});
  if (b.is_sharded(last)) s.add({R, b}, {Placement::sharded(1, b.unit)});
  for (const Placement& p : {a, b})
    if (p.is_sharded() && p.dim < last) s.add({p, p}, {P});
  if (a.is_partial()) s.add({P, R}, {P});
  if (b.is_partial()) s.add({R, P}, {P});
}

Tensor weight_gradient(const Tensor& g, const Tensor& x, Sums sums, const GradientRoom& room) {
  REDCO_CHECK(g.rank() == x.rank() && g.rank() >= 1,
              "[linear_weight_gradient] shapes do not match: {} and {}", describe(g), describe(x));
  const Shape shape = {g.shape().back(), x.shape().back()};
  OpCall op("linear_weight_gradient", {g, x});
  op.choose({numel(shape)}, weight_gradient_strategies, {.attributes = {static_cast<i64>(sums)}});
  Tensor y = op.output(shape, g.dtype(), room);
  const Tensor of_output = product_operand(op.in(0)), of_input = product_operand(op.in(1));
  const View a = as_matrix(of_output), b = as_matrix(of_input);
  op.flops(2.0 * a.shape[1] * b.shape[1] * a.shape[0]);
  op.run(&Kernels::matmul, a, true, b, false, y);
  // The cotangent of dW takes the role of the weight: it is stationary.
  op.record({g, x}, [sums](const Vjp& v) {
    Tensors d(2);
    if (v.needs(0)) d[0] = product(v.saved(1), v.g(), sums);
    if (v.needs(1)) d[1] = product_transposed(v.saved(0), v.g(), sums);
    return d;
  });
  return y;
}

}  // namespace

bool products_in_bf16(DType t) {
  return t == DType::f32 && Context::current().compute_dtype == ComputeDType::bf16;
}

Tensor product_operand(const Tensor& t) {
  if (!products_in_bf16(t.dtype())) return t;
  const Tensor rounded(t.shape(), t.dtype(), t.layout(), t.hidden());
  Context::current().run(&Kernels::round_to_bf16, t, rounded);
  return rounded;
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Tensor y = product(x, w, Sums::cheapest);
  return bias.defined() ? add_bias(y, bias) : y;
}
Tensor linear_partial(const Tensor& x, const Tensor& w) { return product(x, w, Sums::partial); }
Tensor linear_transposed(const Tensor& g, const Tensor& w) {
  return product_transposed(g, w, Sums::cheapest);
}
Tensor linear_weight_gradient(const Tensor& g, const Tensor& x) {
  return weight_gradient(g, x, Sums::cheapest);
}

namespace {

// The batch dims of matmul's operands: all but those of the matrices.
Broadcast batch_dims(const Tensor& a, const Tensor& b) {
  constexpr std::array<int, 2> kMatrices = {2, 2};
  return broadcast_shapes("matmul", {a, b}, kMatrices);
}

// Where the stored operands of matmul have the dims i, k and k, j.
struct MatrixDims {
  int ai, ak, bk, bj;
};
MatrixDims matrix_dims(const Tensor& a, const Tensor& b, bool trans_a, bool trans_b) {
  const int ra = a.rank(), rb = b.rank();
  return {trans_a ? ra - 1 : ra - 2, trans_a ? ra - 2 : ra - 1, trans_b ? rb - 1 : rb - 2,
          trans_b ? rb - 2 : rb - 1};
}

// Attributes: trans_a, trans_b.
void matmul_strategies(OpCall::Strategies& s) {
  const Tensor &a = s.input(0), &b = s.input(1);
  const auto [ai, ak, bk, bj] = matrix_dims(a, b, s.attribute(0) != 0, s.attribute(1) != 0);
  const Broadcast bd = batch_dims(a, b);
  const int batch = bd.size();
  const Placement p = s.in(0), q = s.in(1);
  s.all_replicated();
  if (p.is_sharded(ai)) s.add({p, R}, {Placement::sharded(batch, p.unit)});
  if (q.is_sharded(bj)) s.add({R, q}, {Placement::sharded(batch + 1, q.unit)});
  if (p.is_sharded(ak)) s.add({p, Placement::sharded(bk, p.unit)}, {P});
  if (q.is_sharded(bk)) s.add({Placement::sharded(ak, q.unit), q}, {P});
  for (int D = 0; D < batch; ++D) {
    const int da = own_dim(a, bd, D, 2), db = own_dim(b, bd, D, 2);
    const auto cut = [&](int d, i64 unit) { return d >= 0 ? Placement::sharded(d, unit) : R; };
    if (da >= 0 && p.is_sharded(da)) s.add({p, cut(db, p.unit)}, {Placement::sharded(D, p.unit)});
    if (db >= 0 && q.is_sharded(db)) s.add({cut(da, q.unit), q}, {Placement::sharded(D, q.unit)});
  }
  if (p.is_partial()) s.add({P, R}, {P});
  if (q.is_partial()) s.add({R, P}, {P});
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a, bool trans_b) {
  REDCO_CHECK(a.visible() >= 2 && b.visible() >= 2, "[matmul] shapes do not match: {} and {}", describe(a),
              describe(b));
  const auto [ai, ak, bk, bj] = matrix_dims(a, b, trans_a, trans_b);
  REDCO_CHECK(a.shape()[ak] == b.shape()[bk], "[matmul] shapes do not match: {} and {}", describe(a),
              describe(b));
  const Broadcast bd = batch_dims(a, b);
  Shape shape = bd.shape;
  shape.push_back(a.shape()[ai]);
  shape.push_back(b.shape()[bj]);
  OpCall op("matmul", {a, b});
  op.choose({numel(shape)}, matmul_strategies, {.attributes = {trans_a, trans_b}});
  Tensor y = op.output(shape, a.dtype(), bd.hidden);
  const Tensor left = product_operand(op.in(0)), right = product_operand(op.in(1));
  op.flops(2.0 * y.local_numel() * left.local()[ak]);
  op.run(&Kernels::matmul, broadcast_view(left, bd, y, 2), trans_a, broadcast_view(right, bd, y, 2), trans_b,
         y);
  op.record({a, b}, [trans_a, trans_b, sa = a.shape(), ha = a.hidden(), sb = b.shape(),
                     hb = b.hidden()](const Vjp& v) {
    Tensors d(2);
    const Tensor g = v.g(), a = v.saved(0), b = v.saved(1);
    // y = A B: dA = g B^T, dB = A^T g, each stored like its operand.
    if (v.needs(0))
      d[0] = sum_to(trans_a ? matmul(b, g, trans_b, true) : matmul(g, b, false, !trans_b), sa, ha);
    if (v.needs(1))
      d[1] = sum_to(trans_b ? matmul(g, a, true, trans_a) : matmul(a, g, !trans_a, false), sb, hb);
    return d;
  });
  return y;
}

}  // namespace redco
