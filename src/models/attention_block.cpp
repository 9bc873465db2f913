#include "models/attention_block.h"

#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/norm.h"
#include "ops/shape.h"

namespace redco {

namespace {

// One of q, k, v: [B, T, C] -> [B, T, H, D].
Tensor project(const ParamTree& p, const AttentionBlock& a, const LayerName& name, const Tensor& x,
               const ApplyOptions& o) {
  // A bias of the keys adds the same number to all scores of a query, so it cancels in the softmax unless the
  // keys are rotated or normed. It is left out: then its gradient is exactly zero, and AdamW does not scale
  // rounding errors to whole steps.
  const bool seen = &name != &a.k || a.rope || a.norms;
  return project_heads(p, name, x, a.heads, &name != &a.q, p[a.q.weight()], o, seen);
}

Tensor output(const ParamTree& p, const AttentionBlock& a, const Tensor& y, const ApplyOptions& o) {
  return dense(p, a.out, reshape(y, {y.size(0), y.size(1), a.heads.n_head * a.heads.head_dim}), o);
}

}  // namespace

Tensor offset_rms_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps,
                       bool unit_offset) {
  const Tensor& w = p[prefix + ".weight"];
  return rms_norm(x, unit_offset ? add_scalar(w, 1) : w, eps);
}

Tensor self_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                      const Tensor& stream, const Tensor& key_mask, const Tensor& positions,
                      const Tensor& bias) {
  const Tensor x = gather_tokens(o, stream);
  Tensor q = project(p, a, a.q, x, o);
  if (a.norms) q = offset_rms_norm(p, a.norms->q, q, a.norms->eps, a.norms->unit_offset);
  if (a.rope) q = rope(q, positions, *a.rope);
  Tensor k = project(p, a, a.k, x, o);
  if (a.norms) k = offset_rms_norm(p, a.norms->k, k, a.norms->eps, a.norms->unit_offset);
  if (a.rope) k = rope(k, positions, *a.rope);
  const Tensor v = project(p, a, a.v, x, o);
  return output(p, a, attend(o, a.settings, layer, q, k, v, key_mask, bias), o);
}

Tensor cross_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                       const Tensor& x, const Tensor& memory, const Tensor& memory_mask) {
  const auto keys_and_values = [&]() -> KeyValue {
    REDCO_CHECK(memory.defined(), "a decoder's first apply needs the encoder's output");
    return {project(p, a, a.k, memory, o), project(p, a, a.v, memory, o)};
  };
  const Tensor q = project(p, a, a.q, gather_tokens(o, x), o);
  return output(p, a, cross_attend(o, a.settings, layer, q, keys_and_values, memory_mask), o);
}

}  // namespace redco
