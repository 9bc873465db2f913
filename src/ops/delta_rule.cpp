// Legend: B batch, T tokens in K chunks of L, H heads in G groups of R, N state size, P head width.
#include "ops/delta_rule.h"

#include <algorithm>

#include "base/error.h"
#include "ops/chunk_decay.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/scan.h"
#include "ops/shape.h"

namespace redco {

namespace {

// The operands with heads as [..., G, R, ...], in fp32 or f64.
struct DeltaOperands {
  i64 B, T, H, P, N, G, R;
  Tensor decay, beta, k, q, v, initial, segments;
};

DeltaOperands delta_operands(const DeltaRuleInputs& in) {
  for (const Tensor& t : {in.log_decay, in.beta, in.k, in.q, in.v})
    REDCO_CHECK(t.defined(), "[gated_delta_rule] needs log_decay, beta, k, q and v");
  REDCO_CHECK(in.v.visible() == 4 && in.k.visible() == 4 && in.log_decay.visible() == 3,
              "[gated_delta_rule] v {}, k {}, log_decay {}", describe(in.v), describe(in.k),
              describe(in.log_decay));
  DeltaOperands o{};
  o.B = in.v.size(0), o.T = in.v.size(1), o.H = in.v.size(2), o.P = in.v.size(3);
  const i64 G = in.k.size(2);
  o.N = in.k.size(3);
  const auto fits = [&](const Tensor& t, const Shape& shape) {
    return t.visible() == static_cast<int>(shape.size()) &&
           std::equal(shape.begin(), shape.end(), t.shape().begin() + t.hidden());
  };
  REDCO_CHECK(o.T > 0 && G > 0 && o.H % G == 0 && fits(in.log_decay, {o.B, o.T, o.H}) &&
                  fits(in.beta, {o.B, o.T, o.H}) && fits(in.k, {o.B, o.T, G, o.N}) &&
                  fits(in.q, {o.B, o.T, G, o.N}),
              "[gated_delta_rule] shapes do not match: v {}, k {}, q {}, log_decay {}, beta {}",
              describe(in.v), describe(in.k), describe(in.q), describe(in.log_decay), describe(in.beta));
  REDCO_CHECK(!in.segments.defined() || !in.initial.defined(),
              "[gated_delta_rule] segments cannot continue a state");
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
  o.decay = to_sum_type(in.log_decay);
  o.beta = to_sum_type(in.beta);
  o.v = to_sum_type(in.v);
  o.k = repeated(in.k);
  o.q = repeated(in.q);
  if (in.initial.defined()) o.initial = reshape(to_sum_type(in.initial), {o.B, o.G, o.R, o.N, o.P});
  if (in.segments.defined()) o.segments = to_float(in.segments, o.v.dtype());
  return o;
}

// One token: generation.
Recurrence delta_step(const DeltaOperands& o) {
  const Tensor k = reshape(o.k, {o.B, o.G, 1, o.N, 1});
  Tensor held, u = reshape(o.v, {o.B, o.G, o.R, 1, o.P});
  if (o.initial.defined()) {
    held = exp(reshape(o.decay, {o.B, o.G, o.R, 1, 1})) * o.initial;
    u = u - matmul(reshape(k, {o.B, o.G, 1, 1, o.N}), held);
  }
  Tensor h = k * (u * reshape(o.beta, {o.B, o.G, o.R, 1, 1}));
  if (held.defined()) h = held + h;
  const Tensor y = matmul(reshape(o.q, {o.B, o.G, 1, 1, o.N}), h);
  return {reshape(y, {o.B, 1, o.H, o.P}), reshape(h, {o.B, o.H, o.N, o.P})};
}

// A matrix [n, n] with 1 where f(row, column).
template <class F>
Tensor ones_where(i64 n, DType dtype, const F& f) {
  std::vector<float> values(static_cast<std::size_t>(n * n));
  for (i64 i = 0; i < n; ++i)
    for (i64 j = 0; j < n; ++j) values[static_cast<std::size_t>(i * n + j)] = f(i, j) ? 1.0F : 0.0F;
  return cast(from_values({n, n}, std::span<const float>(values)), dtype);
}

// (I + S)^-1, where S is the part of x [..., n, n] below the diagonal. From inverses of diagonal blocks of s
// rows follow those of 2 s rows, whose lower left quarter is -(lower inverse) S (upper inverse). So errors
// are those of a substitution; a series of powers of S cancels large numbers.
Tensor inverse_of_unit_lower(const Tensor& x) {
  const i64 n = x.size(-1);
  const auto quarter = [&](i64 s) {  // of x, between pairs of blocks
    return x * ones_where(n, x.dtype(),
                          [s](i64 i, i64 j) { return i / (2 * s) == j / (2 * s) && i / s > j / s; });
  };
  const Tensor one = ones_where(n, x.dtype(), [](i64 i, i64 j) { return i == j; });
  if (n == 1) return one + scale(x, 0);
  Tensor inverse = one - quarter(1);
  for (i64 s = 2; s < n; s *= 2) inverse = inverse - matmul(matmul(inverse, quarter(s)), inverse);
  return inverse;
}

}  // namespace

Recurrence gated_delta_rule(const DeltaRuleInputs& in, i64 chunk) {
  REDCO_CHECK(chunk > 0, "[gated_delta_rule] chunks of {} tokens", chunk);
  const DeltaOperands o = delta_operands(in);
  if (o.T == 1) return delta_step(o);
  const i64 L = std::min(chunk, o.T), K = ceil_div(o.T, L), more = K * L - o.T;
  // Padding has log decay 0 and beta 0, so the state does not change.
  const auto padded = [&](const Tensor& t) { return more > 0 ? pad_to(t, 1, 0, K * L) : t; };
  const auto of_heads = [&](const Tensor& t) {  // [B, T, H] -> [B, K, G, R, L]
    return permute(reshape(padded(t), {o.B, K, L, o.G, o.R}), {0, 1, 3, 4, 2});
  };
  const auto shared = [&](const Tensor& t) {  // [B, K, G, 1, L, N]
    return permute(reshape(padded(t), {o.B, K, L, o.G, 1, o.N}), {0, 1, 3, 4, 2, 5});
  };
  const Tensor v = permute(reshape(padded(o.v), {o.B, K, L, o.G, o.R, o.P}), {0, 1, 3, 4, 2, 5});
  const Tensor k = shared(o.k), q = shared(o.q), beta = as_matrix(of_heads(o.beta), true);
  Tensor segments, ends, before;  // [B, K, 1, 1, L]; of the last token of each chunk, and of the chunk before
  if (o.segments.defined()) {
    Tensor all = o.segments;
    if (more > 0) all = concat({all, broadcast_to(narrow(all, 1, o.T - 1, 1), {o.B, more})}, 1);
    segments = reshape(all, {o.B, K, 1, 1, L});
    ends = narrow(segments, -1, L - 1, 1);
    before = pad_to(narrow(ends, 1, 0, K - 1), 1, 1, K);
  }

  // Within the chunks.
  const DType dtype = o.v.dtype();
  const Tensor exact = cumsum(cast(of_heads(o.decay), DType::f64), -1);  // [B, K, G, R, L]
  const Tensor total = narrow(exact, -1, L - 1, 1);
  const LogDecays sums = log_decays(exact, dtype);
  const Tensor decays = decay_matrix(sums, segments);                                  // [..., L, L]
  const Tensor since_begin = as_matrix(exp_within(sums.sum, segments, before), true);  // [..., L, 1]
  const Tensor to_end = as_matrix(exp_within(cast(total - exact, dtype), segments, ends), true);
  const Tensor whole = as_matrix(exp_within(cast(total, dtype), ends, before), true);  // [..., 1, 1]
  const Tensor inverse = inverse_of_unit_lower(matmul(k, k, false, true) * decays * beta);
  const Tensor added = matmul(inverse, v * beta);                    // u without the state that enters
  const Tensor removed = matmul(inverse, k * (beta * since_begin));  // what of that state u takes away
  const Tensor scores = matmul(q, k, false, true) * decays, reads = q * since_begin, writes = k * to_end;

  // One chunk after the other. state: [B, G, R, N, P]
  Tensor state = o.initial;
  std::vector<Tensor> results;
  for (i64 c = 0; c < K; ++c) {
    const auto of_chunk = [&](const Tensor& t) {  // [B, K, G, R or 1, ...] -> [B, G, R or 1, ...]
      return reshape(narrow(t, 1, c, 1), {o.B, t.size(2), t.size(3), t.size(4), t.size(5)});
    };
    Tensor u = of_chunk(added);
    if (state.defined()) u = u - matmul(of_chunk(removed), state);
    Tensor y = matmul(of_chunk(scores), u);  // [B, G, R, L, P]
    if (state.defined()) y = y + matmul(of_chunk(reads), state);
    results.push_back(reshape(y, {o.B, 1, o.G, o.R, L, o.P}));
    const Tensor written = matmul(of_chunk(writes), u, true);
    state = state.defined() ? state * of_chunk(whole) + written : written;
  }
  const Tensor all = permute(concat(results, 1), {0, 1, 4, 2, 3, 5});  // [B, K, L, G, R, P]
  return {narrow(reshape(all, {o.B, K * L, o.H, o.P}), 1, 0, o.T), reshape(state, {o.B, o.H, o.N, o.P})};
}

}  // namespace redco
