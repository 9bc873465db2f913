// Legend: B batch, Tq/Tk queries/keys, H heads, Hkv key/value heads, D head width.
#include "ops/attention.h"

#include <algorithm>

#include "kernels/philox.h"
#include "ops/broadcast.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/placement_names.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"

namespace redco {

namespace {

// Cuts along heads of q and of k, v must match: a k/v unit of u heads needs a q unit of u * H / Hkv heads.
struct HeadCut {
  Placement q, kv, rows_bias;
};

// Inputs 0 and 1 are q and k.
std::vector<HeadCut> head_cuts(OpCall::Strategies& s, std::initializer_list<int> q_like,
                               std::initializer_list<int> kv_like) {
  const i64 ratio = s.input(0).shape()[2] / std::max<i64>(1, s.input(1).shape()[2]);
  std::vector<i64> units;
  for (int i : q_like)
    if (s.in(i).is_sharded(2)) units.push_back(ceil_div(s.in(i).unit, ratio));
  for (int i : kv_like)
    if (s.in(i).is_sharded(2)) units.push_back(s.in(i).unit);
  std::vector<HeadCut> out;
  for (size_t i = 0; i < units.size(); ++i)
    if (std::find(units.begin(), units.begin() + i, units[i]) == units.begin() + i)
      out.push_back({Placement::sharded(2, units[i] * ratio), Placement::sharded(2, units[i]),
                     Placement::sharded(1, units[i] * ratio)});
  return out;
}

// The placement along the batch of the first input that is cut there.
bool batch_cut(OpCall::Strategies& s, int inputs, Placement* p) {
  for (int i = 0; i < inputs; ++i)
    if (s.in(i).is_sharded(0)) {
      *p = s.in(i);
      return true;
    }
  return false;
}

// For the local blocks of q and of `keys` tokens.
kernels::Attention settings_of(const AttentionOptions& o, const Tensor& q, i64 keys) {
  return {.keys = keys,
          .scale = o.scale,
          .softcap = o.softcap,
          .causal = o.causal,
          .window = o.window,
          .ahead = o.ahead,
          .segmented = o.segmented,
          .dropout = o.dropout,
          .dropout_key = o.dropout_key,
          .batch_offset = q.range(0).begin + Context::current().random.row_offset,
          .head_offset = q.range(2).begin,
          .slopes = o.slopes};
}

double flops_of(const Tensor& q, const kernels::Attention& a) {
  const double share = a.causal && q.local()[1] == a.keys ? 0.5 : 1.0;
  return 4.0 * static_cast<double>(q.local_numel()) * static_cast<double>(a.keys) * share;
}

// Whether input i is a bias, or sinks, that all examples share.
bool is_shared(const OpCall::Strategies& s, int i) {
  return s.input(i).defined() && s.input(i).shape()[0] == 1;
}

Tensors attention_backward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                           const Tensor& lse, const Tensor& g, const AttentionOptions& o,
                           const Tensor& key_mask, const Tensor& bias, const Tensor& sinks) {
  const bool all_bf16 = q.dtype() == DType::bf16 && g.dtype() == DType::bf16;
  OpCall op("attention_backward", {q, k, v, out, lse, g, key_mask, bias, sinks},
            all_bf16 ? Accepts::activations() : Accepts());
  op.choose({q.numel(), k.numel(), v.numel(), bias.defined() ? bias.numel() : 0}, [](OpCall::Strategies& s) {
    const bool shared_bias = is_shared(s, 7), shared_sinks = is_shared(s, 8);
    s.all_replicated(4);
    Placement p;
    if (batch_cut(s, 6, &p))
      s.add({p, p, p, p, p, p, p, shared_bias ? R_ : p, shared_sinks ? R_ : p},
            {p, p, p, shared_bias ? Placement::partial() : p});
    for (const HeadCut& c : head_cuts(s, {0, 3, 5}, {1, 2}))
      s.add({c.q, c.kv, c.kv, c.q, c.rows_bias, c.q, R_, c.rows_bias, c.rows_bias},
            {c.q, c.kv, c.kv, c.rows_bias});
  });
  Tensor dq = op.output(q.shape(), q.dtype()), dk = op.output(k.shape(), k.dtype()),
         dv = op.output(v.shape(), v.dtype());
  const DType type = sum_type(q.dtype());
  Tensor db = op.output(bias.defined() ? bias.shape() : Shape{0, 0, 0, 0}, type);
  const kernels::Attention a = settings_of(o, op.in(0), k.shape()[1]);
  op.flops(2.5 * flops_of(op.in(0), a));
  const Tensor room =
      OpCall::workspace(op.kernels().attention_backward_workspace(a, op.in(0), op.in(1)), type);
  op.run(&Kernels::attention_backward, a, op.in(0), op.in(1), op.in(2), op.in(3), op.in(4), op.in(5),
         op.in(6), op.in(7), op.in(8), dq, dk, dv, bias.defined() ? db.view() : View(), room);
  op.no_gradient();
  return {dq, dk, dv, bias.defined() ? db : Tensor()};
}

// The gradient of the sinks [1 or B, H]: -p delta, summed over the queries, with p the sink's probability and
// delta = sum_d(g out), because the sink has no value.
Tensor sinks_gradient(const Tensor& sinks, const Tensor& out, const Tensor& lse, const Tensor& g) {
  const Tensor delta = permute(sum(to_sum_type(g) * to_sum_type(out), {-1}), {0, 2, 1});  // [B, H, Tq]
  const Tensor p = exp(reshape(sinks, {sinks.size(0), sinks.size(1), 1}) - lse);
  const Tensor d = scale(sum(p * delta, {2}), -1);
  return sinks.size(0) == 1 ? sum(d, {0}, true) : d;
}

// Turns hidden dims into batch dims: each operand is broadcast and reshaped to [hidden * B, ...].
class Fold {
 public:
  Fold(std::initializer_list<Tensor> operands, i64 batch) : batch_(batch) {
    if (std::none_of(operands.begin(), operands.end(),
                     [](const Tensor& t) { return t.defined() && t.hidden() > 0; }))
      return;
    Tensors given;
    SmallVector<int, 6> trailing;
    for (const Tensor& t : operands) {
      if (!t.defined()) continue;
      given.push_back(t);
      trailing.push_back(t.visible());
    }
    hidden_ = broadcast_shapes("attention", given, trailing).shape;
  }
  bool needed() const { return !hidden_.empty(); }
  Tensor in(const Tensor& t) const {
    if (!t.defined() || (t.hidden() == 0 && t.shape()[0] == 1 && batch_ != 1))
      return t;  // broadcast over the batch
    const int h = static_cast<int>(hidden_.size());
    Shape own = t.shape(), full = hidden_, folded = {numel(hidden_) * batch_};
    own.insert(own.begin() + t.hidden(), h - t.hidden(), 1);
    full.push_back(batch_);
    full.insert(full.end(), own.begin() + h + 1, own.end());
    folded.insert(folded.end(), own.begin() + h + 1, own.end());
    return reshape_all(broadcast_to(reshape_all(t, own, h), full, Layout{}), folded, 0);
  }
  Tensor out(const Tensor& t) const {
    Shape full = hidden_;
    full.push_back(batch_);
    full.insert(full.end(), t.shape().begin() + 1, t.shape().end());
    return reshape_all(t, full, static_cast<int>(hidden_.size()));
  }

 private:
  Shape hidden_;
  i64 batch_;
};

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                 const Tensor& mask, const Tensor& bias, const Tensor& sinks) {
  REDCO_CHECK(q.visible() == 4 && k.visible() == 4 && k.shape() == v.shape() &&
                  sum_type(k.dtype()) == sum_type(v.dtype()) && k.size(2) > 0 && q.size(2) % k.size(2) == 0 &&
                  q.size(0) == k.size(0) && q.size(3) == k.size(3) && o.kv_length <= k.size(1),
              "[attention] q {}, k {} and v {} with {} keys do not match", describe(q), describe(k),
              describe(v), o.kv_length);
  if (k.dtype() != v.dtype()) return attention(q, to_sum_type(k), to_sum_type(v), o, mask, bias, sinks);
  if (const Fold fold({q, k, v, mask, bias, sinks}, q.size(0)); fold.needed())
    return fold.out(
        attention(fold.in(q), fold.in(k), fold.in(v), o, fold.in(mask), fold.in(bias), fold.in(sinks)));
  const i64 keys = o.kv_length >= 0 ? o.kv_length : k.size(1);
  REDCO_CHECK(
      !mask.defined() || (mask.dtype() == DType::i32 && mask.rank() == 2 && mask.size(0) == q.size(0) &&
                          mask.size(1) >= keys && mask.size(1) <= k.size(1)),
      "[attention] mask {} does not match {} keys of {}", describe(mask), keys, describe(k));
  REDCO_CHECK(!o.segmented || (mask.defined() && q.size(1) <= keys),
              "[attention] {} queries do not match the segmented mask {}", q.size(1), describe(mask));
  REDCO_CHECK(
      !bias.defined() || (bias.rank() == 4 && (bias.size(0) == 1 || bias.size(0) == q.size(0)) &&
                          bias.size(1) == q.size(2) && bias.size(2) == q.size(1) && bias.size(3) == keys),
      "[attention] bias {} does not match q {} and {} keys", describe(bias), describe(q), keys);
  REDCO_CHECK(!sinks.defined() || (sinks.rank() == 2 && (sinks.size(0) == 1 || sinks.size(0) == q.size(0)) &&
                                   sinks.size(1) == q.size(2)),
              "[attention] sinks {} do not match q {}", describe(sinks), describe(q));
  REDCO_CHECK(!o.slopes || static_cast<i64>(o.slopes->size()) == q.size(2),
              "[attention] {} slopes do not match q {}", o.slopes ? o.slopes->size() : 0, describe(q));
  const Tensor key_mask = mask.defined() ? narrow(mask, 1, 0, keys) : mask;
  const bool fused = !(o.softcap > 0 && bias.defined());
  if (!may_fuse(&Kernels::attention) || !fused) return attention_composed(q, k, v, o, key_mask, bias, sinks);
  // One query reads a cache, whose type is its own.
  const bool all_bf16 = q.dtype() == DType::bf16 && k.dtype() == DType::bf16 && q.size(1) > 1;
  OpCall op("attention", {q, k, v, key_mask, bias, sinks}, all_bf16 ? Accepts::activations() : Accepts{1, 2});
  op.choose({q.numel(), q.numel() / std::max<i64>(1, q.shape()[3])}, [](OpCall::Strategies& s) {
    const bool shared_bias = is_shared(s, 4), shared_sinks = is_shared(s, 5);
    s.all_replicated(2);
    Placement p;
    if (batch_cut(s, 4, &p)) s.add({p, p, p, p, shared_bias ? R_ : p, shared_sinks ? R_ : p}, {p, p});
    for (const HeadCut& c : head_cuts(s, {0}, {1, 2}))
      s.add({c.q, c.kv, c.kv, R_, c.rows_bias, c.rows_bias}, {c.q, c.rows_bias});
  });
  Tensor out = op.output(q.shape(), q.dtype());
  const DType type = sum_type(q.dtype());
  Tensor lse = op.output({q.shape()[0], q.shape()[2], q.shape()[1]}, type);
  const kernels::Attention a = settings_of(o, op.in(0), keys);
  op.flops(flops_of(op.in(0), a));
  const Tensor room = OpCall::workspace(op.kernels().attention_workspace(a, op.in(0), op.in(1)), type);
  op.run(&Kernels::attention, a, op.in(0), op.in(1), op.in(2), op.in(3), op.in(4), op.in(5), out, lse, room);
  op.record({op.in(0), op.in(1), op.in(2), out, lse, key_mask, bias, sinks},
            [o, row_offset = Context::current().random.row_offset](const Vjp& v) -> Tensors {
              const Tensor mask = v.saved(5), bias = v.saved(6), sinks = v.saved(7);
              Restore<i64> same_draws(Context::current().random.row_offset, row_offset);
              if (v.create_graph())
                return composed_vjp(
                    v, {v.saved(0), v.saved(1), v.saved(2), mask, bias, sinks}, [o](const Tensors& in) {
                      return Tensors{attention_composed(in[0], in[1], in[2], o, in[3], in[4], in[5])};
                    });
              REDCO_CHECK(o.kv_length < 0, "[attention] a cache has no gradient");
              auto d = attention_backward(v.saved(0), v.saved(1), v.saved(2), v.saved(3), v.saved(4), v.g(),
                                          o, mask, bias, sinks);
              return {
                  d[0], d[1],
                  d[2], {},
                  d[3], sinks.defined() ? sinks_gradient(sinks, v.saved(3), v.saved(4), v.g()) : Tensor()};
            });
  return out;
}

namespace {

// 0 where a query attends to a key, -inf elsewhere: [1 or B, 1, 1, Tq, Tk].
Tensor visibility(i64 Tq, i64 Tk, const AttentionOptions& o, const Tensor& key_mask, DType dtype) {
  std::vector<double> by_place(Tq * Tk);
  for (i64 i = 0; i < Tq; ++i)
    for (i64 j = 0; j < Tk; ++j) {
      const i64 at = i + Tk - Tq;
      by_place[i * Tk + j] =
          (o.causal && j > at) || (o.ahead >= 0 && j > at + o.ahead) || (o.window > 0 && j <= at - o.window)
              ? 0
              : 1;
    }
  Tensor sees = cast(from_values({1, 1, 1, Tq, Tk}, std::span<const double>(by_place), {}), dtype);
  if (key_mask.defined()) {
    const Tensor mask = reshape(cast(key_mask, dtype), {key_mask.shape()[0], 1, 1, 1, Tk});
    const Tensor hidden = compare(Binary::eq, mask, zeros({}, dtype, {}));
    sees = sees * add_scalar(scale(hidden, -1), 1);
    if (o.segmented) sees = sees * compare(Binary::eq, mask, narrow(transpose(mask, -1, -2), 3, Tk - Tq, Tq));
  }
  return log(sees);
}

// The scores that ALiBi adds: [1, Hkv, G, Tq, Tk].
Tensor alibi(const AttentionOptions& o, i64 Hkv, i64 G, i64 Tq, i64 Tk, DType dtype) {
  std::vector<double> values;
  values.reserve(Hkv * G * Tq * Tk);
  for (i64 h = 0; h < Hkv * G; ++h)
    for (i64 i = 0; i < Tq; ++i)
      for (i64 j = 0; j < Tk; ++j)
        values.push_back(static_cast<double>((*o.slopes)[h]) * static_cast<double>(j - (i + Tk - Tq)));
  return cast(from_values({1, Hkv, G, Tq, Tk}, std::span<const double>(values), {}), dtype);
}

}  // namespace

Tensor attention_composed(const Tensor& queries, const Tensor& k0, const Tensor& v0,
                          const AttentionOptions& o, const Tensor& key_mask, const Tensor& bias,
                          const Tensor& sinks) {
  const Tensor q = to_sum_type(queries);
  if (const Fold fold({q, k0, v0, key_mask, bias, sinks}, q.size(0)); fold.needed())
    return fold.out(attention_composed(fold.in(q), fold.in(k0), fold.in(v0), o, fold.in(key_mask),
                                       fold.in(bias), fold.in(sinks)));
  const i64 Tk = o.kv_length >= 0 ? o.kv_length : k0.size(1);
  const Tensor k = cast(narrow(k0, 1, 0, Tk), q.dtype()), v = cast(narrow(v0, 1, 0, Tk), q.dtype());
  const i64 B = q.size(0), Tq = q.size(1), H = q.size(2), D = q.size(3), Hkv = k.size(2), G = H / Hkv;
  // [B, Hkv, G, Tq, D] x [B, Hkv, 1, Tk, D]
  const Tensor qh = permute(reshape(q, {B, Tq, Hkv, G, D}), {0, 2, 3, 1, 4});
  const Tensor kh = reshape(permute(k, {0, 2, 1, 3}), {B, Hkv, 1, Tk, D});
  const Tensor vh = reshape(permute(v, {0, 2, 1, 3}), {B, Hkv, 1, Tk, D});
  Tensor scores = scale(matmul(qh, kh, false, true), o.softcap > 0 ? o.scale / o.softcap : o.scale);
  if (o.softcap > 0) scores = scale(tanh(scores), o.softcap);
  if (bias.defined()) scores = scores + reshape(bias, {bias.size(0), Hkv, G, Tq, Tk});
  if (o.slopes) scores = scores + alibi(o, Hkv, G, Tq, Tk, q.dtype());
  if (o.causal || o.ahead >= 0 || o.window > 0 || key_mask.defined())
    scores = scores + visibility(Tq, Tk, o, key_mask, q.dtype());
  Tensor p;
  if (sinks.defined()) {
    const Tensor sink = broadcast_to(reshape(sinks, {sinks.size(0), Hkv, G, 1, 1}), {B, Hkv, G, Tq, 1});
    p = narrow(softmax(concat({scores, sink}, 4)), 4, 0, Tk);
  } else {
    p = softmax(scores);
  }
  if (o.dropout > 0)
    p = reshape(dropout(reshape(p, {B, H, Tq, Tk}), o.dropout, o.dropout_key), {B, Hkv, G, Tq, Tk});
  const Tensor out = matmul(p, vh);  // [B, Hkv, G, Tq, D]
  return reshape(permute(out, {0, 3, 1, 2, 4}), {B, Tq, H, D});
}

namespace {

Tensor rotate_composed(const Tensor& input, const Tensor& positions, const RopeOptions& o, int sign) {
  const Tensor x = to_sum_type(input);
  const i64 B = x.size(0), T = x.size(1), H = x.size(2), D = x.size(3);
  const i64 half = static_cast<i64>(o.inv_freq->size());
  const Tensor frequency = cast(from_values({half}, std::span<const float>(*o.inv_freq), {}), x.dtype());
  const Tensor angle = reshape(cast(positions, x.dtype()), {B, T, 1, 1}) * frequency;
  const Tensor c = scale(unary(Unary::cos, angle), o.attention_factor);
  const Tensor s = scale(unary(Unary::sin, angle), sign * o.attention_factor);
  // The two halves of the rotated dims; pairs lie side by side if interleaved.
  const Tensor rotated = narrow(x, 3, 0, 2 * half);
  const Tensor pairs = o.interleaved ? permute(reshape(rotated, {B, T, H, half, 2}), {0, 1, 2, 4, 3})
                                     : reshape(rotated, {B, T, H, 2, half});
  const Tensor a = reshape(narrow(pairs, 3, 0, 1), {B, T, H, half}),
               b = reshape(narrow(pairs, 3, 1, 1), {B, T, H, half});
  Tensor y = concat({a * c - b * s, b * c + a * s}, 3);
  if (o.interleaved)
    y = reshape(permute(reshape(y, {B, T, H, 2, half}), {0, 1, 2, 4, 3}), {B, T, H, 2 * half});
  return 2 * half == D ? y : concat({y, narrow(x, 3, 2 * half, D - 2 * half)}, 3);
}

Tensor rotate(const Tensor& x, const Tensor& positions, const RopeOptions& o, int sign) {
  REDCO_CHECK(x.visible() == 4 && positions.dtype() == DType::i32 && positions.visible() == 2 &&
                  positions.size(0) == x.size(0) && positions.size(1) == x.size(1) &&
                  2 * static_cast<i64>(o.inv_freq->size()) <= x.size(3),
              "[rope] x {}, positions {} and {} frequencies do not match", describe(x), describe(positions),
              o.inv_freq->size());
  if (const Fold fold({x, positions}, x.size(0)); fold.needed())
    return fold.out(rotate(fold.in(x), fold.in(positions), o, sign));
  if (!Context::current().has(&Kernels::rope)) return rotate_composed(x, positions, o, sign);
  OpCall op("rope", {x, positions}, Accepts::activations());
  op.choose({x.numel()}, [](OpCall::Strategies& s) {
    const Placement p = s.in(0), q = s.in(1);
    s.all_replicated();
    if (p.is_sharded(0)) s.add({p, p}, {p});
    if (q.is_sharded(0)) s.add({q, q}, {q});
    if (p.is_sharded(2)) s.add({p, R_}, {p});
    if (p.is_partial()) s.add({p, R_}, {p});
  });
  Tensor y = op.output(x.shape(), x.dtype());
  op.flops(3.0 * y.local_numel());
  op.run(&Kernels::rope,
         {.inv_freq = o.inv_freq,
          .interleaved = o.interleaved,
          .sign = sign,
          .attention_factor = o.attention_factor},
         op.in(0), op.in(1), y);
  op.record({positions}, [o, sign](const Vjp& v) {
    return Tensors{rotate(v.g(), v.saved(0), o, -sign), {}};
  });
  return y;
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& positions, const RopeOptions& o) {
  REDCO_CHECK(x.defined() && positions.defined(),
              "[rope] {} is an undefined tensor; expected x [B, T, H, D] and positions [B, T]",
              x.defined() ? "positions" : "x");
  return rotate(x, positions, o, 1);
}

namespace {

Tensor dropout_at(const Tensor& x, double rate, u64 key, i64 row_offset) {
  REDCO_CHECK(x.rank() >= 1 && rate < 1, "[dropout] {} of {}", rate, describe(x));
  OpCall op("dropout", {x});
  op.choose({x.numel()}, [](OpCall::Strategies& s) { s.add({s.in(0)}, {s.in(0)}, s.in(0).is_replicated()); });
  Tensor y = op.output(x.shape(), x.dtype(), x.hidden());
  op.flops(2.0 * y.local_numel());
  // The last four dims are the coordinates of the draw; dims before them (hidden ones) change its key.
  kernels::Block4 b{{0, 0, 0, 0}, {1, 1, 1, 1}};
  const int before = std::max(0, x.rank() - 4), shift = 4 - x.rank();
  const auto first = [&](int d) { return y.range(d).begin + (d == 0 ? row_offset : 0); };
  for (int d = before; d < x.rank(); ++d) {
    b.offset[shift + d] = first(d);
    b.size[shift + d] = y.local()[d];
  }
  const i64 block = b.size[0] * b.size[1] * b.size[2] * b.size[3];
  const View from = op.in(0), to = y;
  for (i64 i = 0; block > 0 && i < y.local_numel() / block; ++i) {
    u64 own_key = key;
    i64 rest = i;
    for (int d = before - 1; d >= 0; --d) {
      own_key = kernels::philox_word(own_key, first(d) + rest % y.local()[d], d, 0, 1) |
                static_cast<u64>(kernels::philox_word(own_key, first(d) + rest % y.local()[d], d, 0, 2))
                    << 32;
      rest /= y.local()[d];
    }
    op.run(&Kernels::dropout, rate, own_key, b, from.flat(i * block, block), to.flat(i * block, block));
  }
  op.record({}, [rate, key, row_offset](const Vjp& v) {
    return Tensors{dropout_at(v.g(), rate, key, row_offset)};
  });
  return y;
}

}  // namespace

Tensor dropout(const Tensor& x, double rate, u64 key) {
  if (rate <= 0) return x;
  return dropout_at(x, rate, key, Context::current().random.row_offset);
}

void cache_write(const Tensor& cache, const Tensor& x, i64 start) {
  REDCO_CHECK(cache.layout() == x.layout() && cache.rank() == x.rank() && cache.dtype() == x.dtype() &&
                  x.local()[1] == x.shape()[1] && start >= 0 && start + x.shape()[1] <= cache.shape()[1],
              "[cache_write] {} does not fit at {} in {}", describe(x), start, describe(cache));
  Context::current().account("cache_write", 0, x.local_bytes());
  Context::current().run(&Kernels::copy, x, cache.view().narrowed(1, start, x.shape()[1]));
}

}  // namespace redco
