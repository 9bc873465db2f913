// Attention with its projections, shared by the families. Legend: B batch, T queries, S keys of a memory, C
// channels, H heads, D head width.
#pragma once

#include <optional>
#include <string>

#include "models/norms.h"
#include "nn/layers.h"

namespace redco {

// Norms of queries and keys.
struct HeadNorms {
  std::string q, k;  // prefixes of their weights
  HeadNormSettings settings;
};

// One attention layer: its projections and heads.
struct AttentionBlock {
  LayerName q, k, v, out;
  HeadGeometry heads;
  AttentionSettings settings;
  const RopeOptions* rope = nullptr;  // rotary positions of q and k
  const HeadNorms* norms = nullptr;
  double clip = 0;                  // > 0: q, k and v are limited to [-clip, clip]
  std::string sinks{};              // the parameter [H] of sinks (ops/attention.h); "": none
  std::optional<LayerName> gate{};  // scales the result before `out`, by its sigmoid
  Tensor query_scale{};             // [B, T, 1, 1], of the queries; undefined: none
};

// out(softmax(q(x) k(x)^T + bias) v(x) * sigmoid(gate(x))), the latter if it has a gate, [B, T, C] -> [B, T,
// C]. `layer`: index in the cache; positions [B, T]: for rope; key_mask and bias: see attend() (nn/layers.h).
Tensor self_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                      const Tensor& x, const Tensor& key_mask, const Tensor& positions = {},
                      const Tensor& bias = {});

// Queries from x [B, T, C], keys and values from the memory [B, S, C'] (or from the cache, which keeps them);
// memory_mask [B, S] or undefined.
Tensor cross_attention(const ParamTree& p, const AttentionBlock& a, const ApplyOptions& o, size_t layer,
                       const Tensor& x, const Tensor& memory, const Tensor& memory_mask);

}  // namespace redco
