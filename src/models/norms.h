// Norms whose kind is a setting of the family. Legend: B batch, T tokens, C channels, H heads, D head width.
#pragma once

#include <string>

#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

struct NormSettings {
  bool rms = true;           // RMS norm; false: layer norm
  bool weight = true;        // a layer norm may have neither weight nor bias
  bool bias = false;         // of a layer norm
  bool unit_offset = false;  // stored weights are the weights minus one (Gemma, Nemotron)
  double eps = 1e-6;
};

void declare_norm(SpecBuilder& b, const std::string& prefix, i64 width, const NormSettings& s);
Tensor norm(const ParamTree& p, const std::string& prefix, const Tensor& x, const NormSettings& s,
            NormResult result = NormResult::computed);

// Norms of queries and keys, before rotary positions unless after_rope is set.
struct HeadNormSettings {
  // Which elements share a mean, and the shape of the stored weight.
  enum class Over : std::uint8_t {
    none,
    head,       // each head; all heads share the weight [D]
    each_head,  // each head, with its own weight: [H, D]
    width,      // all heads of a token together: [H * D]
  } over = Over::none;
  NormSettings norm{};
  bool listed = false;  // each_head: files hold a tensor per head, PREFIX.norms.3.weight
  bool after_rope = false;
};

// kv: of the keys.
void declare_head_norm(SpecBuilder& b, const std::string& prefix, const HeadGeometry& g, bool kv,
                       const HeadNormSettings& s);
// x [B, T, H, D] of project_heads() (nn/layers.h), where key heads may be repeated; query_weight: as there.
Tensor head_norm(const ParamTree& p, const std::string& prefix, const Tensor& x, const HeadGeometry& g,
                 bool kv, const HeadNormSettings& s, const Tensor& query_weight);

}  // namespace redco
