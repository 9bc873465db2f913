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

// partial: a Partial operand is never reduced, whatever it costs (linear_partial)
enum class Sums : std::uint8_t { cheapest, partial };

// The attributes of products with n weights: Sums, n.
Sums sums_of(const OpCall::Strategies& s) { return static_cast<Sums>(s.attribute(0)); }
int weights_of(const OpCall::Strategies& s) { return static_cast<int>(s.attribute(1)); }

using Placements = OpCall::Strategies::Placements;
Placements repeated(const Placement& p, int n) { return Placements(static_cast<std::size_t>(n), p); }
// The placements of inputs: one, then those of each further list.
Placements joined(const Placement& first, std::initializer_list<Placements> lists) {
  Placements all = {first};
  for (const Placements& l : lists)
    for (const Placement& p : l) all.push_back(p);
  return all;
}

// y_i[..., N_i] = x[..., K] w_i^T (+ b_i): inputs x, weights, biases (absent ones count). The weights are
// stationary, and have equal kinds of placements (cut_alike).
void linear_strategies(OpCall::Strategies& s) {
  const int n = weights_of(s), last = s.input(0).rank() - 1;
  const Placement x = s.in(0), w = s.in(1);
  const Placements all_R = repeated(R, n), all_P = repeated(P, n);
  if (sums_of(s) == Sums::partial && x.is_partial() && w.is_replicated())
    return s.add(joined(P, {all_R, all_P}), all_P);
  if (w.is_replicated()) {
    s.all_replicated(n);
    if (x.is_sharded() && x.dim < last) s.add(joined(x, {all_R, all_R}), repeated(x, n));
    if (x.is_partial()) s.add(joined(P, {all_R, all_P}), all_P);
    if (x.is_sharded(last)) s.add(joined(x, {repeated(Placement::sharded(1, x.unit), n), all_P}), all_P);
  } else if (w.is_sharded(0)) {
    Placements weights, biases, outputs;
    for (int i = 1; i <= n; ++i) {
      weights.push_back(s.in(i));
      biases.push_back(s.in(i));
      outputs.push_back(Placement::sharded(last, s.in(i).unit));
    }
    s.add(joined(R, {weights, biases}), outputs);
  } else if (w.is_sharded(1)) {
    s.add(joined(Placement::sharded(last, w.unit), {repeated(w, n), all_P}), all_P);
  } else if (w.is_partial()) {
    s.add(joined(R, {all_P, all_P}), all_P);
    s.all_replicated(n);
  }
}

// dx[..., K] = the sum over i of g_i[..., N_i] w_i: inputs g, then weights.
void input_gradient_strategies(OpCall::Strategies& s) {
  const int n = weights_of(s), last = s.input(0).rank() - 1;
  const Placement g = s.in(0), w = s.in(n);
  const auto inputs = [](const Placements& of_g, const Placements& of_w) {
    Placements all = of_g;
    for (const Placement& p : of_w) all.push_back(p);
    return all;
  };
  const Placements all_R = repeated(R, n), all_P = repeated(P, n);
  const bool some_partial = [&] {
    for (int i = 0; i < n; ++i)
      if (s.in(i).is_partial()) return true;
    return false;
  }();
  if (sums_of(s) == Sums::partial && some_partial && w.is_replicated())
    return s.add(inputs(all_P, all_R), {P});
  if (w.is_replicated()) {
    s.all_replicated();
    if (g.is_sharded() && g.dim < last) s.add(inputs(repeated(g, n), all_R), {g});
    if (some_partial) s.add(inputs(all_P, all_R), {P});
    if (g.is_sharded(last)) {
      Placements of_g, of_w;
      for (int i = 0; i < n; ++i) {
        const Placement p = s.in(i).is_sharded(last) ? s.in(i) : g;
        of_g.push_back(p);
        of_w.push_back(Placement::sharded(0, p.unit));
      }
      s.add(inputs(of_g, of_w), {P});
    }
  } else if (w.is_sharded(1)) {
    s.add(inputs(all_R, repeated(w, n)), {Placement::sharded(last, w.unit)});
  } else if (w.is_sharded(0)) {
    Placements of_g, of_w;
    for (int i = 0; i < n; ++i) {
      of_g.push_back(Placement::sharded(last, s.in(n + i).unit));
      of_w.push_back(s.in(n + i));
    }
    s.add(inputs(of_g, of_w), {P});
  } else if (w.is_partial()) {
    s.add(inputs(all_R, all_P), {P});
    s.all_replicated();
  }
}

// dW_i[N_i, K] = g_i^T x: inputs x, then g.
void weight_gradient_strategies(OpCall::Strategies& s) {
  const int n = weights_of(s), last = s.input(0).rank() - 1;
  const Placement x = s.in(0), g = s.in(1);
  const Placements all_R = repeated(R, n), all_P = repeated(P, n);
  bool g_partial = false;
  for (int i = 1; i <= n; ++i) g_partial = g_partial || s.in(i).is_partial();
  if (sums_of(s) == Sums::partial && x.is_partial() != g_partial && !x.is_sharded() && !g.is_sharded())
    return s.add(joined(x.is_partial() ? P : R, {g_partial ? all_P : all_R}), all_P);
  s.all_replicated(n);
  if (g.is_sharded(last)) {
    Placements of_g, out;
    for (int i = 1; i <= n; ++i) {
      const Placement p = s.in(i).is_sharded(last) ? s.in(i) : g;
      of_g.push_back(p);
      out.push_back(Placement::sharded(0, p.unit));
    }
    s.add(joined(R, {of_g}), out);
  }
  if (x.is_sharded(last)) s.add(joined(x, {all_R}), repeated(Placement::sharded(1, x.unit), n));
  for (const Placement& p : {g, x})
    if (p.is_sharded() && p.dim < last) s.add(joined(p, {repeated(p, n)}), all_P);
  if (g_partial) s.add(joined(R, {all_P}), all_P);
  if (x.is_partial()) s.add(joined(P, {all_R}), all_P);
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
Tensor input_gradient(const Tensors& g, const Tensors& w, Sums sums);
Tensors weight_gradients(const Tensors& g, const Tensor& x, Sums sums,
                         const SmallVector<GradientRoom, 3>& rooms = {});

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
  OpCall op("linear", inputs, accepts);
  op.choose(counts, linear_strategies,
            {.attributes = {static_cast<i64>(l.sums), l.count()}, .stationary = stationary});
  const Tensor& in = op.in(0);
  const DType type = computed_type(in);
  Tensors y;
  Shape shape = x.shape();
  for (const Tensor& w : l.w) {
    shape.back() = w.shape()[0];
    y.push_back(op.output(shape, type, x.hidden()));
    op.flops(2.0 * y.back().local_numel() * in.local().back());
  }
  const Tensors w = some_inputs(op, 1, n), bias = some_inputs(op, 1 + static_cast<int>(n), n);
  if (Context::current().has(&Kernels::linear)) {
    const bool bf16 = type == DType::bf16;
    const View rows = as_matrix(in);
    const Views out = matrices(y);
    Views weights, biases;
    for (const Tensor& t : w) weights.push_back(t);
    for (const Tensor& t : bias) biases.push_back(t);
    const i64 room = op.kernels().linear_workspace(bf16, rows, weights, out);
    op.run(&Kernels::linear, bf16, rows, weights, biases, out, OpCall::workspace(room, DType::f32));
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      Composed sum(op, y[i]);
      sum.add(in, false, w[i], true);
      if (bias[i].defined()) sum.add_bias(bias[i]);
      sum.finish();
    }
  }
  // Only the gradients of the weights need x.
  bool trained = false;
  for (const Tensor& t : l.w) trained = trained || t.node();
  Tensors saved = {trained ? x : Tensor()};
  for (const Tensor& t : l.w) saved.push_back(t);
  op.record(std::move(saved), [sums = l.sums, n](const Vjp& v) {
    Tensors d(1 + 2 * n), gs, ws, of_weights;
    SmallVector<GradientRoom, 3> rooms;
    SmallVector<std::size_t, 3> wanted;
    for (std::size_t i = 0; i < n; ++i) {
      const int at = static_cast<int>(i);
      if (!v.g(at).defined()) continue;
      const Tensor& w = v.saved(1 + at);
      const Tensor g = with_all_rows(v.g(at), w);
      gs.push_back(g);
      ws.push_back(w);
      if (const int b = 1 + at + static_cast<int>(n); v.needs(b))
        d[b] = sum_to(v.g(at), {w.shape()[0]}, 0, v.room(b));
      if (!v.needs(1 + at)) continue;
      if (auto* factors = v.factors(1 + at)) {
        factors->push_back({g, v.saved(0)});
      } else {
        wanted.push_back(i);
        of_weights.push_back(g);
        rooms.push_back(v.room(1 + at));
      }
    }
    if (!wanted.empty()) {
      const Tensors dw = weight_gradients(of_weights, v.saved(0), sums, rooms);
      for (std::size_t i = 0; i < wanted.size(); ++i) d[1 + wanted[i]] = dw[i];
    }
    if (v.needs(0) && !gs.empty()) d[0] = input_gradient(gs, ws, sums);
    return d;
  });
  return y;
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
  OpCall op("linear_input_gradient", inputs, accepts);
  op.choose({numel(shape)}, input_gradient_strategies,
            {.attributes = {static_cast<i64>(sums), static_cast<i64>(n)}, .stationary = stationary});
  const DType type = computed_type(op.in(0));
  Tensor dx = op.output(shape, type, g[0].hidden());
  const Tensors gs = some_inputs(op, 0, n);
  const Tensors ws = some_inputs(op, static_cast<int>(n), n);
  for (const Tensor& t : gs) op.flops(2.0 * dx.local_numel() * t.local().back());
  if (Context::current().has(&Kernels::linear_input_gradient)) {
    const bool bf16 = type == DType::bf16;
    const Views of_g = matrices(gs), of_w = matrices(ws);
    const View out = as_matrix(dx);
    const i64 room = op.kernels().linear_input_gradient_workspace(bf16, of_g, of_w, out);
    op.run(&Kernels::linear_input_gradient, bf16, of_g, of_w, out, OpCall::workspace(room, DType::f32));
  } else {
    Composed sum(op, dx);
    for (std::size_t i = 0; i < n; ++i) sum.add(gs[i], false, ws[i], false);
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
  const Tensor& in = op.in(0);
  const bool bf16 = computed_type(in) == DType::bf16;
  const DType type = in.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensors gs = some_inputs(op, 1, n);
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
  op.flops(2.0 * y.local_numel() * op.in(0).local()[ak]);
  op.run(&Kernels::matmul, broadcast_view(op.in(0), bd, y, 2), trans_a, broadcast_view(op.in(1), bd, y, 2),
         trans_b, y);
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
