#include "ops/head_chunks.h"

#include <algorithm>

#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"
#include "ops/scan.h"
#include "ops/shape.h"

namespace redco {

HeadOperands head_operands(std::string_view op, const RecurrenceInputs& in) {
  for (const Tensor& t : {in.log_decay, in.k, in.q, in.v})
    REDCO_CHECK(t.defined(), "[{}] needs log_decay, k, q and v", op);
  REDCO_CHECK(
      in.v.visible() == 4 && in.k.visible() == 4 && in.q.visible() == 4 && in.log_decay.visible() == 3,
      "[{}] expected log_decay [B, T, H], k and q [B, T, G, N], v [B, T, H, P], not log_decay {}, k {}, q {}, v {}",
      op, describe(in.log_decay), describe(in.k), describe(in.q), describe(in.v));
  HeadOperands o{};
  o.B = in.v.size(0), o.T = in.v.size(1), o.H = in.v.size(2), o.P = in.v.size(3);
  const i64 G = in.k.size(2);
  o.N = in.k.size(3);
  for (int d : {0, 1, 2})
    REDCO_CHECK(
        in.log_decay.size(d) == in.v.size(d) && in.q.size(d) == in.k.size(d) && o.T > 0 && G > 0 &&
            (d == 2 ? o.H % G == 0 : in.k.size(d) == in.v.size(d)) && in.q.size(3) == o.N,
        "[{}] shapes do not match: log_decay {}, k {}, q {}, v {}; expected log_decay [B, T, H], k and q [B, T, "
        "G, N], v [B, T, H, P], with H a multiple of G",
        op, describe(in.log_decay), describe(in.k), describe(in.q), describe(in.v));
  REDCO_CHECK(!in.segments.defined() || !in.initial.defined(), "[{}] segments cannot continue a state", op);
  const i64 f = head_repeats(o.H, G);
  o.G = G * f;
  o.R = o.H / o.G;
  const auto repeated = [&](const Tensor& given) {
    const Tensor t = to_sum_type(given);
    if (f == 1) return t;
    const Tensor each = broadcast_to(reshape(t, {o.B, o.T, G, 1, o.N}), {o.B, o.T, G, f, o.N});
    return reshape(each, {o.B, o.T, o.G, o.N});
  };
  o.decay = to_sum_type(in.log_decay);
  o.v = to_sum_type(in.v);
  o.k = repeated(in.k);
  o.q = repeated(in.q);
  if (in.initial.defined()) o.initial = reshape(to_sum_type(in.initial), {o.B, o.G, o.R, o.N, o.P});
  if (in.segments.defined()) o.segments = to_float(in.segments, o.v.dtype());
  return o;
}

namespace {

Tensor padded(const Tensor& t, i64 tokens) { return t.size(1) < tokens ? pad_to(t, 1, 0, tokens) : t; }

}  // namespace

Tensor HeadChunks::of_heads(const HeadOperands& o, const Tensor& t) const {
  return permute(reshape(padded(t, K * L), {o.B, K, L, o.G, o.R}), {0, 1, 3, 4, 2});
}

HeadChunks head_chunks(const HeadOperands& o, i64 chunk) {
  HeadChunks c{};
  c.L = std::min(chunk, o.T), c.K = ceil_div(o.T, c.L);
  const auto vectors = [&](const Tensor& t, i64 heads, i64 width) {  // [B, K, G, heads, L, width]
    return permute(reshape(padded(t, c.K * c.L), {o.B, c.K, c.L, o.G, heads, width}), {0, 1, 3, 4, 2, 5});
  };
  c.v = vectors(o.v, o.R, o.P);
  c.k = vectors(o.k, 1, o.N);
  c.q = vectors(o.q, 1, o.N);
  if (o.segments.defined()) {
    Tensor all = o.segments;
    if (const i64 more = c.K * c.L - o.T; more > 0)
      all = concat({all, broadcast_to(narrow(all, 1, o.T - 1, 1), {o.B, more})}, 1);
    c.segments = reshape(all, {o.B, c.K, 1, 1, c.L});
    c.ends = narrow(c.segments, -1, c.L - 1, 1);
    c.before = pad_to(narrow(c.ends, 1, 0, c.K - 1), 1, 1, c.K);
  }
  const DType dtype = o.v.dtype();
  const Tensor exact = cumsum(cast(c.of_heads(o, o.decay), DType::f64), -1);  // [B, K, G, R, L]
  c.total = narrow(exact, -1, c.L - 1, 1);
  const LogDecays sums = log_decays(exact, dtype);
  c.decays = decay_matrix(sums, c.segments);
  c.to_token = as_matrix(exp_within(sums.sum, c.segments, c.before), true);
  c.to_end = as_matrix(exp_within(cast(c.total - exact, dtype), c.segments, c.ends), true);
  return c;
}

}  // namespace redco
