#include "ops/softmax.h"

#include <limits>

#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

// A row of all -inf becomes zeros: its maximum is replaced by a finite number, and its sum by 1.
Tensor softmax_composed(const Tensor& x) {
  const Tensor least = full({}, std::numeric_limits<float>::lowest(), x.dtype(), {});
  const Tensor e = exp(x - maximum(max_last(x), least));
  const Tensor total = sum(e, {-1}, true);
  return e / (total + compare(Binary::eq, total, zeros({}, x.dtype(), {})));
}

Tensor log_softmax_composed(const Tensor& x) {
  const Tensor shifted = x - max_last(x);
  return shifted - log(sum(exp(shifted), {-1}, true));
}

// g - exp(y) sum(g); not differentiated again.
Tensor log_softmax_backward(const Tensor& y, const Tensor& g) {
  OpCall op("log_softmax_backward", {y, g});
  op.choose({y.numel()}, [](OpCall::Strategies& s) {
    s.all_replicated();
    for (int i : {0, 1})
      if (s.in(i).is_sharded() && s.in(i).dim < s.input(0).rank() - 1) s.add({s.in(i), s.in(i)}, {s.in(i)});
    if (s.in(1).is_partial()) s.add({Placement::replicated(), Placement::partial()}, {Placement::partial()});
  });
  Tensor dx = op.output(y.shape(), y.dtype(), y.hidden());
  op.flops(5.0 * dx.local_numel());
  op.run(&Kernels::log_softmax_backward, op.in(0), op.in(1), dx);
  op.no_gradient();
  return dx;
}

}  // namespace

Tensor softmax(const Tensor& x) {
  if (!Context::current().has(&Kernels::softmax)) return softmax_composed(x);
  OpCall op("softmax", {x});
  op.choose({x.numel()}, [](OpCall::Strategies& s) {
    const Placement p = s.in(0);
    const int last = s.input(0).rank() - 1;
    if (p.is_sharded() && p.dim < last) {
      s.add({p}, {p});
    } else {
      s.all_replicated();
    }
  });
  Tensor y = op.output(x.shape(), x.dtype(), x.hidden());
  op.flops(6.0 * y.local_numel());
  op.run(&Kernels::softmax, op.in(0), y);
  op.record({y}, [](const Vjp& v) {  // y * (g - sum(g * y))
    const Tensor y = v.saved(0);
    return Tensors{y * (v.g() - sum(v.g() * y, {-1}, true))};
  });
  return y;
}

Tensor log_softmax(const Tensor& x) {
  if (!may_fuse(&Kernels::log_softmax) || !may_fuse(&Kernels::log_softmax_backward) ||
      is_cut(x, x.rank() - 1))
    return log_softmax_composed(x);  // a number per row crosses ranks
  OpCall op("log_softmax", {x});
  op.choose({x.numel()}, [](OpCall::Strategies& s) {
    const Placement p = s.in(0);
    if (p.is_sharded() && p.dim < s.input(0).rank() - 1) {
      s.add({p}, {p});
    } else {
      s.all_replicated();
    }
  });
  Tensor y = op.output(x.shape(), x.dtype(), x.hidden());
  op.flops(6.0 * y.local_numel());
  op.run(&Kernels::log_softmax, op.in(0), y);
  op.record({y}, [](const Vjp& v) {
    const Tensor y = v.saved(0);
    if (v.create_graph() || is_cut(v.g(), v.g().rank() - 1))
      return Tensors{v.g() - exp(y) * sum(v.g(), {-1}, true)};
    return Tensors{log_softmax_backward(y, v.g())};
  });
  return y;
}

Tensor log_sum_exp(const Tensor& x, bool keepdim) {
  const Tensor most = max_last(x);
  const auto constant = [&](double v) { return full({}, v, most.dtype(), {}); };
  // Differences to an infinite maximum would be NaN.
  constexpr double kLargest = std::numeric_limits<float>::max();
  const Tensor shift = minimum(maximum(most, constant(-kLargest)), constant(kLargest));
  const Tensor total = sum(exp(x - shift), {-1}, true);
  const Tensor none = compare(Binary::eq, total, constant(0));  // 1 for a row of all -inf
  const Tensor y = add({log(total + none), shift, log(add_scalar(scale(none, -1), 1))});
  return keepdim ? y : reshape(y, {y.shape().begin() + y.hidden(), y.shape().end() - 1});
}

}  // namespace redco
