// Legend: R rows (all leading dims of x), C width, I inner width, E experts, m rows per expert.
#include "ops/experts.h"

#include <array>

#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/placement_names.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

i64 leading(const Shape& s) {
  i64 n = 1;
  for (size_t d = 0; d + 1 < s.size(); ++d) n *= s[d];
  return n;
}

// How an axis cuts the three weights.
enum class Cut : std::uint8_t { none, experts, inside, other };
Cut cut_of(const Tensor& gate, const Tensor& up, const Tensor& down, Axis axis) {
  const Placement g = gate.used_layout()[axis], u = up.used_layout()[axis], d = down.used_layout()[axis];
  if (g.is_replicated() && u.is_replicated() && d.is_replicated()) return Cut::none;
  if (g.is_sharded(0) && u == g && d == g) return Cut::experts;
  if (g.is_sharded(1) && u == g && d == Placement::sharded(2, g.unit)) return Cut::inside;
  return Cut::other;
}

// Shape of the inner layers' outputs saved for the backward: [..., 2 per_row I]. The order of its rows is
// known only to the op that wrote it, so it is never redistributed, and its cut decides that of the backward.
// Empty if the experts are cut: the router then determines the number of rows per rank, and the backward
// computes them again.
Shape hidden_shape(const Tensor& x, const Tensor& gate, i64 per_row) {
  bool whole = true;
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes()) whole = whole && (!gate.used_layout()[a].is_sharded(0) || mesh.size(a) == 1);
  Shape s = x.shape();
  s.back() = whole ? 2 * per_row * gate.shape()[1] : 0;
  return s;
}

double flops_of(i64 rows, const Tensor& gate, i64 per_row) {
  return 2.0 * static_cast<double>(rows * per_row) * static_cast<double>(gate.local_numel()) /
         static_cast<double>(std::max<i64>(1, gate.shape()[0]));
}

kernels::MixtureOfExperts settings_of(const ExpertsOptions& o, DType t) {
  return {.activation = o.activation,
          .bf16 = t == DType::f32 && in_bf16(Context::current()),
          .per_row = o.per_row,
          .limit = o.limit,
          .alpha = o.alpha};
}

// The outputs of the inner layers; absent if they are not kept.
View kept_hidden(const Tensor& hidden) { return hidden.shape().back() > 0 ? hidden.view() : View(); }

// Whether gate, up, down and the two biases are trained; what is frozen or absent gets no gradient.
using Trained = std::array<bool, 5>;

// Inputs x, weights, chosen, gate, up, down, hidden, g, gate_bias, up_bias; attributes: Trained. Outputs dx,
// dweights and the gradients of what is trained.
void backward_strategies(OpCall::Strategies& s) {
  using Placements = OpCall::Strategies::Placements;
  const int last = s.input(0).rank() - 1;
  const Placement h = s.in(6), gate = s.in(3);
  const auto add = [&](const Placements& in, const Placement& dx, const Placement& dweights,
                       const std::array<Placement, 5>& parameters) {
    Placements out = {dx, dweights};
    for (int i = 0; i < 5; ++i)
      if (s.attribute(i) != 0) out.push_back(parameters[static_cast<std::size_t>(i)]);
    s.add(in, out);
  };
  if (h.is_sharded() && h.dim < last) {
    add({h, h, h, R_, R_, R_, h, h, R_, R_}, h, h, {P_, P_, P_, P_, P_});
  } else if (h.is_sharded()) {
    const Placement down = Placement::sharded(2, gate.unit);
    add({R_, R_, R_, gate, gate, down, h, R_, gate, gate}, P_, P_, {gate, gate, down, gate, gate});
  } else if (gate.is_sharded(0)) {
    const Placement e = Placement::sharded(last, gate.unit);
    add({R_, e, e, gate, gate, gate, R_, R_, gate, gate}, P_, e, {gate, gate, gate, gate, gate});
  } else {
    add(Placements(10, R_), R_, R_, {R_, R_, R_, R_, R_});
  }
}

// matrices: gate, up and down, which may be stored in different types.
i64 workspace_of(const Kernels& kernels, const kernels::MixtureOfExperts& m, i64 rows,
                 const std::array<const Tensor*, 3>& matrices, bool hidden, bool backward) {
  i64 most = 0;
  for (const Tensor* t : matrices)
    most = std::max(most, kernels.experts_workspace(m, rows, matrices[0]->local()[2], matrices[0]->local()[1],
                                                    t->dtype(), hidden, backward));
  return most;
}

Tensors experts_backward(const Tensor& x, const Tensor& weights, const Tensor& chosen, const ExpertWeights& w,
                         const Tensor& hidden, const Tensor& g, const Trained& trained,
                         const ExpertsOptions& o) {
  OpCall op("experts_backward", {x, weights, chosen, w.gate, w.up, w.down, hidden, g, w.gate_bias, w.up_bias},
            {3, 4, 5});
  const Tensor* const parameters[] = {&w.gate, &w.up, &w.down, &w.gate_bias, &w.up_bias};
  OpCall::Counts counts = {x.numel(), weights.numel()};
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (trained[i]) counts.push_back(parameters[i]->numel());
  op.choose(
      counts, backward_strategies,
      {.attributes = {i64{trained[0]}, i64{trained[1]}, i64{trained[2]}, i64{trained[3]}, i64{trained[4]}},
       .stationary = {3, 4, 5}});
  const DType type = sum_type(x.dtype());
  Tensor dx = op.output(x.shape(), type), dw = op.output(weights.shape(), type);
  std::array<Tensor, 5> gradients;  // undefined: frozen or absent
  std::array<View, 5> written;
  i64 products = 3;  // those of dx and dweights
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (!trained[i]) continue;
    gradients[i] = op.output(parameters[i]->shape(), type);
    written[i] = gradients[i];
    if (i < 3) ++products;
  }
  const Tensor &gate = op.in(3), &up = op.in(4), &down = op.in(5);
  const kernels::MixtureOfExperts m = settings_of(o, type);
  const i64 R = leading(op.in(0).local());
  const bool kept = hidden.shape().back() > 0;
  const Tensor work =
      OpCall::workspace(workspace_of(op.kernels(), m, R, {&gate, &up, &down}, kept, true), type);
  op.flops(static_cast<double>(products + (kept ? 0 : 2)) * flops_of(R, gate, o.per_row));
  op.run(&Kernels::experts_backward, m, op.in(0), op.in(1), op.in(2), gate, up, down, kept_hidden(op.in(6)),
         op.in(7), work, dx, dw, written[0], written[1], written[2], op.in(8), op.in(9), written[3],
         written[4]);
  op.no_gradient();
  return {dx, dw, {}, gradients[0], gradients[1], gradients[2], gradients[3], gradients[4]};
}

}  // namespace

Tensor top_k_mask(const Tensor& x, i64 k) {
  const i64 E = x.shape().back();
  REDCO_CHECK(x.visible() >= 1 && k >= 0 && k <= E, "[top_k_mask] k={} does not fit {}", k, describe(x));
  OpCall op("top_k_mask", {x});
  op.choose({x.numel()}, [](OpCall::Strategies& s) {
    const Placement p = s.in(0);
    s.all_replicated();
    if (p.is_sharded() && p.dim < s.input(0).rank() - 1) s.add({p}, {p});
  });
  Tensor y = op.output(x.shape(), x.dtype(), x.hidden());
  op.run(&Kernels::top_k_mask, op.in(0), k, y);
  op.no_gradient();
  return y;
}

Tensor experts(const Tensor& x, const Tensor& weights, const Tensor& chosen, const ExpertWeights& w,
               const ExpertsOptions& o) {
  const bool fits = w.gate.visible() == 3 && w.gate.shape() == w.up.shape() && w.down.visible() == 3 &&
                    w.down.size(0) == w.gate.size(0) && w.down.size(1) == w.gate.size(2) &&
                    w.down.size(2) == w.gate.size(1) && x.visible() >= 2 && x.size(-1) == w.gate.size(2) &&
                    weights.shape() == chosen.shape() && weights.size(-1) == w.gate.size(0) &&
                    numel(weights.shape()) * x.size(-1) == numel(x.shape()) * weights.size(-1);
  const bool biased = w.gate_bias.defined();
  REDCO_CHECK(biased == w.up_bias.defined(), "[experts] needs the biases of both inner layers, or of none");
  for (const Tensor& b : {w.gate_bias, w.up_bias})
    REDCO_CHECK(!b.defined() ||
                    (fits && b.visible() == 2 && b.size(0) == w.gate.size(0) && b.size(1) == w.gate.size(1)),
                "[experts] the biases {} do not match {}", describe(b), describe(w.gate));
  REDCO_CHECK(fits, "[experts] shapes do not match: x {}, weights {}, experts {} and {}", describe(x),
              describe(weights), describe(w.gate), describe(w.down));
  bool fused = may_fuse(&Kernels::experts);
  for (const Tensor& t : {x, weights, chosen, w.gate, w.up, w.down, w.gate_bias, w.up_bias})
    fused = fused && (!t.defined() || t.hidden() == 0);
  for (Axis a : Context::current().mesh().axes())
    fused = fused && cut_of(w.gate, w.up, w.down, a) != Cut::other;
  if (!fused) return experts_composed(x, weights, chosen, w, o);

  OpCall op("experts", {x, weights, chosen, w.gate, w.up, w.down, w.gate_bias, w.up_bias}, {3, 4, 5});
  const Shape hidden_all = hidden_shape(x, w.gate, o.per_row);
  op.choose({x.numel(), 0},
            [](OpCall::Strategies& s) {
              const i64 per_row = s.attribute(0);
              const int last = s.input(0).rank() - 1;
              const Placement gate = s.in(3);
              if (gate.is_sharded(0)) {
                const Placement e = Placement::sharded(last, gate.unit);
                return s.add({R_, e, e, gate, gate, gate, gate, gate}, {P_, R_});
              }
              if (gate.is_sharded()) {
                const Placement down = Placement::sharded(2, gate.unit);
                const Placement h = Placement::sharded(last, 2 * per_row * gate.unit);
                return s.add({R_, R_, R_, gate, gate, down, gate, gate}, {P_, h});
              }
              s.all_replicated(2);
              for (int i : {0, 1, 2}) {
                const Placement p = s.in(i);
                if (p.is_sharded() && p.dim < last) s.add({p, p, p, R_, R_, R_, R_, R_}, {p, p});
              }
            },
            {.attributes = {o.per_row}, .stationary = {3, 4, 5}});
  const DType type = sum_type(x.dtype());
  Tensor y = op.output(x.shape(), type), hidden = op.output(hidden_all, type);
  const Tensor &gate = op.in(3), &up = op.in(4), &down = op.in(5);
  const kernels::MixtureOfExperts m = settings_of(o, type);
  const i64 R = leading(op.in(0).local());
  const bool kept = hidden_all.back() > 0;
  const Tensor work =
      OpCall::workspace(workspace_of(op.kernels(), m, R, {&gate, &up, &down}, kept, false), type);
  op.flops(3 * flops_of(R, gate, o.per_row));
  op.run(&Kernels::experts, m, op.in(0), op.in(1), op.in(2), gate, up, down, kept_hidden(hidden), work, y,
         op.in(6), op.in(7));
  op.record(
      {x, weights, chosen, w.gate, w.up, w.down, hidden, w.gate_bias, w.up_bias},
      [o](const Vjp& v) -> Tensors {
        const ExpertWeights w{v.saved(3), v.saved(4), v.saved(5), v.saved(7), v.saved(8)};
        if (v.create_graph())
          return composed_vjp(
              v, {v.saved(0), v.saved(1), v.saved(2), w.gate, w.up, w.down, w.gate_bias, w.up_bias},
              [o](const Tensors& in) {
                return Tensors{experts_composed(in[0], in[1], in[2], {in[3], in[4], in[5], in[6], in[7]}, o)};
              });
        auto d = experts_backward(v.saved(0), v.saved(1), v.saved(2), w, v.saved(6), v.g(),
                                  {v.needs(3), v.needs(4), v.needs(5), v.needs(6), v.needs(7)}, o);
        // The router's output is equal on all ranks, so it is gathered once here instead of at each step of
        // its gradient.
        for (Axis axis : Context::current().mesh().axes())
          if (d[1].layout()[axis].is_sharded(d[1].rank() - 1))
            d[1] = redistribute(d[1], axis, Placement::replicated());
        return d;
      });
  return y;
}

Tensor experts_composed(const Tensor& x, const Tensor& weights, const Tensor& chosen, const ExpertWeights& w,
                        const ExpertsOptions& o) {
  const i64 E = w.gate.size(0), C = x.size(-1);
  i64 N = 1;
  for (int d = 0; d + 1 < x.visible(); ++d) N *= x.size(d);
  const i64 I = w.gate.size(1);
  const Tensor rows = reshape(x, {1, N, C});
  Tensor gate = matmul(rows, w.gate, false, true), up = matmul(rows, w.up, false, true);  // [E, N, I]
  if (w.gate_bias.defined()) {
    gate = gate + reshape(w.gate_bias, {E, 1, I});
    up = up + reshape(w.up_bias, {E, 1, I});
  }
  if (o.limit > 0) {
    gate = minimum(gate, full({}, o.limit, gate.dtype()));
    gate = gate * sigmoid(scale(gate, o.alpha));
    up = add_scalar(clamp(up, -o.limit, o.limit), 1);
  } else {
    gate = unary(o.activation, gate);
  }
  const Tensor inner = gate * up;
  const Tensor y = matmul(inner, w.down, false, true);  // [E, N, C]
  const Tensor by = reshape(permute(reshape(weights * chosen, {N, E}), {1, 0}), {E, N, 1});
  return reshape(sum(y * by, {0}), Shape(x.shape().begin() + x.hidden(), x.shape().end()));
}

}  // namespace redco
