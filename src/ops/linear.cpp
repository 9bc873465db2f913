// Legend: R rows (all leading dims of x), I inputs, O outputs.
#include "ops/linear.h"

#include "ops/broadcast.h"
#include "ops/elementwise.h"
#include "ops/input_moments.h"
#include "ops/linear_strategies.h"
#include "ops/placement_names.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

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
      out = redistribute(out, a, R_);
  }
  return out;
}

// Whether weights may be in one product: they are placed alike.
bool cut_alike(const Tensors& w) {
  for (const Tensor& t : w) {
    if (t.rank() != 2 || t.dtype() != w[0].dtype()) return false;
    const Layout a = t.used_layout(), b = w[0].used_layout();
    for (Axis axis : Context::current().mesh().axes())
      if (a[axis].kind != b[axis].kind || (a[axis].is_sharded() && a[axis].dim != b[axis].dim)) return false;
  }
  return true;
}

// All dims but the last are rows.
View as_matrix(const Tensor& y) {
  const View v = y;
  return v.reshaped({v.leading(), v.last()});
}
Views matrices(const Tensors& all) {
  Views out;
  for (const Tensor& t : all) out.push_back(as_matrix(t));
  return out;
}
Tensors some_inputs(const OpCall& op, int first, std::size_t n) {
  Tensors out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(op.in(first + static_cast<int>(i)));
  return out;
}

// An output where the device has no kernel for it: a sum of products and a bias, in fp32.
class Composed {
 public:
  Composed(OpCall& op, const Tensor& y)
      : op_(op),
        y_(y),
        sum_(y.dtype() == DType::bf16 ? Tensor(y.shape(), DType::f32, y.layout(), y.hidden()) : y) {}
  // Adds op(a) op(b).
  void add(const Tensor& a, bool trans_a, const Tensor& b, bool trans_b) {
    const Tensor left = widened(a), right = widened(b);
    const Tensor part = first_ ? sum_ : Tensor(sum_.shape(), sum_.dtype(), sum_.layout(), sum_.hidden());
    op_.run(&Kernels::matmul, as_matrix(left), trans_a, as_matrix(right), trans_b, as_matrix(part));
    if (!first_) op_.run(&Kernels::axpy, 1.0, part, sum_);
    first_ = false;
  }
  void add_bias(const Tensor& bias) {
    const Broadcast b = broadcast_shapes("linear", {sum_, bias});
    op_.run(&Kernels::binary, Binary::add, sum_, broadcast_view(bias, b, sum_), sum_);
  }
  void finish() {
    if (sum_.dtype() != y_.dtype()) op_.run(&Kernels::cast, sum_, y_);
  }

 private:
  OpCall& op_;
  const Tensor y_, sum_;
  bool first_ = true;
};

struct Linears {
  Tensors w, bias;  // of equal number; a bias may be undefined
  Sums sums = Sums::cheapest;
  i64 count() const { return static_cast<i64>(w.size()); }
};

Tensors product(const Tensor& x, const Linears& l);
Tensors product_vjp(const Vjp& v, Sums sums, int n);
Tensor input_gradient(const Tensors& g, const Tensors& w, Sums sums);
Tensors weight_gradients(const Tensors& g, const Tensor& x, Sums sums,
                         const SmallVector<GradientRoom, 3>& rooms = {});

// y_i = x w_i^T + bias_i, where biases may be undefined.
void run_linear(OpCall& op, const Tensor& x, const Tensors& w, const Tensors& bias, const Tensors& y) {
  if (!Context::current().has(&Kernels::linear)) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      Composed sum(op, y[i]);
      sum.add(x, false, w[i], true);
      if (bias[i].defined()) sum.add_bias(bias[i]);
      sum.finish();
    }
    return;
  }
  const bool bf16 = computed_type(x) == DType::bf16;
  const View rows = as_matrix(x);
  const Views out = matrices(y);
  Views weights, biases;
  for (const Tensor& t : w) weights.push_back(t);
  for (const Tensor& t : bias) biases.push_back(t);
  const i64 room = op.kernels().linear_workspace(bf16, rows, weights, out);
  op.run(&Kernels::linear, bf16, rows, weights, biases, out, OpCall::workspace(room, DType::f32));
}

Tensors product(const Tensor& x, const Linears& l) {
  const std::size_t n = l.w.size();
  OpCall::Counts counts;
  Tensors inputs = {x};
  SmallVector<int, 4> stationary;
  Accepts accepts = Accepts::activations();
  for (std::size_t i = 0; i < n; ++i) {
    REDCO_CHECK(x.rank() >= 1 && l.w[i].rank() == 2 && x.shape().back() == l.w[i].shape()[1],
                "[linear] shapes do not match: {} and {}", describe(x), describe(l.w[i]));
    REDCO_CHECK(!l.bias[i].defined() || l.bias[i].shape() == Shape{l.w[i].shape()[0]},
                "[linear] shapes do not match: weight {} and bias {}", describe(l.w[i]), describe(l.bias[i]));
    counts.push_back(numel(x.shape()) / std::max<i64>(1, x.shape().back()) * l.w[i].shape()[0]);
    inputs.push_back(l.w[i]);
    stationary.push_back(static_cast<int>(i) + 1);
    accepts.stored |= u64{1} << (i + 1);
  }
  for (const Tensor& b : l.bias) inputs.push_back(b);
  const ProductInputs at{static_cast<int>(n)};
  OpCall op("linear", inputs, accepts);
  op.choose(counts, linear_strategies,
            {.attributes = {static_cast<i64>(l.sums), at.n}, .stationary = stationary});
  const Tensor& in = op.in(at.x);
  const DType type = computed_type(in);
  Tensors y;
  Shape shape = x.shape();
  for (const Tensor& w : l.w) {
    shape.back() = w.shape()[0];
    y.push_back(op.output(shape, type, x.hidden()));
    op.flops(2.0 * y.back().local_numel() * in.local().back());
  }
  const Tensors w = some_inputs(op, at.w(0), n), bias = some_inputs(op, at.bias(0), n);
  if (InputMoments* moments = InputMoments::current()) moments->add(l.w, in);
  run_linear(op, in, w, bias, y);

  // Only the gradients of the weights need x.
  bool trained = false;
  for (const Tensor& t : l.w) trained = trained || t.node();
  Tensors saved = {trained ? x : Tensor()};
  for (const Tensor& t : l.w) saved.push_back(t);
  op.record(std::move(saved),
            [sums = l.sums, n](const Vjp& v) { return product_vjp(v, sums, static_cast<int>(n)); });
  return y;
}

// Weight gradients that have the same left operand x, of those inputs of the op that need one.
class WeightGradients {
 public:
  WeightGradients(const Vjp& v, const Tensor& x) : v_(v), x_(x) {}
  void add(int input, const Tensor& g) {
    if (!v_.needs(input)) return;
    if (auto* factors = v_.factors(input)) {
      factors->push_back({g, x_});
      return;
    }
    inputs_.push_back(input);
    g_.push_back(g);
    rooms_.push_back(v_.room(input));
  }
  void write(Tensors& d, Sums sums) const {
    if (g_.empty()) return;
    const Tensors dw = weight_gradients(g_, x_, sums, rooms_);
    for (std::size_t i = 0; i < g_.size(); ++i) d[static_cast<std::size_t>(inputs_[i])] = dw[i];
  }

 private:
  const Vjp& v_;
  const Tensor& x_;
  SmallVector<int, 3> inputs_;
  Tensors g_;
  SmallVector<GradientRoom, 3> rooms_;
};

Tensors product_vjp(const Vjp& v, Sums sums, int n) {
  const ProductInputs at{n};
  const ProductSaved saved;
  Tensors d(static_cast<std::size_t>(at.size())), gs, ws;
  const auto of = [&](int input) -> Tensor& { return d[static_cast<std::size_t>(input)]; };
  const Tensor x = v.saved(saved.x);
  WeightGradients of_w(v, x);
  for (int i = 0; i < n; ++i) {
    if (!v.g(at.y(i)).defined()) continue;
    const Tensor w = v.saved(saved.w(i)), g = with_all_rows(v.g(at.y(i)), w);
    gs.push_back(g);
    ws.push_back(w);
    const int bias = at.bias(i);
    if (v.needs(bias)) of(bias) = sum_to(v.g(at.y(i)), {w.shape()[0]}, 0, v.room(bias));
    of_w.add(at.w(i), g);
  }
  of_w.write(d, sums);
  if (v.needs(at.x) && !gs.empty()) of(at.x) = input_gradient(gs, ws, sums);
  return d;
}

Tensor input_gradient(const Tensors& g, const Tensors& w, Sums sums) {
  const std::size_t n = g.size();
  Tensors inputs = g;
  SmallVector<int, 4> stationary;
  Accepts accepts = Accepts::activations();
  for (std::size_t i = 0; i < n; ++i) {
    REDCO_CHECK(w[i].rank() == 2 && g[i].shape().back() == w[i].shape()[0],
                "[linear_input_gradient] shapes do not match: {} and {}", describe(g[i]), describe(w[i]));
    inputs.push_back(w[i]);
    stationary.push_back(static_cast<int>(n + i));
    accepts.stored |= u64{1} << (n + i);
  }
  Shape shape = g[0].shape();
  shape.back() = w[0].shape()[1];
  const InputGradientInputs at{static_cast<int>(n)};
  OpCall op("linear_input_gradient", inputs, accepts);
  op.choose({numel(shape)}, input_gradient_strategies,
            {.attributes = {static_cast<i64>(sums), at.n}, .stationary = stationary});
  const DType type = computed_type(op.in(at.g(0)));
  Tensor dx = op.output(shape, type, g[0].hidden());
  const Tensors gs = some_inputs(op, at.g(0), n), ws = some_inputs(op, at.w(0), n);
  for (const Tensor& t : gs) op.flops(2.0 * dx.local_numel() * t.local().back());
  if (Context::current().has(&Kernels::linear_input_gradient)) {
    const bool bf16 = type == DType::bf16;
    const Views of_g = matrices(gs), of_w = matrices(ws);
    const View out = as_matrix(dx);
    const i64 room = op.kernels().linear_input_gradient_workspace(bf16, of_g, of_w, out);
    op.run(&Kernels::linear_input_gradient, bf16, of_g, of_w, out, OpCall::workspace(room, DType::f32));
  } else {
    Composed sum(op, dx);
    for (std::size_t i = 0; i < gs.size(); ++i) sum.add(gs[i], false, ws[i], false);
    sum.finish();
  }
  Tensors saved = g;
  for (const Tensor& t : w) saved.push_back(t);
  op.record(std::move(saved), [sums, n](const Vjp& v) {
    Tensors d(2 * n), gs, ws;
    SmallVector<std::size_t, 3> wanted;
    for (std::size_t i = 0; i < n; ++i) {
      if (v.needs(static_cast<int>(i))) {
        ws.push_back(v.saved(static_cast<int>(n + i)));
        wanted.push_back(i);
      }
    }
    if (!ws.empty()) {
      const Tensors y = product(v.g(), {.w = ws, .bias = Tensors(ws.size()), .sums = sums});
      for (std::size_t i = 0; i < y.size(); ++i) d[wanted[i]] = y[i];
    }
    wanted.clear();
    for (std::size_t i = 0; i < n; ++i)
      if (v.needs(static_cast<int>(n + i))) {
        gs.push_back(v.saved(static_cast<int>(i)));
        wanted.push_back(i);
      }
    if (!gs.empty()) {
      const Tensors dw = weight_gradients(gs, v.g(), sums);
      for (std::size_t i = 0; i < dw.size(); ++i) d[n + wanted[i]] = dw[i];
    }
    return d;
  });
  return dx;
}

Tensors weight_gradients(const Tensors& g, const Tensor& x, Sums sums,
                         const SmallVector<GradientRoom, 3>& rooms) {
  const std::size_t n = g.size();
  Tensors inputs = {x};
  OpCall::Counts counts;
  for (const Tensor& t : g) {
    REDCO_CHECK(t.rank() == x.rank() && t.rank() >= 1,
                "[linear_weight_gradient] shapes do not match: {} and {}", describe(t), describe(x));
    inputs.push_back(t);
    counts.push_back(t.shape().back() * x.shape().back());
  }
  OpCall op("linear_weight_gradient", inputs, Accepts::activations());
  op.choose(counts, weight_gradient_strategies,
            {.attributes = {static_cast<i64>(sums), static_cast<i64>(n)}});
  constexpr WeightGradientInputs at;
  const Tensor& in = op.in(at.x);
  const bool bf16 = computed_type(in) == DType::bf16;
  const DType type = in.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensors gs = some_inputs(op, at.g(0), n);
  Tensors dw;
  for (std::size_t i = 0; i < n; ++i) {
    const Shape shape = {g[i].shape().back(), x.shape().back()};
    dw.push_back(rooms.empty() ? op.output(shape, type) : op.output(shape, type, rooms[i]));
    op.flops(2.0 * dw.back().local_numel() * as_matrix(in).shape[0]);
  }
  if (Context::current().has(&Kernels::linear_weight_gradients)) {
    const View rows = as_matrix(in);
    const Views of_g = matrices(gs), out = matrices(dw);
    const i64 room = op.kernels().linear_weight_gradients_workspace(bf16, of_g, rows, out);
    op.run(&Kernels::linear_weight_gradients, bf16, of_g, rows, out, OpCall::workspace(room, DType::f32));
  } else {
    for (std::size_t i = 0; i < n; ++i) Composed(op, dw[i]).add(gs[i], true, in, false);
  }
  // The cotangent of dW takes the role of the weight: it is stationary.
  op.record(inputs, [sums, n](const Vjp& v) {
    Tensors d(1 + n);
    for (std::size_t i = 0; i < n; ++i) {
      const int at = static_cast<int>(i);
      if (!v.g(at).defined()) continue;
      if (v.needs(0)) {
        const Tensor part = input_gradient({v.saved(1 + at)}, {v.g(at)}, sums);
        d[0] = d[0].defined() ? d[0] + part : part;
      }
      if (v.needs(1 + at))
        d[1 + i] = product(v.saved(0), {.w = {v.g(at)}, .bias = Tensors(1), .sums = sums})[0];
    }
    return d;
  });
  return dw;
}

// Biases with hidden dims, and weights with leading dims, are added and multiplied by other ops.
bool simple(const Tensor& w, const Tensor& bias) {
  return w.rank() == 2 && (!bias.defined() || bias.rank() == 1);
}

}  // namespace

Tensors linear(const Tensor& x, const Tensors& w, const Tensors& bias) {
  REDCO_CHECK(w.size() == bias.size(), "[linear] {} weights, {} biases", w.size(), bias.size());
  bool together = cut_alike(w);
  for (std::size_t i = 0; i < w.size(); ++i) together = together && simple(w[i], bias[i]);
  if (together) return product(x, {.w = w, .bias = bias});
  Tensors y;
  for (std::size_t i = 0; i < w.size(); ++i) y.push_back(linear(x, w[i], bias[i]));
  return y;
}
Tensor add_low_rank(const Tensor& y, const Tensor& x, const LowRank& u) {
  return y + linear_partial(scale(linear_partial(x, u.a), u.scale), u.b);
}
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias) {
  REDCO_CHECK(x.rank() >= 1 && w.visible() >= 2 && x.shape().back() == w.shape().back(),
              "[linear] shapes do not match: {} and {}", describe(x), describe(w));
  if (simple(w, bias)) return product(x, {.w = {w}, .bias = {bias}})[0];
  const Tensor y = w.rank() > 2 ? batched_linear(x, w) : product(x, {.w = {w}, .bias = Tensors(1)})[0];
  return bias.defined() ? add_bias(y, bias) : y;
}
Tensor linear_partial(const Tensor& x, const Tensor& w) {
  if (w.rank() > 2) return batched_linear(x, w);
  return product(x, {.w = {w}, .bias = Tensors(1), .sums = Sums::partial})[0];
}
Tensor linear_transposed(const Tensor& g, const Tensor& w) {
  return input_gradient({g}, {w}, Sums::cheapest);
}
Tensor linear_weight_gradient(const Tensor& g, const Tensor& x) {
  return weight_gradients({g}, x, Sums::cheapest)[0];
}

}  // namespace redco
