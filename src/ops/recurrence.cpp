// Legend: B batch, T tokens in K chunks of L, H heads in G groups of R, N state size, P head width.
#include "ops/recurrence.h"

#include <algorithm>

#include "base/error.h"
#include "ops/chunk_decay.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/scan.h"
#include "ops/shape.h"

namespace redco {

namespace {

// The operands with heads as [..., G, R, ...], in fp32 or f64.
struct Operands {
  i64 B, T, H, P, N, G, R;
  Tensor decay, k, q, v, initial, segments;
};

Operands grouped(const RecurrenceInputs& in) {
  for (const Tensor& t : {in.log_decay, in.k, in.q, in.v})
    REDCO_CHECK(t.defined(), "[linear_recurrence] needs log_decay, k, q and v");
  Operands o{};
  o.decay = to_sum_type(in.log_decay);
  o.v = to_sum_type(in.v);
  REDCO_CHECK(
      in.v.visible() == 4 && in.k.visible() == 4 && in.q.visible() == 4 && in.log_decay.visible() == 3,
      "[linear_recurrence] expected log_decay [B, T, H], k and q [B, T, G, N], v [B, T, H, P], not log_decay {}, "
      "k {}, q {}, v {}",
      describe(in.log_decay), describe(in.k), describe(in.q), describe(in.v));
  o.B = in.v.size(0), o.T = in.v.size(1), o.H = in.v.size(2), o.P = in.v.size(3);
  const i64 G = in.k.size(2);
  o.N = in.k.size(3);
  for (int d : {0, 1, 2})
    REDCO_CHECK(
        in.log_decay.size(d) == in.v.size(d) && in.q.size(d) == in.k.size(d) && o.T > 0 && G > 0 &&
            (d == 2 ? o.H % G == 0 : in.k.size(d) == in.v.size(d)) && in.q.size(3) == o.N,
        "[linear_recurrence] shapes do not match: log_decay {}, k {}, q {}, v {}; expected log_decay [B, T, "
        "H], k and q [B, T, G, N], v [B, T, H, P], with H a multiple of G",
        describe(in.log_decay), describe(in.k), describe(in.q), describe(in.v));
  REDCO_CHECK(!in.segments.defined() || !in.initial.defined(),
              "[linear_recurrence] segments cannot continue a state");
  // With more shards than groups, heads are cut inside a group, so each part gets keys and queries of its
  // own.
  const i64 f = head_repeats(o.H, G);
  o.G = G * f;
  o.R = o.H / o.G;
  const auto repeated = [&](const Tensor& given) {
    const Tensor t = to_sum_type(given);
    if (f == 1) return t;
    const Tensor each = broadcast_to(reshape(t, {o.B, o.T, G, 1, o.N}), {o.B, o.T, G, f, o.N});
    return reshape(each, {o.B, o.T, o.G, o.N});
  };
  o.k = repeated(in.k);
  o.q = repeated(in.q);
  if (in.initial.defined()) o.initial = reshape(to_sum_type(in.initial), {o.B, o.G, o.R, o.N, o.P});
  if (in.segments.defined()) o.segments = to_float(in.segments, o.v.dtype());
  return o;
}

// One token: generation.
Recurrence step(const Operands& o) {
  Tensor h = reshape(o.k, {o.B, o.G, 1, o.N, 1}) * reshape(o.v, {o.B, o.G, o.R, 1, o.P});
  if (o.initial.defined()) h = h + exp(reshape(o.decay, {o.B, o.G, o.R, 1, 1})) * o.initial;
  const Tensor y = matmul(reshape(o.q, {o.B, o.G, 1, 1, o.N}), h);
  return {reshape(y, {o.B, 1, o.H, o.P}), reshape(h, {o.B, o.H, o.N, o.P})};
}

// States between chunks: `entering` each of them, and after the last. totals (f64) [B, K, G, R], added [B, K,
// G, R, N, P], ends (the segment of each chunk's last token) [B, K] or undefined.
struct States {
  Tensor entering, last;
};
States over_chunks(const Operands& o, const Tensor& totals, const Tensor& added, const Tensor& ends) {
  const i64 K = totals.size(1);
  const Tensor of_chunk = permute(totals, {0, 2, 3, 1}), all = cumsum(of_chunk, -1);
  const LogDecays sums = log_decays(all, o.v.dtype());
  const Tensor segments = ends.defined() ? reshape(ends, {o.B, 1, 1, K}) : Tensor();
  const Tensor flat = reshape(permute(added, {0, 2, 3, 1, 4, 5}), {o.B, o.G, o.R, K, o.N * o.P});
  const Tensor after = matmul(decay_matrix(sums, segments), flat);
  Tensor entering = pad_to(narrow(after, -2, 0, K - 1), -2, 1, K), last = narrow(after, -2, K - 1, 1);
  if (o.initial.defined()) {
    const Tensor initial = reshape(o.initial, {o.B, o.G, o.R, 1, o.N * o.P});
    entering = entering + as_matrix(exp(cast(all - of_chunk, o.v.dtype())), true) * initial;
    last = last + as_matrix(exp(narrow(sums.sum, -1, K - 1, 1)), true) * initial;
  }
  return {permute(reshape(entering, {o.B, o.G, o.R, K, o.N, o.P}), {0, 3, 1, 2, 4, 5}),
          reshape(last, {o.B, o.H, o.N, o.P})};
}

}  // namespace

Recurrence linear_recurrence(const RecurrenceInputs& in, i64 chunk) {
  REDCO_CHECK(chunk > 0, "[linear_recurrence] chunks of {} tokens", chunk);
  const Operands o = grouped(in);
  if (o.T == 1) return step(o);
  const i64 L = std::min(chunk, o.T), K = ceil_div(o.T, L), more = K * L - o.T;
  // Padding has log decay 0 and keys 0, so the state does not change.
  const auto padded = [&](const Tensor& t) { return more > 0 ? pad_to(t, 1, 0, K * L) : t; };
  const Tensor v = permute(reshape(padded(o.v), {o.B, K, L, o.G, o.R, o.P}), {0, 1, 3, 4, 2, 5});
  const Tensor decay = permute(reshape(padded(o.decay), {o.B, K, L, o.G, o.R}), {0, 1, 3, 4, 2});
  const auto shared = [&](const Tensor& t) {  // [B, K, G, 1, L, N]
    return permute(reshape(padded(t), {o.B, K, L, o.G, 1, o.N}), {0, 1, 3, 4, 2, 5});
  };
  const Tensor k = shared(o.k), q = shared(o.q);
  Tensor segments, ends, before;  // [B, K, 1, 1, L]; of the last token of each chunk, and of the chunk before
  if (o.segments.defined()) {
    Tensor all = o.segments;
    if (more > 0) all = concat({all, broadcast_to(narrow(all, 1, o.T - 1, 1), {o.B, more})}, 1);
    segments = reshape(all, {o.B, K, 1, 1, L});
    ends = narrow(segments, -1, L - 1, 1);
    before = pad_to(narrow(ends, 1, 0, K - 1), 1, 1, K);
  }

  const DType dtype = o.v.dtype();
  const Tensor exact = cumsum(cast(decay, DType::f64), -1);  // [B, K, G, R, L]
  const Tensor total = narrow(exact, -1, L - 1, 1);          // [..., 1]
  const LogDecays sums = log_decays(exact, dtype);
  Tensor y = matmul(matmul(q, k, false, true) * decay_matrix(sums, segments), v);  // [B, K, G, R, L, P]
  const Tensor left = exp_within(cast(total - exact, dtype), segments, ends);      // at the end of the chunk
  const Tensor added = matmul(k, v * as_matrix(left, true), true);                 // [B, K, G, R, N, P]
  Tensor entering, last;
  if (K > 1) {
    const States s = over_chunks(o, reshape(total, {o.B, K, o.G, o.R}), added,
                                 ends.defined() ? reshape(ends, {o.B, K}) : Tensor());
    entering = s.entering;
    last = s.last;
  } else {
    last = reshape(added, {o.B, o.G, o.R, o.N, o.P});
    if (o.initial.defined()) {
      last = last + exp(reshape(cast(total, dtype), {o.B, o.G, o.R, 1, 1})) * o.initial;
      entering = reshape(o.initial, {o.B, 1, o.G, o.R, o.N, o.P});
    }
    last = reshape(last, {o.B, o.H, o.N, o.P});
  }
  if (entering.defined())
    y = y + matmul(q, entering) * as_matrix(exp_within(sums.sum, segments, before), true);
  y = reshape(permute(y, {0, 1, 4, 2, 3, 5}), {o.B, K * L, o.H, o.P});
  return {narrow(y, 1, 0, o.T), last};
}

Recurrence selective_scan(const SelectiveInputs& in) {
  REDCO_CHECK(
      in.dt.visible() == 3 && in.dt.shape() == in.x.shape() && in.rates.visible() == 2 &&
          in.rates.size(0) == in.x.size(2) && in.k.visible() == 3 && in.k.shape() == in.q.shape() &&
          in.k.size(2) == in.rates.size(1) && in.x.size(1) > 0,
      "[selective_scan] expected dt and x [B, T, C], rates [C, N], k and q [B, T, N], not dt {}, x {}, "
      "rates {}, k {}, q {}",
      describe(in.dt), describe(in.x), describe(in.rates), describe(in.k), describe(in.q));
  REDCO_CHECK(!in.segments.defined() || !in.initial.defined(),
              "[selective_scan] segments cannot continue a state");
  const i64 B = in.x.size(0), T = in.x.size(1), C = in.x.size(2), N = in.k.size(2);
  const Tensor dt = to_sum_type(in.dt);
  Tensor decay = exp(reshape(dt, {B, T, C, 1}) * -to_sum_type(in.rates));  // [B, T, C, N]
  if (in.segments.defined()) {
    const Tensor now = to_float(in.segments, dt.dtype());
    const Tensor earlier = pad_to(narrow(now, 1, 0, T - 1), 1, 1, T);
    decay = decay * reshape(compare(Binary::eq, now, earlier), {B, T, 1, 1});
  }
  Tensor added = reshape(dt * to_sum_type(in.x), {B, T, C, 1}) * reshape(to_sum_type(in.k), {B, T, 1, N});
  if (in.initial.defined()) {
    const Tensor first =
        narrow(added, 1, 0, 1) + narrow(decay, 1, 0, 1) * reshape(to_sum_type(in.initial), {B, 1, C, N});
    added = T == 1 ? first : concat({first, narrow(added, 1, 1, T - 1)}, 1);
  }
  const Tensor h = T == 1 ? added : linear_scan(decay, added, 1);
  const Tensor y = matmul(h, reshape(to_sum_type(in.q), {B, T, N, 1}));
  return {reshape(y, {B, T, C}), reshape(narrow(h, 1, T - 1, 1), {B, C, N})};
}

Tensor causal_conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& before,
                     const Tensor& segments) {
  REDCO_CHECK(x.visible() == 3 && w.visible() == 2 && w.size(0) == x.size(2), "[causal_conv1d] x {}, w {}",
              describe(x), describe(w));
  const i64 T = x.size(1), C = x.size(2), K = w.size(1);
  REDCO_CHECK(!before.defined() || (before.visible() == 3 && before.size(1) == K - 1),
              "[causal_conv1d] {} tokens before the first are needed, not {}", K - 1, describe(before));
  const Tensor all = before.defined() ? concat({before, x}, 1) : pad_to(x, 1, K - 1, K - 1 + T);
  const Tensor taps = transpose(w, 0, 1);
  std::vector<Tensor> terms;
  for (i64 k = 0; k < K; ++k) {
    Tensor term = narrow(all, 1, k, T) * reshape(narrow(taps, 0, k, 1), {C});
    if (const i64 by = K - 1 - k; segments.defined() && by > 0) {
      const i64 rest = std::max<i64>(0, T - by);
      const Tensor now = to_float(segments, term.dtype());
      const Tensor earlier = pad_to(narrow(now, 1, 0, rest), 1, T - rest, T);
      term = term * as_matrix(compare(Binary::eq, now, earlier), true);
    }
    terms.push_back(term);
  }
  if (bias.defined()) terms.push_back(bias);
  return add(terms);
}

}  // namespace redco
