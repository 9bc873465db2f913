// The decoder shared by LLaMA-like families: RMS norms, rotary positions in half-split pairs, grouped
// key/value heads, gated MLPs. A family's constructor reads its config into `arch_` and calls declare().
#pragma once

#include <string>
#include <vector>

#include "models/model.h"
#include "models/spec_builder.h"

namespace redco {

class LlamaDecoder : public Model {
 public:
  // A model without head is saved without the prefix. Until transformers 4.32 the rotary frequencies were
  // buffers.
  std::string canonical_name(const std::string& stored) const override;

 protected:
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override;
  i64 window(i64 layer) const override { return arch_.layers[layer].window; }

  struct Layer {
    i64 window = 0;      // 0: all earlier tokens
    bool local = false;  // rotated by local_rope
  };
  struct Architecture {
    i64 width = 0, inner = 0;
    i64 padding_row = -1;
    HeadGeometry heads;
    std::string activation;
    double attention_dropout = 0, eps = 1e-6, std = 0.02;
    bool qkv_bias = false, o_bias = false, mlp_bias = false, tied = false;
    RopeOptions rope, local_rope;
    std::vector<Layer> layers;
    double score_scale = 1;  // of q k^T
    // Differences from LLaMA.
    bool head_norms = false;   // RMS norms of each head's queries and keys
    bool unit_offset = false;  // norm weights are stored minus one
    bool outer_norms = false;  // norms also after attention and MLP
    double embedding_scale = 1;
    double score_cap = 0, logit_cap = 0;  // > 0: cap * tanh(x / cap)
  };

  // Reads the keys that all families share: sizes, dropout, epsilon, tied embeddings. `kv_heads`: default of
  // num_key_value_heads (0: the number of heads); `head_dim`: default of head_dim (0: width / heads).
  struct Defaults {
    i64 max_length, kv_heads = 0, head_dim = 0;
    double eps = 1e-6;
    bool tied = false;
  };
  void read_common(ModelConfig& c, const Defaults& d);
  // layer_types, one text per layer; *given becomes false if the key is absent.
  std::vector<bool> read_sliding_layers(ModelConfig& c, bool* given) const;

  void declare();
  // A layer's MLP or mixture of experts: [B, T, C] -> [B, T, C].
  virtual void declare_mlp(SpecBuilder& b, const std::string& layer);
  virtual Tensor mlp(const ParamTree& p, const std::string& layer, const Tensor& x,
                     const ApplyOptions& o) const;

  Architecture arch_;

 private:
  Tensor norm(const ParamTree& p, const std::string& prefix, const Tensor& x) const;
  Tensor block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
               const Tensor& x) const;
};

}  // namespace redco
