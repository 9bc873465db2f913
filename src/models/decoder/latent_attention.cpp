// Legend: B batch, T tokens, C width, H heads, L width of the latent vector, N nope_dim, R rope_dim, V
// value_dim.
#include "models/decoder/latent_attention.h"

#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/shape.h"

namespace redco {

void declare_latent_attention(SpecBuilder& b, const std::string& layer, const LatentSettings& s, i64 heads,
                              i64 width, double std) {
  const std::string a = layer + ".self_attn.";
  const i64 N = s.nope_dim, R = s.rope_dim, V = s.value_dim, H = heads;
  const auto of_heads = [&](int dim, i64 each) { return HeadsOf{dim, H, H, each, false}; };
  const NormSettings norm{.eps = s.eps};
  if (s.q_rank > 0) {
    b.linear(a + "q_a_proj", s.q_rank, width, s.bias, std).role = Role::shared;
    declare_norm(b, a + "q_a_layernorm", s.q_rank, norm);
    b.linear(a + "q_b_proj", H * (N + R), s.q_rank, false, std, false, of_heads(0, N + R));
  } else {
    b.linear(a + "q_proj", H * (N + R), width, false, std, false, of_heads(0, N + R));
  }
  std::vector<SpecBuilder::Part> down = {{"latent", s.rank}, {"rope", R}};
  for (SpecBuilder::Part& part : down) part.role = Role::shared;
  b.fused(a + "kv_a_proj_with_mqa", down, width, s.bias, std, false);
  declare_norm(b, a + "kv_a_layernorm", s.rank, norm);
  // With a cache these are read as matrices of the heads, so they keep fp32.
  std::vector<SpecBuilder::Part> up = {{"k", H * N, of_heads(0, N)}, {"v", H * V, of_heads(0, V)}};
  up[0].block = N;
  up[1].block = V;
  for (SpecBuilder::Part& part : up) part.precise = true;
  b.fused(a + "kv_b_proj", up, s.rank, false, std, false);
  b.linear(a + "o_proj", width, H * V, s.bias, std, false, of_heads(1, V));
}

namespace {

// kv_b_proj's weight of keys or values [H * N, L] with its adapter, as [H, N, L].
Tensor matrices_of_heads(const ParamTree& p, const std::string& prefix, const char* part, i64 heads) {
  const LayerName name(prefix, part);
  Tensor w = p[name.weight()];
  if (const ParamSpec* a = p.find_spec(prefix + ".lora_A.weight")) {
    const Tensor& b = p[LayerName(prefix + ".lora_B", part).weight()];
    w = w + scale(matmul(b, p[a->name]), a->adapter.scale);
  }
  return reshape(w, {heads, w.size(0) / heads, w.size(1)});
}

// [B, T, H, D] <-> [H, B * T, D]
Tensor heads_first(const Tensor& x) {
  return reshape(permute(x, {2, 0, 1, 3}), {x.size(2), x.size(0) * x.size(1), x.size(3)});
}
Tensor heads_last(const Tensor& x, i64 B, i64 T) {
  return permute(reshape(x, {x.size(0), B, T, x.size(2)}), {1, 2, 0, 3});
}

}  // namespace

Tensor latent_attention(const ParamTree& p, const std::string& layer, const LatentSettings& s,
                        const AttentionSettings& settings, const ApplyOptions& o, size_t index,
                        const Tensor& stream, const Tensor& key_mask, const Tensor& positions,
                        const RopeOptions& rotary) {
  const std::string a = layer + ".self_attn.", up = a + "kv_b_proj";
  const Tensor x = gather_tokens(o, stream);
  const i64 B = x.size(0), T = x.size(1), N = s.nope_dim, R = s.rope_dim, V = s.value_dim, L = s.rank;
  const std::string down = a + "kv_a_proj_with_mqa";
  Tensor q;
  if (s.q_rank > 0) {
    const Tensor latent = rms_norm(p, a + "q_a_layernorm", dense(p, a + "q_a_proj", x, o), s.eps);
    q = dense(p, a + "q_b_proj", latent, o);
  } else {
    q = dense(p, a + "q_proj", x, o);
  }
  const i64 H = q.size(2) / (N + R);
  q = reshape(q, {B, T, H, N + R});
  const Tensor q_nope = narrow(q, 3, 0, N), q_rope = rope(narrow(q, 3, N, R), positions, rotary);
  const Tensors kv = dense_layers(p, {{down, "latent"}, {down, "rope"}}, x, o);
  const Tensor latent = rms_norm(p, a + "kv_a_layernorm", kv[0], s.eps);  // [B, T, L]
  const Tensor k_rope = rope(reshape(kv[1], {B, T, 1, R}), positions, rotary);

  Tensor y;
  if (o.cache) {
    // The keys' projection is applied to the queries, and the values' to the result: all heads attend to the
    // latent vectors, which are both keys and values.
    const Tensor entry = concat({reshape(latent, {B, T, 1, L}), k_rope}, 3);
    const Tensor by_key = matmul(heads_first(q_nope), matrices_of_heads(p, up, "k", H));
    const Tensor queries = concat({heads_last(by_key, B, T), q_rope}, 3);  // [B, T, H, L + R]
    const Tensor mixed = narrow(attend(o, settings, index, queries, entry, {}, key_mask), 3, 0, L);
    y = heads_last(matmul(heads_first(mixed), matrices_of_heads(p, up, "v", H), false, true), B, T);
  } else {
    const Tensors of_heads = dense_layers(p, {{up, "k"}, {up, "v"}}, latent, o);
    const Tensor k_nope = reshape(of_heads[0], {B, T, H, N}), v = reshape(of_heads[1], {B, T, H, V});
    const Tensor k = concat({k_nope, broadcast_to(k_rope, {B, T, H, R})}, 3);
    const Tensor queries = concat({q_nope, q_rope}, 3);
    // Attention has one width, so the narrower ones are padded with zeros.
    const i64 D = std::max(N + R, V);
    const auto padded = [&](const Tensor& t) { return t.size(3) == D ? t : pad_to(t, 3, 0, D); };
    y = narrow(attend(o, settings, index, padded(queries), padded(k), padded(v), key_mask), 3, 0, V);
  }
  return dense(p, a + "o_proj", reshape(y, {B, T, H * V}), o);
}

}  // namespace redco
