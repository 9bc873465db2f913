// Legend: B batch, T tokens, C width, H heads, D head width, R = 2 T - 1 distances.
#include "models/encoder/disentangled.h"

#include <algorithm>
#include <cmath>

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/shape.h"

namespace redco {

i64 disentangled_row(const DisentangledSettings& s, i64 distance) {
  i64 bucket = distance;
  const i64 mid = s.buckets / 2, size = std::abs(distance);
  if (s.buckets > 0 && size > mid) {
    const auto by_mid = [&](i64 n) { return static_cast<float>(n) / static_cast<float>(mid); };
    const float place =
        std::log(by_mid(size)) / std::log(by_mid(s.max_distance - 1)) * static_cast<float>(mid - 1);
    const i64 further = static_cast<i64>(std::ceil(place)) + mid;
    bucket = distance < 0 ? -further : further;
  }
  return std::clamp<i64>(bucket + s.span, 0, 2 * s.span - 1);
}

void declare_disentangled(SpecBuilder& b, const std::string& layer, const DisentangledSettings& s, i64 width,
                          double std, const HeadsOf& queries, const HeadsOf& keys) {
  if (!s.key.empty() && s.by_query) b.linear(layer + s.key, width, width, true, std, false, keys);
  if (!s.query.empty() && s.by_key) b.linear(layer + s.query, width, width, true, std, false, queries);
}

namespace {

// x [B, H, T, R] -> [B, H, T, T]: element (i, j) is x[i, j - i + T - 1]. (Dai et al. 2019, appendix B: a row
// of 2 T elements is read as rows of 2 T - 1.)
Tensor shifted(const Tensor& x) {
  const i64 B = x.size(0), H = x.size(1), T = x.size(2), R = x.size(3);
  const Tensor flat = reshape(pad_to(x, 3, 0, R + 1), {B, H, T * (R + 1)});
  const Tensor rows = reshape(narrow(flat, 2, 0, T * R), {B, H, T, R});
  return narrow(rows, 3, T - 1, T);
}

// The projected rows of the table for distances first, first + step, ...: [1, H, R, D].
Tensor positions_of(const Tensor& projected, const DisentangledSettings& s, const HeadGeometry& g, i64 T,
                    i64 step) {
  const i64 R = 2 * T - 1;
  std::vector<i32> rows;
  for (i64 m = 0; m < R; ++m)
    rows.push_back(static_cast<i32>(disentangled_row(s, step < 0 ? T - 1 - m : m - (T - 1))));
  const Tensor picked = embedding(projected, from_ids({R}, rows));  // [R, H * D]
  return permute(reshape(picked, {1, R, g.n_head, g.head_dim}), {0, 2, 1, 3});
}

}  // namespace

Tensor disentangled_attention(const ParamTree& p, const std::string& layer, const AttentionBlock& a,
                              const DisentangledSettings& s, const ApplyOptions& o, const Tensor& stream,
                              const Tensor& table, const Tensor& mask) {
  const Tensor x = gather_tokens(o, stream);
  const i64 B = x.size(0), T = x.size(1), H = a.heads.n_head, D = a.heads.head_dim;
  // A key's bias counts here: it meets the queries of the positions.
  const Tensors qkv = project_heads(p, {{.name = a.q}, {.name = a.k, .kv = true}, {.name = a.v, .kv = true}},
                                    x, a.heads, p[a.q.weight()], o);
  const Tensor by_head_q = permute(qkv[0], {0, 2, 1, 3}), by_head_k = permute(qkv[1], {0, 2, 1, 3});
  const Tensor dropped = table.defined() ? dropout(o, "positions", s.dropout, table) : Tensor();
  Tensors terms;
  if (s.by_query) {
    const Tensor keys = dense(p, s.key.empty() ? a.k : LayerName(layer + s.key), dropped, o);
    terms.push_back(shifted(matmul(by_head_q, positions_of(keys, s, a.heads, T, -1), false, true)));
  }
  if (s.by_key) {
    const Tensor queries = dense(p, s.query.empty() ? a.q : LayerName(layer + s.query), dropped, o);
    const Tensor by_key = matmul(by_head_k, positions_of(queries, s, a.heads, T, 1), false, true);
    terms.push_back(transpose(shifted(by_key), 2, 3));
  }
  Tensor bias;
  if (!terms.empty()) bias = scale(add(terms), a.settings.scale);  // [B, H, T, T]
  if (mask.defined()) {
    const Tensor seen = to_float(mask, by_head_q.dtype());
    const Tensor pairs = reshape(seen, {B, 1, 1, T}) * reshape(seen, {B, 1, T, 1});
    const Tensor even = scale(add_scalar(pairs, -1), 1e30);  // so large that the rest is rounded away
    bias = bias.defined() ? bias + even : broadcast_to(even, {B, H, T, T});
  }
  const Tensor y = attend(o, a.settings, 0, qkv[0], qkv[1], qkv[2], {}, bias);
  return dense(p, a.out, reshape(y, {B, T, H * D}), o);
}

}  // namespace redco
