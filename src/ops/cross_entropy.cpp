// Legend: V vocabulary (last dim), R rows.
#include "ops/cross_entropy.h"

#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/placement_names.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

void check_labels(const Tensor& labels, const Tensor& logits) {
  Context::current().queue().check_ids(
      labels, {.use = kernels::IdUse::label, .end = logits.shape().back(), .ignored = kIgnoredLabel});
}

// dlogits = (softmax - target) * g; it stays cut along the vocabulary.
Tensor cross_entropy_backward(const Tensor& logits, const Tensor& labels, const Tensor& lse,
                              const Tensor& g) {
  OpCall op("cross_entropy_backward", {logits, labels, lse, g}, Accepts::activations());
  const int last = logits.rank() - 1;
  op.choose({logits.numel()}, [](OpCall::Strategies& s) {
    const int last = s.input(0).rank() - 1;
    s.all_replicated();
    const Placement p = s.in(0);
    if (p.is_sharded(last)) s.add({p, R_, R_, R_}, {p});
    if (p.is_partial()) s.add({Placement::sharded(last), R_, R_, R_}, {Placement::sharded(last)});
    for (int i : {0, 1, 3})
      if (s.in(i).is_sharded() && s.in(i).dim < last) s.add({s.in(i), s.in(i), s.in(i), s.in(i)}, {s.in(i)});
  });
  Tensor dx = op.output(logits.shape(), logits.dtype(), logits.hidden());
  op.flops(4.0 * dx.local_numel());
  op.run(&Kernels::cross_entropy_backward, op.in(0), op.in(1), op.in(2), op.in(3), dx.range(last).begin, dx);
  op.no_gradient();
  return dx;
}

// The loss of smoothed targets: (1 - s) (lse - x_label) + s (lse - mean(x)). `loss` is lse - x_label.
Tensor smoothed(const Tensor& loss, const Tensor& logits, const Tensor& labels, double smoothing) {
  const Tensor more = scale(pick(logits, labels) - mean(logits, {-1}), smoothing);
  // Rows with ignored labels count 0, even if their logits are infinite or NaN.
  return loss + where(label_mask(labels, more.dtype()), more, zeros({}, more.dtype()));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing) {
  REDCO_CHECK(
      labels.dtype() == DType::i32 && labels.shape() == without_last(logits.shape()),
      "[cross_entropy] logits {} and labels {} do not match; expected i32 labels of the shape of the logits "
      "without their last dim",
      describe(logits), describe(labels));
  if (smoothing != 0) return smoothed(cross_entropy(logits, labels), logits, labels, smoothing);
  if (!may_fuse(&Kernels::cross_entropy)) return cross_entropy_composed(logits, labels);
  OpCall op("cross_entropy", {logits, labels}, Accepts::activations());
  const int last = logits.rank() - 1;
  op.choose({labels.numel(), labels.numel()}, [](OpCall::Strategies& s) {
    const int last = s.input(0).rank() - 1;
    s.all_replicated(2);
    const Placement p = s.in(0), l = s.in(1);
    if (p.is_sharded(last)) s.add({p, R_}, {R_, R_});  // communicates inside the op
    if (p.is_partial()) s.add({Placement::sharded(last), R_}, {R_, R_});
    for (const Placement& q : {p, l})
      if (q.is_sharded() && q.dim < last) s.add({q, q}, {q, q});
  });
  const DType type = sum_type(logits.dtype());
  Tensor loss = op.output(labels.shape(), type, logits.hidden());
  Tensor lse = op.output(labels.shape(), type, logits.hidden());
  const Tensor &x = op.in(0), &ids = op.in(1);
  check_labels(ids, x);
  op.flops(5.0 * x.local_numel());
  const i64 R = ids.local_numel();
  const Tensor max = OpCall::workspace(R, type), sums({2, R}, type, {});
  const auto over_cut_axes = [&](const Tensor& t, bool maximum) {
    for (Axis a : Context::current().mesh().axes())
      if (x.layout()[a].is_sharded(last)) reduce_inside(t, a, maximum);
  };
  op.run(&Kernels::max_last, x, max);
  over_cut_axes(max, true);
  op.run(&Kernels::sum_exp_and_target, x, max, ids, x.range(last).begin, sums);
  over_cut_axes(sums, false);
  op.run(&Kernels::cross_entropy, max, sums, ids, loss, lse);
  // Saves the logits as they were used, so that the backward does not scatter Partial logits again.
  op.record({op.in(0), op.in(1), lse}, [](const Vjp& v) -> Tensors {
    const Tensor x = v.saved(0), ids = v.saved(1);
    if (v.create_graph())
      return composed_vjp(v, {x, ids},
                          [](const Tensors& in) { return Tensors{cross_entropy_composed(in[0], in[1])}; });
    return {cross_entropy_backward(x, ids, v.saved(2), v.g()), {}};
  });
  return loss;
}

Tensor cross_entropy_composed(const Tensor& input, const Tensor& labels) {
  check_labels(labels, input);
  const Tensor mask = label_mask(labels, sum_type(input.dtype()));
  // Logits of ignored rows have no effect, even if they are infinite or NaN.
  Shape column = mask.shape();
  column.push_back(1);
  const Tensor logits =
      where(reshape_all(mask, column, mask.hidden()), to_sum_type(input), zeros({}, mask.dtype()));
  const Tensor shifted = logits - max_last(logits);
  return (log(sum(exp(shifted), {-1})) - pick(shifted, labels)) * mask;
}

}  // namespace redco
