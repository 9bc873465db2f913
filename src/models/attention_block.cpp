#include "models/attention_block.h"

#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

namespace {

HeadProjection queries(const AttentionBlock& a) { return {.name = a.q}; }
// A bias of the keys adds the same number to all scores of a query, so it cancels in the softmax unless the
// keys are rotated, normed or clipped, or compete with a sink. It is left out: then its gradient is exactly
// zero, and AdamW does not scale rounding errors to whole steps.
HeadProjection keys(const AttentionBlock& a) {
  return {.name = a.k, .kv = true, .with_bias = a.rope || a.norms || a.clip > 0 || !a.sinks.empty()};
}
HeadProjection values(const AttentionBlock& a) { return {.name = a.v, .kv = true}; }

// [B, T, C] -> [B, T, H, D] of each.
Tensors project(const ParamTree& p, const AttentionBlock& a, const std::vector<HeadProjection>& which,
                const Tensor& x, const ApplyOptions& o) {
  return project_heads(p, which, x, a.heads, p[a.q.weight()], o);
}

Tensor output(const ParamTree& p, const AttentionBlock& a, const Tensor& y, const ApplyOptions& o) {
  return dense(p, a.out, reshape(y, {y.size(0), y.size(1), a.heads.n_head * a.heads.head_dim}), o);
}

}  // namespace

Tensor self_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                      const Tensor& stream, const Tensor& key_mask, const Tensor& positions,
                      const Tensor& bias) {
  const Tensor x = gather_tokens(o, stream);
  std::vector<HeadProjection> which = {queries(a), keys(a), values(a)};
  if (a.gate) which.push_back({.name = *a.gate});
  const Tensors projected = project(p, a, which, x, o);
  const auto clipped = [&](const Tensor& t) { return a.clip > 0 ? clamp(t, -a.clip, a.clip) : t; };
  const auto prepared = [&](const Tensor& t, bool kv) {
    const auto normed = [&](const Tensor& h) {
      return head_norm(p, kv ? a.norms->k : a.norms->q, h, a.heads, kv, a.norms->settings, p[a.q.weight()]);
    };
    const bool late = a.norms && a.norms->settings.after_rope;
    Tensor y = clipped(a.norms && !late ? normed(t) : t);
    if (a.rope) y = rope(y, positions, *a.rope);
    return late ? normed(y) : y;
  };
  const Tensor own = prepared(projected[0], false), k = prepared(projected[1], true);
  const Tensor q = a.query_scale.defined() ? own * cast(a.query_scale, own.dtype()) : own;
  Tensor sinks;
  if (!a.sinks.empty()) sinks = reshape(p[a.sinks], {1, a.heads.n_head});
  const Tensor y = attend(o, a.settings, layer, q, k, clipped(projected[2]), key_mask, bias, sinks);
  return output(p, a, a.gate ? y * sigmoid(projected[3]) : y, o);
}

Tensor cross_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                       const Tensor& x, const Tensor& memory, const Tensor& memory_mask) {
  const auto keys_and_values = [&]() -> KeyValue {
    REDCO_CHECK(memory.defined(), "a decoder's first apply needs the encoder's output");
    const Tensors kv = project(p, a, {keys(a), values(a)}, memory, o);
    return {kv[0], kv[1]};
  };
  const Tensor q = project(p, a, {queries(a)}, gather_tokens(o, x), o)[0];
  return output(p, a, cross_attend(o, a.settings, layer, q, keys_and_values, memory_mask), o);
}

}  // namespace redco
