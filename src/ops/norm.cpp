// Legend: C channels (last dim), R rows.
#include "ops/norm.h"

#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/placement_names.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

bool batched(const Tensor& w) { return w.defined() && w.rank() > 1; }

// Each of the vectors has the size of x's last dim.
void check_vectors(const char* op, const Tensor& x, std::initializer_list<Tensor> vectors) {
  for (const Tensor& v : vectors)
    REDCO_CHECK(!v.defined() || (x.visible() > 0 && v.rank() > 0 && v.size(-1) == x.size(-1)),
                "[{}] has a weight or bias {} for {}; expected a vector of the size of its last dim", op,
                describe(v), describe(x));
}

// x [rows, C] is cut along rows; parameters are Replicated. Outs: y and the statistics of the rows.
template <int Outs>
void norm_strategies(OpCall::Strategies& s) {
  using Placements = OpCall::Strategies::Placements;
  s.all_replicated(Outs);
  const Placement p = s.in(0);
  if (p.is_sharded() && p.dim < s.input(0).rank() - 1) {
    Placements in(s.inputs(), R_);
    in[0] = p;
    s.add(in, Placements(Outs, p));
  }
}

// dx, dw, db of both norms in one pass; not differentiable. A Partial cotangent is reduced first, because
// each of dx, dw and db would need the reduction.
Tensors norm_backward(const char* name, const Tensor& x, const Tensor& w, const Tensor& mean,
                      const Tensor& rstd, const Tensor& g, bool has_bias) {
  OpCall op(name, {x, w, mean, rstd, g}, Accepts::activations());
  const i64 C = x.shape().back();
  op.choose({x.numel(), C, C}, [](OpCall::Strategies& s) {
    s.all_replicated(3);
    for (int i : {0, 4}) {
      const Placement p = s.in(i);
      if (p.is_sharded() && p.dim < s.input(0).rank() - 1) s.add({p, R_, p, p, p}, {p, P_, P_});
    }
  });
  Tensor dx = op.output(x.shape(), x.dtype(), x.hidden());
  const DType type = sum_type(x.dtype());
  Tensor dw = op.output({C}, type, 0);
  Tensor db = op.output({has_bias ? C : 0}, type, 0);
  op.flops(8.0 * dx.local_numel());
  const Tensor &xi = op.in(0), &gi = op.in(4);
  const Tensor room =
      OpCall::workspace(op.kernels().norm_backward_workspace(xi.view().leading(), C, has_bias ? 2 : 1), type);
  if (mean.defined()) {
    op.run(&Kernels::layer_norm_backward, xi, op.in(1), op.in(2), op.in(3), gi, dx, dw,
           has_bias ? db.view() : View(), room);
  } else {
    op.run(&Kernels::rms_norm_backward, xi, op.in(1), op.in(3), gi, dx, dw, room);
  }
  op.no_gradient();
  return {dx, dw, db};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double eps, NormResult result) {
  check_vectors("layer_norm", x, {w, b});
  if (!may_fuse(&Kernels::layer_norm) || batched(w) || batched(b)) return layer_norm_composed(x, w, b, eps);
  OpCall op("layer_norm", {x, w, b}, Accepts::activations());
  const Shape stats = without_last(x.shape());
  op.choose({x.numel(), numel(stats), numel(stats)}, norm_strategies<3>);
  Tensor y = op.output(x.shape(), result == NormResult::computed ? computed_type(x) : x.dtype(), x.hidden());
  const DType type = sum_type(x.dtype());
  Tensor mean = op.output(stats, type, x.hidden()), rstd = op.output(stats, type, x.hidden());
  op.flops(5.0 * y.local_numel());
  op.run(&Kernels::layer_norm, op.in(0), op.in(1), op.in(2), eps, y, mean, rstd);
  op.record({x, w, b, mean, rstd}, [eps](const Vjp& v) -> Tensors {
    const Tensor x = v.saved(0), w = v.saved(1), b = v.saved(2);
    if (v.create_graph())
      return composed_vjp(v, {x, w, b}, [eps](const Tensors& in) {
        return Tensors{layer_norm_composed(in[0], in[1], in[2], eps)};
      });
    return norm_backward("layer_norm_backward", x, w, v.saved(3), v.saved(4), v.g(), b.defined());
  });
  return y;
}

Tensor rms_norm(const Tensor& x, const Tensor& w, double eps) {
  check_vectors("rms_norm", x, {w});
  if (!may_fuse(&Kernels::rms_norm) || batched(w) || is_cut(x, x.rank() - 1))
    return rms_norm_composed(x, w, eps);
  OpCall op("rms_norm", {x, w}, Accepts::activations());
  const Shape stats = without_last(x.shape());
  op.choose({x.numel(), numel(stats)}, norm_strategies<2>);
  Tensor y = op.output(x.shape(), computed_type(x), x.hidden());
  Tensor rstd = op.output(stats, sum_type(x.dtype()), x.hidden());
  op.flops(4.0 * y.local_numel());
  op.run(&Kernels::rms_norm, op.in(0), op.in(1), eps, y, rstd);
  op.record({x, w, rstd}, [eps](const Vjp& v) -> Tensors {
    const Tensor x = v.saved(0), w = v.saved(1);
    if (v.create_graph())
      return composed_vjp(v, {x, w},
                          [eps](const Tensors& in) { return Tensors{rms_norm_composed(in[0], in[1], eps)}; });
    auto d = norm_backward("rms_norm_backward", x, w, {}, v.saved(2), v.g(), false);
    d.pop_back();
    return d;
  });
  return y;
}

Tensor group_norm(const Tensor& x, i64 groups, const Tensor& w, const Tensor& b, double eps) {
  REDCO_CHECK(x.visible() >= 2 && groups >= 1 && x.size(1) % groups == 0, "[group_norm] {} groups of {}",
              groups, describe(x));
  const i64 B = x.size(0), C = x.size(1);
  i64 width = C / groups;
  for (int d = 2; d < x.visible(); ++d) width *= x.size(d);
  const Shape shape(x.shape().begin() + x.hidden(), x.shape().end());
  Tensor y = reshape(layer_norm(reshape(x, {B, groups, width}), {}, {}, eps, NormResult::stream), shape);
  // [C] -> [C, 1, ...]
  Shape channels(x.visible() - 1, 1);
  channels[0] = C;
  if (w.defined()) y = y * reshape(w, channels);
  if (b.defined()) y = y + reshape(b, channels);
  return y;
}

Tensor layer_norm_composed(const Tensor& input, const Tensor& w, const Tensor& b, double eps) {
  const Tensor x = to_sum_type(input);
  const Tensor centered = x - mean(x, {-1}, true);
  Tensor y = centered * rsqrt(add_scalar(mean(square(centered), {-1}, true), eps));
  if (w.defined()) y = y * w;
  if (b.defined()) y = y + b;
  return y;
}

Tensor rms_norm_composed(const Tensor& input, const Tensor& w, double eps) {
  const Tensor x = to_sum_type(input);
  const Tensor y = x * rsqrt(add_scalar(mean(square(x), {-1}, true), eps));
  return w.defined() ? y * w : y;
}

}  // namespace redco
