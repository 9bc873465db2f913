// Legend: B batch, T tokens in K chunks of L, H heads in G groups of R, N state size, P head width.
#include "ops/recurrence.h"

#include <algorithm>

#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/head_chunks.h"
#include "ops/linear.h"
#include "ops/scan.h"
#include "ops/shape.h"

namespace redco {

namespace {

// One token: generation.
Recurrence step(const HeadOperands& o) {
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
States over_chunks(const HeadOperands& o, const Tensor& totals, const Tensor& added, const Tensor& ends) {
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
  const HeadOperands o = head_operands("linear_recurrence", in);
  if (o.T == 1) return step(o);
  const HeadChunks c = head_chunks(o, chunk);
  const i64 K = c.K;
  Tensor y = matmul(matmul(c.q, c.k, false, true) * c.decays, c.v);  // [B, K, G, R, L, P]
  const Tensor added = matmul(c.k, c.v * c.to_end, true);            // [B, K, G, R, N, P]
  Tensor entering, last;
  if (K > 1) {
    const States s = over_chunks(o, reshape(c.total, {o.B, K, o.G, o.R}), added,
                                 c.ends.defined() ? reshape(c.ends, {o.B, K}) : Tensor());
    entering = s.entering;
    last = s.last;
  } else {
    last = reshape(added, {o.B, o.G, o.R, o.N, o.P});
    if (o.initial.defined()) {
      last = last + exp(reshape(cast(c.total, o.v.dtype()), {o.B, o.G, o.R, 1, 1})) * o.initial;
      entering = reshape(o.initial, {o.B, 1, o.G, o.R, o.N, o.P});
    }
    last = reshape(last, {o.B, o.H, o.N, o.P});
  }
  if (entering.defined()) y = y + matmul(c.q, entering) * c.to_token;
  y = reshape(permute(y, {0, 1, 4, 2, 3, 5}), {o.B, K * c.L, o.H, o.P});
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
