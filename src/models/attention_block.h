// Attention with its projections, as the families share it. Legend: B batch, T queries, S keys of a memory,
// C channels, H heads, D head width.
#pragma once

#include <string>

#include "nn/layers.h"

namespace redco {

// RMS norms of each head's queries and keys, before rotary positions.
struct HeadNorms {
  std::string q, k;  // prefixes of their weights [D]
  double eps;
  bool unit_offset;  // the weights are stored less one
};

// One attention of a model: its projections and what they are split into.
struct AttentionBlock {
  LayerName q, k, v, out;
  HeadGeometry heads;
  AttentionSettings settings;
  const RopeOptions* rope = nullptr;  // rotary positions of q and k
  const HeadNorms* norms = nullptr;
};

// RMS norm with the weight `prefix.weight`, or that plus one (Gemma, which stores what one is added to).
Tensor offset_rms_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, double eps,
                       bool unit_offset);

// out(softmax(q(x) k(x)^T + bias) v(x)), [B, T, C] -> [B, T, C]. `layer` is that of the cache. positions
// [B, T] are those of rope; key_mask and bias as for attend() (nn/layers.h).
Tensor self_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                      const Tensor& x, const Tensor& key_mask, const Tensor& positions = {},
                      const Tensor& bias = {});

// Queries of x [B, T, C], keys and values of the memory [B, S, C'] (or of the cache's layer, which keeps
// them); memory_mask [B, S] or undefined.
Tensor cross_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                       const Tensor& x, const Tensor& memory, const Tensor& memory_mask);

}  // namespace redco
