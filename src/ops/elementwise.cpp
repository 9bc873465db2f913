#include "ops/elementwise.h"

#include <cmath>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

enum class Linear { none, sum, first, either };  // the operands in which the op is linear

// All Replicated; or one operand's cut, with the others cut equally or broadcast; or Partial where the op is
// linear.
void elementwise_strategies(OpCall::Strategies& s, Linear linear) {
  const Tensors& in = s.all_inputs();
  const Broadcast b = broadcast_shapes("", in);
  const size_t n = in.size();
  using Placements = OpCall::Strategies::Placements;
  s.all_replicated();
  Placements seen;
  for (size_t i = 0; i < n; ++i) {
    const Placement p = s.in(i);
    if (!p.is_sharded()) continue;
    const int D = result_dim(in[i], b, p.dim);
    if (in[i].shape()[p.dim] != b.shape[D]) continue;
    const Placement out = Placement::sharded(D, p.unit);
    if (std::find(seen.begin(), seen.end(), out) != seen.end()) continue;
    seen.push_back(out);
    Placements need(n);
    for (size_t j = 0; j < n; ++j) {
      if (const int d = own_dim(in[j], b, D); d >= 0) need[j] = Placement::sharded(d, p.unit);
    }
    s.add(std::move(need), {out});
  }
  const auto P = Placement::partial(), R = Placement::replicated();
  if (linear == Linear::sum) {
    size_t partials = 0;
    for (size_t i = 0; i < n; ++i) partials += s.in(i).is_partial();
    // On a model axis a Replicated term is added after the reduction. On a data axis a sum stays Partial
    // until the reduction of the step.
    if (partials == n || (partials > 0 && s.role() == AxisRole::data)) s.add(Placements(n, P), {P});
  } else if (linear == Linear::first || linear == Linear::either) {
    if (s.in(0).is_partial()) s.add({P, R}, {P});
    if (linear == Linear::either && n > 1 && s.in(1).is_partial()) s.add({R, P}, {P});
  }
}

// Operands of one shape may be activations in bf16.
Accepts accepted(const Tensors& operands) {
  for (const Tensor& t : operands)
    if (!t.defined() || t.shape() != operands[0].shape() || t.hidden() != operands[0].hidden()) return {};
  return Accepts::activations();
}

// Ids and numbers are not mixed.
void require_one_kind(const char* name, const Tensors& operands) {
  for (const Tensor& t : operands)
    REDCO_CHECK(t.is_float() == operands[0].is_float(), "[{}] {} with {}; to_float() makes numbers of ids",
                name, describe(operands[0]), describe(t));
}

Tensor run_binary(const char* name, Binary kind, const Tensor& a, const Tensor& b, Linear linear, VjpFn vjp,
                  bool save) {
  const Tensors operands = {a, b};
  OpCall op(name, operands, accepted(operands));
  const Broadcast bc = broadcast_shapes(name, operands);
  require_one_kind(name, operands);
  op.choose({numel(bc.shape)},
            [](OpCall::Strategies& s) { elementwise_strategies(s, static_cast<Linear>(s.attribute(0))); },
            {.attributes = {static_cast<i64>(linear)}});
  Tensor y = op.output(bc.shape, joint_type(operands), bc.hidden);
  op.flops(static_cast<double>(y.local_numel()));
  op.run(&Kernels::binary, kind, broadcast_view(op.in(0), bc, y), broadcast_view(op.in(1), bc, y), y);
  if (vjp) {
    op.record(save ? Tensors{a, b} : Tensors{}, std::move(vjp));
  } else {
    op.no_gradient();
  }
  return y;
}

struct Like {
  Shape shape;
  int hidden = 0;
};
Like like(const Tensor& t) { return t.defined() ? Like{t.shape(), t.hidden()} : Like{}; }
Tensor sum_like(const Tensor& g, const Like& l) { return sum_to(g, l.shape, l.hidden); }

}  // namespace

Tensor add(const Tensors& terms) {
  REDCO_CHECK(!terms.empty());
  if (terms.size() == 1) return terms[0];
  if (terms.size() > 2 && Context::current().mesh().ranks(AxisRole::model) > 1) {
    // Partial terms are added before the others, so that they are reduced only once.
    Tensors partial, rest;
    for (const Tensor& t : terms) (is_partial_on(AxisRole::model, t) ? partial : rest).push_back(t);
    if (partial.size() > 1 && !rest.empty()) {
      rest.push_back(add(partial));
      return add(rest);
    }
  }
  // The sum of more than two terms is not rounded between them.
  const DType type = joint_type(terms);
  OpCall op("add", terms, type == DType::bf16 && terms.size() > 2 ? Accepts() : accepted(terms));
  const Broadcast bc = broadcast_shapes("add", terms);
  require_one_kind("add", terms);
  op.choose({numel(bc.shape)}, [](OpCall::Strategies& s) { elementwise_strategies(s, Linear::sum); });
  Tensor y = op.output(bc.shape, type, bc.hidden);
  op.flops(static_cast<double>(y.local_numel()) * (terms.size() - 1));
  op.run(&Kernels::binary, Binary::add, broadcast_view(op.in(0), bc, y), broadcast_view(op.in(1), bc, y), y);
  for (size_t i = 2; i < terms.size(); ++i)
    op.run(&Kernels::binary, Binary::add, y, broadcast_view(op.in(i), bc, y), y);
  SmallVector<Like, 2> likes;
  for (const Tensor& t : terms) likes.push_back(like(t));
  op.record({}, [likes](const Vjp& v) {
    Tensors dx(likes.size());
    for (size_t i = 0; i < dx.size(); ++i)
      if (v.needs(i)) dx[i] = sum_like(v.g(), likes[i]);
    return dx;
  });
  return y;
}

Tensor operator+(const Tensor& a, const Tensor& b) { return add({a, b}); }

Tensor operator-(const Tensor& a, const Tensor& b) {
  return run_binary(
      "sub", Binary::sub, a, b, Linear::sum,
      [la = like(a), lb = like(b)](const Vjp& v) {
        Tensors d(2);
        if (v.needs(0)) d[0] = sum_like(v.g(), la);
        if (v.needs(1)) d[1] = scale(sum_like(v.g(), lb), -1);
        return d;
      },
      false);
}

Tensor operator*(const Tensor& a, const Tensor& b) {
  return run_binary(
      "mul", Binary::mul, a, b, Linear::either,
      [la = like(a), lb = like(b)](const Vjp& v) {
        Tensors d(2);
        if (v.needs(0)) d[0] = sum_like(v.g() * v.saved(1), la);
        if (v.needs(1)) d[1] = sum_like(v.g() * v.saved(0), lb);
        return d;
      },
      true);
}

Tensor operator/(const Tensor& a, const Tensor& b) {
  return run_binary(
      "div", Binary::div, a, b, Linear::first,
      [la = like(a), lb = like(b)](const Vjp& v) {
        Tensors d(2);
        const Tensor ga = v.g() / v.saved(1);
        if (v.needs(0)) d[0] = sum_like(ga, la);
        if (v.needs(1)) d[1] = sum_like(scale(ga * (v.saved(0) / v.saved(1)), -1), lb);
        return d;
      },
      true);
}

Tensor operator-(const Tensor& a) { return scale(a, -1); }

Tensor compare(Binary kind, const Tensor& a, const Tensor& b) {
  return run_binary("compare", kind, a, b, Linear::none, nullptr, false);
}

namespace {
// d max(a, b): g goes to a where a >= b, else to b.
Tensor choice(const char* name, Binary kind, const Tensor& a, const Tensor& b) {
  const bool max = kind == Binary::max;
  return run_binary(
      name, kind, a, b, Linear::none,
      [la = like(a), lb = like(b), max](const Vjp& v) {
        const Tensor a = stop_gradient(v.saved(0)), b = stop_gradient(v.saved(1));
        const Tensor to_a = max ? compare(Binary::le, b, a) : compare(Binary::le, a, b);
        Tensors d(2);
        if (v.needs(0)) d[0] = sum_like(v.g() * to_a, la);
        if (v.needs(1)) d[1] = sum_like(v.g() * add_scalar(scale(to_a, -1), 1), lb);
        return d;
      },
      true);
}
}  // namespace
Tensor maximum(const Tensor& a, const Tensor& b) { return choice("maximum", Binary::max, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return choice("minimum", Binary::min, a, b); }

namespace {
Tensor affine(const char* name, const Tensor& x, double mul, double constant) {
  REDCO_CHECK(x.defined(), "[{}] of an undefined tensor", name);
  Context::current().constant(mul);
  Context::current().constant(constant);
  OpCall op(name, {x}, Accepts::activations());
  op.choose({x.numel()},
            [](OpCall::Strategies& s) {
              const Placement p = s.in(0);
              const bool has_constant = s.attribute(0) != 0;
              if (p.is_partial() && has_constant) {
                s.all_replicated();
              } else {
                s.add({p}, {p}, p.is_replicated());
              }
            },
            {.attributes = {constant != 0}});
  Tensor y = op.output(x.shape(), x.dtype(), x.hidden());
  op.flops(static_cast<double>(y.local_numel()));
  op.run(&Kernels::affine, op.in(0), y, mul, constant);
  op.record({}, [mul](const Vjp& v) { return Tensors{mul == 1 ? v.g() : scale(v.g(), mul)}; });
  return y;
}
}  // namespace

Tensor scale(const Tensor& x, double factor) { return affine("scale", x, factor, 0); }
Tensor add_scalar(const Tensor& x, double constant) { return affine("add_scalar", x, 1, constant); }
Tensor operator*(const Tensor& x, double factor) { return scale(x, factor); }
Tensor operator*(double factor, const Tensor& x) { return scale(x, factor); }
Tensor operator/(const Tensor& x, double divisor) { return scale(x, 1 / divisor); }
Tensor operator+(const Tensor& x, double constant) { return add_scalar(x, constant); }
Tensor operator+(double constant, const Tensor& x) { return add_scalar(x, constant); }
Tensor operator-(const Tensor& x, double constant) { return add_scalar(x, -constant); }
Tensor operator-(double constant, const Tensor& x) { return add_scalar(-x, constant); }

Tensor add_bias(const Tensor& y, const Tensor& bias) {
  OpCall op("bias", {y, bias});
  const Broadcast bc = broadcast_shapes("bias", {y, bias});
  REDCO_CHECK(bc.shape == y.shape() || bias.hidden() > y.hidden(), "[bias] shapes do not match: {} and {}",
              describe(y), describe(bias));
  op.choose({numel(bc.shape)}, [](OpCall::Strategies& s) {
    elementwise_strategies(s, Linear::none);
    if (s.in(0).is_partial()) s.add({Placement::partial(), Placement::partial()}, {Placement::partial()});
  });
  Tensor out = op.output(bc.shape, y.dtype(), bc.hidden);
  op.flops(static_cast<double>(out.local_numel()));
  op.run(&Kernels::binary, Binary::add, broadcast_view(op.in(0), bc, out), broadcast_view(op.in(1), bc, out),
         out);
  op.record({}, [ly = like(y), lb = like(bias)](const Vjp& v) {
    Tensors d(2);
    if (v.needs(0)) d[0] = sum_like(v.g(), ly);
    if (v.needs(1)) d[1] = sum_like(v.g(), lb);
    return d;
  });
  return out;
}

const char* name_of(Unary op) {
  static const char* const kNames[] = {"neg",        "abs",        "sign",    "exp",  "log",  "sqrt",
                                       "rsqrt",      "reciprocal", "square",  "sin",  "cos",  "tanh",
                                       "sigmoid",    "erf",        "relu",    "step", "gelu", "gelu_tanh",
                                       "gelu_quick", "silu",       "softplus"};
  return kNames[static_cast<int>(op)];
}

namespace {

// g * op'(x) in one pass, of x or of the op's output: for gradients that are not differentiated again, and
// for relu, whose slope is constant almost everywhere.
Tensor unary_backward(Unary kind, const Tensor& x, const Tensor& g) {
  OpCall op("unary_backward", {x, g}, Accepts::activations());
  op.choose({x.numel()}, [](OpCall::Strategies& s) {
    s.all_replicated();
    for (int i : {0, 1})
      if (s.in(i).is_sharded()) s.add({s.in(i), s.in(i)}, {s.in(i)});
    if (s.in(1).is_partial()) s.add({Placement::replicated(), Placement::partial()}, {Placement::partial()});
  });
  Tensor dx = op.output(x.shape(), x.dtype(), x.hidden());
  op.flops(4.0 * dx.local_numel());
  op.run(&Kernels::unary_backward, kind, op.in(0), op.in(1), dx);
  if (kind == Unary::relu) {
    op.record({x}, [](const Vjp& v) {
      return Tensors{{}, v.needs(1) ? unary_backward(Unary::relu, v.saved(0), v.g()) : Tensor()};
    });
  } else {
    op.no_gradient();
  }
  return dx;
}

// The activations composed of simpler ops, for second derivatives.
Tensor composed(Unary op, const Tensor& input) {
  const Tensor x = to_sum_type(input);
  switch (op) {
    case Unary::gelu:
      return scale(x * add_scalar(unary(Unary::erf, scale(x, M_SQRT1_2)), 1), 0.5);
    case Unary::gelu_tanh: {
      const Tensor inner = scale(x + scale(square(x) * x, 0.044715), std::sqrt(2 / M_PI));
      return scale(x * add_scalar(tanh(inner), 1), 0.5);
    }
    case Unary::gelu_quick:
      return x * sigmoid(scale(x, 1.702));
    case Unary::silu:
      return x * sigmoid(x);
    default:
      REDCO_CHECK(false, "{} has no composed form", name_of(op));
  }
}

bool has_backward() { return Context::current().has(&Kernels::unary_backward); }

// dx from the input, or from the output if saves_output, composed of ops.
Tensor derivative(Unary op, const Tensor& s, const Tensor& g) {
  switch (op) {
    case Unary::neg:
      return scale(g, -1);
    case Unary::abs:
      return g * unary(Unary::sign, s);
    case Unary::exp:
      return g * s;
    case Unary::log:
      return g / s;
    case Unary::sqrt:
      return scale(g / s, 0.5);
    case Unary::rsqrt:
      return scale(g * (square(s) * s), -0.5);
    case Unary::reciprocal:
      return scale(g * square(s), -1);
    case Unary::square:
      return scale(g * s, 2);
    case Unary::sin:
      return g * unary(Unary::cos, s);
    case Unary::cos:
      return scale(g * unary(Unary::sin, s), -1);
    case Unary::tanh:
      return g * add_scalar(scale(square(s), -1), 1);
    case Unary::sigmoid:
      return g * (s * add_scalar(scale(s, -1), 1));
    case Unary::erf:
      return scale(g * exp(scale(square(s), -1)), 2 / std::sqrt(M_PI));
    case Unary::relu:
      return has_backward() ? unary_backward(Unary::relu, s, g) : g * unary(Unary::step, s);
    case Unary::softplus:
      return g * sigmoid(s);
    default:
      REDCO_CHECK(false, "{} has no derivative composed of ops", name_of(op));
  }
}

}  // namespace

Tensor unary(Unary kind, const Tensor& x) {
  REDCO_CHECK(x.defined(), "[{}] of an undefined tensor", name_of(kind));
  if (kernels::has_gate(kind) && Context::current().composed_only) return composed(kind, x);
  OpCall op(name_of(kind), {x}, Accepts::activations());
  op.choose({x.numel()},
            [](OpCall::Strategies& s) {
              const bool is_linear = s.attribute(0) != 0;
              if (s.in(0).is_partial() && !is_linear) {
                s.all_replicated();
              } else {
                s.add({s.in(0)}, {s.in(0)}, s.in(0).is_replicated());
              }
            },
            {.attributes = {kind == Unary::neg}});
  Tensor y = op.output(x.shape(), x.dtype(), x.hidden());
  op.flops(4.0 * y.local_numel());
  op.run(&Kernels::unary, kind, op.in(0), y);
  if (kind == Unary::step || kind == Unary::sign) {
    op.no_gradient();
  } else {
    op.record({kernels::saves_output(kind) ? y : x}, [kind](const Vjp& v) -> Tensors {
      const Tensor s = v.saved(0);
      if (kernels::has_gate(kind)) {
        if (v.create_graph() || !has_backward())
          return composed_vjp(v, {s}, [kind](const Tensors& in) { return Tensors{composed(kind, in[0])}; });
        return {unary_backward(kind, s, v.g())};
      }
      if ((kind == Unary::softplus || kernels::saves_output(kind)) && !v.create_graph() && has_backward())
        return {unary_backward(kind, s, v.g())};
      return {derivative(kind, s, v.g())};
    });
  }
  return y;
}

namespace {

// {d gate, d up} in one pass; not differentiated again.
Tensors gated_backward(Unary kind, const Tensor& gate, const Tensor& up, const Tensor& g) {
  OpCall op("gated_backward", {gate, up, g}, Accepts::activations());
  op.choose({gate.numel(), up.numel()}, [](OpCall::Strategies& s) {
    const auto R = Placement::replicated(), P = Placement::partial();
    s.all_replicated(2);
    for (int i : {0, 1, 2})
      if (const Placement p = s.in(i); p.is_sharded()) s.add({p, p, p}, {p, p});
    if (s.in(2).is_partial()) s.add({R, R, P}, {P, P});
  });
  Tensors d = {op.output(gate.shape(), gate.dtype(), gate.hidden()),
               op.output(up.shape(), up.dtype(), up.hidden())};
  op.flops(8.0 * d[0].local_numel());
  op.run(&Kernels::gated_backward, kind, op.in(0), op.in(1), op.in(2), d[0], d[1]);
  op.no_gradient();
  return d;
}

}  // namespace

Tensor gated(Unary kind, const Tensor& gate, const Tensor& up) {
  const Context& c = Context::current();
  const bool alike = gate.shape() == up.shape() && gate.hidden() == up.hidden() && gate.dtype() == up.dtype();
  if (!kernels::has_gate(kind) || !alike || c.composed_only || !c.has(&Kernels::gated))
    return unary(kind, gate) * up;
  OpCall op("gated", {gate, up}, Accepts::activations());
  op.choose({gate.numel()}, [](OpCall::Strategies& s) {
    elementwise_strategies(s, Linear::none);
    if (s.in(1).is_partial()) s.add({Placement::replicated(), Placement::partial()}, {Placement::partial()});
  });
  Tensor y = op.output(gate.shape(), gate.dtype(), gate.hidden());
  op.flops(5.0 * y.local_numel());
  op.run(&Kernels::gated, kind, op.in(0), op.in(1), y);
  op.record({gate, up}, [kind](const Vjp& v) -> Tensors {
    const Tensor gate = v.saved(0), up = v.saved(1);
    if (v.create_graph() || !Context::current().has(&Kernels::gated_backward))
      return composed_vjp(v, {gate, up}, [kind](const Tensors& in) {
        return Tensors{composed(kind, in[0]) * to_sum_type(in[1])};
      });
    return gated_backward(kind, gate, up, v.g());
  });
  return y;
}

Tensor stop_gradient(const Tensor& x) { return x.detached(); }

}  // namespace redco
