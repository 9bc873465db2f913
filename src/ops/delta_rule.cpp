// Legend: B batch, T tokens in K chunks of L, H heads in G groups of R, N state size, P head width.
#include "ops/delta_rule.h"

#include <algorithm>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/head_chunks.h"
#include "ops/linear.h"
#include "ops/shape.h"

namespace redco {

namespace {

// One token: generation.
Recurrence delta_step(const HeadOperands& o, const Tensor& beta) {
  const Tensor k = reshape(o.k, {o.B, o.G, 1, o.N, 1});
  Tensor held, u = reshape(o.v, {o.B, o.G, o.R, 1, o.P});
  if (o.initial.defined()) {
    held = exp(reshape(o.decay, {o.B, o.G, o.R, 1, 1})) * o.initial;
    u = u - matmul(reshape(k, {o.B, o.G, 1, 1, o.N}), held);
  }
  Tensor h = k * (u * reshape(beta, {o.B, o.G, o.R, 1, 1}));
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

Recurrence gated_delta_rule(const RecurrenceInputs& in, const Tensor& beta, i64 chunk) {
  REDCO_CHECK(chunk > 0, "[gated_delta_rule] chunks of {} tokens", chunk);
  const HeadOperands o = head_operands("gated_delta_rule", in);
  REDCO_CHECK(beta.defined(), "[gated_delta_rule] needs beta");
  REDCO_CHECK(std::equal(beta.shape().begin() + beta.hidden(), beta.shape().end(),
                         in.log_decay.shape().begin() + in.log_decay.hidden(), in.log_decay.shape().end()),
              "[gated_delta_rule] beta {} is not of the shape of log_decay {}", describe(beta),
              describe(in.log_decay));
  const Tensor rates = to_sum_type(beta);
  if (o.T == 1) return delta_step(o, rates);
  const HeadChunks c = head_chunks(o, chunk);
  const i64 K = c.K, L = c.L;

  // Within the chunks. Padding has beta 0, so it writes nothing.
  const Tensor each = as_matrix(c.of_heads(o, rates), true);  // [B, K, G, R, L, 1]
  const Tensor whole = as_matrix(exp_within(cast(c.total, o.v.dtype()), c.ends, c.before), true);
  const Tensor inverse = inverse_of_unit_lower(matmul(c.k, c.k, false, true) * c.decays * each);
  const Tensor added = matmul(inverse, c.v * each);                   // u without the state that enters
  const Tensor removed = matmul(inverse, c.k * (each * c.to_token));  // what of that state u takes away
  const Tensor scores = matmul(c.q, c.k, false, true) * c.decays, reads = c.q * c.to_token,
               writes = c.k * c.to_end;

  // One chunk after the other. state: [B, G, R, N, P]
  Tensor state = o.initial;
  std::vector<Tensor> results;
  for (i64 i = 0; i < K; ++i) {
    const auto of_chunk = [&](const Tensor& t) {  // [B, K, G, R or 1, ...] -> [B, G, R or 1, ...]
      return reshape(narrow(t, 1, i, 1), {o.B, t.size(2), t.size(3), t.size(4), t.size(5)});
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
