#include "ops/softmax.h"

#include "kernels/nn.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace redco {

Tensor softmax(const Tensor& x) {
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
  const i64 C = x.shape().back();
  op.flops(6.0 * y.local_numel());
  if (op.runs())
    visit_float(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      kernels::softmax<T>(op.in(0).data<T>(), y.mutable_data<T>(), C ? y.local_numel() / C : 0, C);
    });
  op.record({y}, [](const Vjp& v) {  // y * (g - sum(g * y))
    const Tensor y = v.saved(0);
    return Tensors{y * (v.g() - sum(v.g() * y, {-1}, true))};
  });
  return y;
}

Tensor log_softmax(const Tensor& x) {
  const Tensor shifted = x - max_last(x);
  return shifted - log(sum(exp(shifted), {-1}, true));
}

}  // namespace redco
