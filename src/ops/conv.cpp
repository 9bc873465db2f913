// Legend: L leading dims, B images, C input channels, O output channels, H x W pixels, kh x kw kernel
// elements.
#include "ops/conv.h"

#include <algorithm>
#include <array>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

// Dims of a plane (B, C, H, W; O, C, kh, kw); a third operand, the bias, has one dim.
constexpr std::array<int, 3> kTrailing = {4, 4, 1};

// The leading dims: those before the planes.
Broadcast leading_dims(const char* op, const Tensors& operands) {
  return broadcast_shapes(op, operands, kTrailing);
}

// The number of blocks of planes in the local part of y.
i64 groups_of(const Broadcast& lead, const Tensor& y) {
  i64 n = 1;
  for (int D = 0; D < lead.size(); ++D) n *= y.local()[D];
  return n;
}

// A dim of a bilinear op: its index in the two factors, in the tensor added to the product, and in the
// output; -1 where it does not occur (in the output: it is summed over).
struct Letter {
  int a = -1, b = -1, added = -1, out = -1;
};

// Each dim may be cut equally wherever it occurs; cutting a dim that is summed over gives a Partial. Input 2,
// if there is one, is the tensor added.
void bilinear_strategies(OpCall::Strategies& s, const std::vector<Letter>& letters) {
  using Placements = OpCall::Strategies::Placements;
  const auto R = Placement::replicated(), P = Placement::partial();
  const auto add = [&](const Placement& a, const Placement& b, const Placement& added, const Placement& out) {
    s.add(s.inputs() > 2 ? Placements{a, b, added} : Placements{a, b}, {out});
  };
  s.all_replicated();
  const Placement p = s.in(0), q = s.in(1);
  for (const Letter& l : letters) {
    const auto cut = [&](i64 unit) {
      const auto at = [&](int d) { return d >= 0 ? Placement::sharded(d, unit) : R; };
      add(at(l.a), at(l.b), l.out >= 0 ? at(l.added) : P, l.out >= 0 ? at(l.out) : P);
    };
    if (l.a >= 0 && p.is_sharded(l.a)) cut(p.unit);
    if (l.b >= 0 && q.is_sharded(l.b)) cut(q.unit);
  }
  if (p.is_partial()) add(P, R, P, P);
  if (q.is_partial()) add(R, P, P, P);
}

std::vector<Letter> leading_letters(const Broadcast& l, const OpCall::Strategies& s) {
  std::vector<Letter> out;
  for (int D = 0; D < l.size(); ++D) {
    const auto own = [&](int i) { return i < s.inputs() ? own_dim(s.input(i), l, D, kTrailing[i]) : -1; };
    out.push_back({own(0), own(1), own(2), D});
  }
  return out;
}

constexpr std::initializer_list<int> kNone = {}, kWeight = {1};

// A weight (input 1) without leading dims is stationary, unless it is cut along kernel height or width.
std::initializer_list<int> stationary(const Tensor& w) {
  for (Axis a : Context::current().mesh().axes())
    if (w.layout()[a].is_sharded() && w.layout()[a].dim > 1) return kNone;
  return w.rank() == 4 ? kWeight : kNone;
}

Shape with_leading(const Broadcast& l, const Shape& rest) {
  Shape s = l.shape;
  s.insert(s.end(), rest.begin(), rest.end());
  return s;
}

i64 out_size(i64 size, i64 kernel, i64 stride, i64 padding) {
  return size + 2 * padding < kernel ? 0 : (size + 2 * padding - kernel) / stride + 1;
}

// The local problem, with the channels of this rank.
kernels::ConvShape conv_shape(i64 channels, i64 height, i64 width, i64 outputs, i64 kh, i64 kw,
                              const Conv2dOptions& o) {
  return {channels, height, width, outputs, kh, kw, o.stride, o.padding};
}

double conv_flops(const kernels::ConvShape& s, i64 groups, i64 images) {
  return 2.0 * static_cast<double>(groups) * static_cast<double>(images) *
         static_cast<double>(s.taps() * s.out_image());
}

void conv2d_strategies(OpCall::Strategies& s) {
  const Broadcast lead = leading_dims("conv2d", s.all_inputs());
  const int n = lead.size(), xd = s.input(0).rank() - 4, wd = s.input(1).rank() - 4;
  std::vector<Letter> letters = leading_letters(lead, s);
  letters.push_back({xd, -1, -1, n});                                               // B
  letters.push_back({-1, wd, s.inputs() > 2 ? s.input(2).rank() - 1 : -1, n + 1});  // O
  letters.push_back({xd + 1, wd + 1, -1, -1});                                      // C
  bilinear_strategies(s, letters);
}

void conv2d_input_gradient_strategies(OpCall::Strategies& s) {
  const Broadcast lead = leading_dims("conv2d_input_gradient", s.all_inputs());
  const int n = lead.size(), gd = s.input(0).rank() - 4, wd = s.input(1).rank() - 4;
  std::vector<Letter> letters = leading_letters(lead, s);
  letters.push_back({gd, -1, -1, n});          // B
  letters.push_back({-1, wd + 1, -1, n + 1});  // C
  letters.push_back({gd + 1, wd, -1, -1});     // O
  bilinear_strategies(s, letters);
}

void conv2d_weight_gradient_strategies(OpCall::Strategies& s) {
  const Broadcast lead = leading_dims("conv2d_weight_gradient", s.all_inputs());
  const int n = lead.size(), gd = s.input(0).rank() - 4, xd = s.input(1).rank() - 4;
  std::vector<Letter> letters = leading_letters(lead, s);
  letters.push_back({gd + 1, -1, -1, n});      // O
  letters.push_back({-1, xd + 1, -1, n + 1});  // C
  letters.push_back({gd, xd, -1, -1});         // B
  bilinear_strategies(s, letters);
}

Tensor run_conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& o) {
  const Tensors operands = bias.defined() ? Tensors{x, w, bias} : Tensors{x, w};
  const Broadcast lead = leading_dims("conv2d", operands);
  const i64 kh = w.size(-2), kw = w.size(-1), H = x.size(-2), W = x.size(-1);
  REDCO_CHECK(
      x.size(-3) == w.size(-3) && (!bias.defined() || bias.size(-1) == w.size(-4)) && kh > 0 && kw > 0,
      "[conv2d] shapes do not match: {} and {}", describe(x), describe(w));
  REDCO_CHECK(o.stride[0] > 0 && o.stride[1] > 0 && o.padding[0] >= 0 && o.padding[1] >= 0,
              "[conv2d] stride must be >= 1 and padding >= 0, not stride {} x {}, padding {} x {}",
              o.stride[0], o.stride[1], o.padding[0], o.padding[1]);
  REDCO_CHECK(H + 2 * o.padding[0] >= kh && W + 2 * o.padding[1] >= kw,
              "[conv2d] the kernel {} is larger than the padded images {}", describe(w), describe(x));
  const Shape shape = with_leading(lead, {x.size(-4), w.size(-4), out_size(H, kh, o.stride[0], o.padding[0]),
                                          out_size(W, kw, o.stride[1], o.padding[1])});
  const int xd = x.rank() - 4, wd = w.rank() - 4;
  OpCall op("conv2d", operands);
  op.choose({numel(shape)}, conv2d_strategies, {.stationary = stationary(w)});
  Tensor y = op.output(shape, x.dtype(), lead.hidden);
  const Tensor &a = op.in(0), &b = op.in(1);
  const kernels::ConvShape s = conv_shape(a.local()[xd + 1], H, W, b.local()[wd], kh, kw, o);
  const i64 groups = groups_of(lead, y), images = a.local()[xd];
  op.flops(conv_flops(s, groups, images));
  op.run(&Kernels::conv2d, s, broadcast_view(a, lead, y, 4), broadcast_view(b, lead, y, 4),
         bias.defined() ? broadcast_view(op.in(2), lead, y, 1) : View(), y,
         OpCall::workspace(op.kernels().conv2d_workspace(s, groups, images), x.dtype()));
  Tensors saved = {w.node() ? x : Tensor(), x.node() ? w : Tensor()};
  struct Like {
    Shape shape;
    int hidden;
  };
  SmallVector<Like, 3> like = {{x.shape(), x.hidden()}, {w.shape(), w.hidden()}};
  if (bias.defined()) like.push_back({bias.shape(), bias.hidden()});
  op.record(std::move(saved), [o, H, W, kh, kw, like](const Vjp& v) {
    const Tensor& g = v.g();
    Tensors d(like.size());
    if (v.needs(0)) d[0] = conv2d_input_gradient(g, v.saved(1), H, W, o);
    if (v.needs(1)) d[1] = conv2d_weight_gradient(g, v.saved(0), kh, kw, o);
    if (like.size() > 2 && v.needs(2)) d[2] = sum(g, {-4, -2, -1});
    for (size_t i = 0; i < d.size(); ++i)
      if (d[i].defined()) d[i] = sum_to(d[i], like[i].shape, like[i].hidden);
    return d;
  });
  return y;
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& o) {
  const auto leading = [](const Tensor& t, int trailing) {
    return Shape(t.shape().begin(), t.shape().end() - std::min(trailing, t.rank()));
  };
  // A bias with other leading dims than the weight is added afterwards.
  if (bias.defined() && (bias.hidden() != w.hidden() || leading(bias, 1) != leading(w, 4))) {
    Shape shape(bias.shape().begin() + bias.hidden(), bias.shape().end());
    shape.insert(shape.end() - 1, 1);
    shape.push_back(1);
    shape.push_back(1);
    return conv2d(x, w, {}, o) + reshape(bias, shape);
  }
  // A shared weight: all leading dims of x are folded into the images.
  if (w.rank() == 4 && w.hidden() == 0 && x.rank() > 4) {
    Shape images = {1, x.size(-3), x.size(-2), x.size(-1)};
    Shape back = leading(x, 3);
    for (const i64 n : back) images[0] *= n;
    const Tensor y = run_conv2d(reshape_all(x, images, 0), w, bias, o);
    back.insert(back.end(), y.shape().begin() + 1, y.shape().end());
    return reshape_all(y, back, x.hidden());
  }
  return run_conv2d(x, w, bias, o);
}

Tensor conv2d_input_gradient(const Tensor& g, const Tensor& w, i64 height, i64 width,
                             const Conv2dOptions& o) {
  const Broadcast lead = leading_dims("conv2d_input_gradient", {g, w});
  REDCO_CHECK(g.size(-3) == w.size(-4), "[conv2d_input_gradient] channels do not match: {} and {}",
              describe(g), describe(w));
  const Shape shape = with_leading(lead, {g.size(-4), w.size(-3), height, width});
  const int gd = g.rank() - 4, wd = w.rank() - 4;
  const i64 kh = w.size(-2), kw = w.size(-1);
  OpCall op("conv2d_input_gradient", {g, w});
  op.choose({numel(shape)}, conv2d_input_gradient_strategies, {.stationary = stationary(w)});
  Tensor y = op.output(shape, g.dtype(), lead.hidden);
  const Tensor &a = op.in(0), &b = op.in(1);
  const kernels::ConvShape s = conv_shape(b.local()[wd + 1], height, width, b.local()[wd], kh, kw, o);
  const i64 groups = groups_of(lead, y);
  op.flops(conv_flops(s, groups, a.local()[gd]));
  const Tensor room =
      OpCall::workspace(op.kernels().conv2d_input_gradient_workspace(s, groups, a.local()[gd]), g.dtype());
  op.run(&Kernels::conv2d_input_gradient, s, broadcast_view(a, lead, y, 4), broadcast_view(b, lead, y, 4), y,
         room);
  op.record({g, w},
            [o, kh, kw, gs = g.shape(), gh = g.hidden(), ws = w.shape(), wh = w.hidden()](const Vjp& v) {
              Tensors d(2);
              if (v.needs(0)) d[0] = sum_to(conv2d(v.g(), v.saved(1), {}, o), gs, gh);
              if (v.needs(1)) d[1] = sum_to(conv2d_weight_gradient(v.saved(0), v.g(), kh, kw, o), ws, wh);
              return d;
            });
  return y;
}

Tensor conv2d_weight_gradient(const Tensor& g, const Tensor& x, i64 kh, i64 kw, const Conv2dOptions& o) {
  const Broadcast lead = leading_dims("conv2d_weight_gradient", {g, x});
  REDCO_CHECK(g.size(-4) == x.size(-4), "[conv2d_weight_gradient] numbers of images do not match: {} and {}",
              describe(g), describe(x));
  const Shape shape = with_leading(lead, {g.size(-3), x.size(-3), kh, kw});
  const int gd = g.rank() - 4, xd = x.rank() - 4;
  const i64 H = x.size(-2), W = x.size(-1);
  OpCall op("conv2d_weight_gradient", {g, x});
  op.choose({numel(shape)}, conv2d_weight_gradient_strategies);
  Tensor y = op.output(shape, g.dtype(), lead.hidden);
  const Tensor &a = op.in(0), &b = op.in(1);
  const kernels::ConvShape s = conv_shape(b.local()[xd + 1], H, W, a.local()[gd + 1], kh, kw, o);
  const i64 groups = groups_of(lead, y);
  op.flops(conv_flops(s, groups, a.local()[gd]));
  const Tensor room =
      OpCall::workspace(op.kernels().conv2d_weight_gradient_workspace(s, groups, a.local()[gd]), g.dtype());
  op.run(&Kernels::conv2d_weight_gradient, s, broadcast_view(a, lead, y, 4), broadcast_view(b, lead, y, 4), y,
         room);
  op.record({g, x},
            [o, H, W, gs = g.shape(), gh = g.hidden(), xs = x.shape(), xh = x.hidden()](const Vjp& v) {
              Tensors d(2);
              if (v.needs(0)) d[0] = sum_to(conv2d(v.saved(1), v.g(), {}, o), gs, gh);
              if (v.needs(1)) d[1] = sum_to(conv2d_input_gradient(v.saved(0), v.g(), H, W, o), xs, xh);
              return d;
            });
  return y;
}

namespace {

kernels::PoolShape pool_shape(const char* op, const Shape& pixels, const Pool2dOptions& o) {
  REDCO_CHECK(pixels.size() >= 2, "[{}] at least two dims are needed, not {}", op, to_string(pixels));
  const kernels::PoolShape s{pixels[pixels.size() - 2], pixels.back(), o.kernel, o.stride, o.padding};
  for (int i : {0, 1})
    REDCO_CHECK(o.kernel[i] > 0 && o.stride[i] > 0 && o.padding[i] >= 0 && 2 * o.padding[i] <= o.kernel[i] &&
                    (i == 0 ? s.height : s.width) + 2 * o.padding[i] >= o.kernel[i],
                "[{}] kernel {}, stride {}, padding {} do not fit {}", op, o.kernel[i], o.stride[i],
                o.padding[i], to_string(pixels));
  return s;
}

Shape with_pixels(Shape shape, i64 height, i64 width) {
  shape[shape.size() - 2] = height;
  shape.back() = width;
  return shape;
}

// For ops that are linear in input 0 within each plane; input 1 selects the pixels.
void plane_strategies(OpCall::Strategies& s) {
  const auto R = Placement::replicated(), P = Placement::partial();
  s.all_replicated();
  for (int i : {0, 1})
    if (s.in(i).is_sharded() && s.in(i).dim < s.input(0).rank() - 2) s.add({s.in(i), s.in(i)}, {s.in(i)});
  if (s.in(0).is_partial()) s.add({P, R}, {P});
}

// The mean over windows of x, or its transpose if `spread`, to `shape`. Uses only pixels whose gate is above
// 0 (all if undefined). Linear in x; its derivative by the gate is 0 almost everywhere.
Tensor mean_windows(const Tensor& x, const Tensor& gate, const Shape& shape, const kernels::PoolShape& s,
                    bool spread) {
  OpCall op(spread ? "avg_unpool2d" : "avg_pool2d", {x, gate});
  op.choose({numel(shape)}, plane_strategies);
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  op.flops(static_cast<double>(std::max(op.in(0).local_numel(), y.local_numel())));
  op.run(spread ? &Kernels::avg_unpool2d : &Kernels::avg_pool2d, s, op.in(0), op.in(1), y);
  op.record({gate}, [s, spread, back = x.shape()](const Vjp& v) {
    Tensors d(2);
    if (v.needs(0)) d[0] = mean_windows(v.g(), v.saved(0), back, s, !spread);
    return d;
  });
  return y;
}

// y[..., windows] = x[..., pixels from], or its transpose.
Tensor move_windows(const Tensor& x, const Tensor& from, const Shape& shape, bool take) {
  OpCall op(take ? "take_windows" : "put_windows", {x, from});
  op.choose({numel(shape)}, plane_strategies);
  Tensor y = op.output(shape, x.dtype(), x.hidden());
  op.flops(static_cast<double>(y.local_numel()));
  op.run(take ? &Kernels::take_windows : &Kernels::put_windows, op.in(0), op.in(1), y);
  op.record({from}, [take, back = x.shape()](const Vjp& v) {
    return Tensors{move_windows(v.g(), v.saved(0), back, !take), {}};
  });
  return y;
}

}  // namespace

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& o) {
  const kernels::PoolShape s = pool_shape("avg_pool2d", x.shape(), o);
  return mean_windows(x, {}, with_pixels(x.shape(), s.out_height(), s.out_width()), s, false);
}

Tensor relu_avg_pool2d(const Tensor& x, const Pool2dOptions& o) {
  const kernels::PoolShape s = pool_shape("relu_avg_pool2d", x.shape(), o);
  return mean_windows(x, x, with_pixels(x.shape(), s.out_height(), s.out_width()), s, false);
}

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& o) {
  const kernels::PoolShape s = pool_shape("max_pool2d", x.shape(), o);
  const Shape shape = with_pixels(x.shape(), s.out_height(), s.out_width());
  OpCall op("max_pool2d", {x});
  op.choose({numel(shape), 0}, [](OpCall::Strategies& s) {
    const Placement p = s.in(0);
    if (p.is_partial() || (p.is_sharded() && p.dim >= s.input(0).rank() - 2)) {
      s.all_replicated(2);
    } else {
      s.add({p}, {p, p}, p.is_replicated());
    }
  });
  Tensor y = op.output(shape, x.dtype(), x.hidden()), from = op.output(shape, DType::i32, x.hidden());
  op.flops(static_cast<double>(op.in(0).local_numel()));
  op.run(&Kernels::max_pool2d, s, op.in(0), y, from);
  op.record({from}, [shape = x.shape()](const Vjp& v) {
    return Tensors{move_windows(v.g(), v.saved(0), shape, false)};
  });
  return y;
}

Tensor upsample(const Tensor& x, i64 rows, i64 columns) {
  REDCO_CHECK(x.visible() >= 2 && rows >= 1 && columns >= 1, "[upsample] {} by {} x {}", describe(x), rows,
              columns);
  const Shape shape(x.shape().begin() + x.hidden(), x.shape().end());
  const i64 H = x.size(-2), W = x.size(-1);
  Shape apart(shape.begin(), shape.end() - 2);
  Shape repeated = apart, out = apart;
  for (const i64 n : {H, i64{1}, W, i64{1}}) apart.push_back(n);
  for (const i64 n : {H, rows, W, columns}) repeated.push_back(n);
  for (const i64 n : {H * rows, W * columns}) out.push_back(n);
  return reshape(broadcast_to(reshape(x, apart), repeated), out);
}

}  // namespace redco
