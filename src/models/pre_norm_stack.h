// Layers of a transformer with norms before attention and MLP (pre-norm): of the image encoders, and of both
// towers of CLIP and SigLIP. B batch, T tokens, C channels.
#pragma once

#include <string>

#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

// Names within a layer.
struct PreNormNames {
  std::string layer = "encoder.layer";  // the index follows
  std::string query = "attention.attention.query", key = "attention.attention.key",
              value = "attention.attention.value", out = "attention.output.dense";
  std::string first_norm = "layernorm_before", second_norm = "layernorm_after";
  std::string up = "intermediate.dense", down = "output.dense";
  std::string gate_up{};  // of a gated MLP, as one tensor: the rows of gate, then those of up
};

// Standard deviations of the initial weights.
struct PreNormStds {
  double qkv, out, up, down;
};

struct PreNormSettings {
  PreNormNames names;
  i64 width, layers, inner;
  HeadGeometry heads;
  std::string activation;  // Hugging Face's name
  double eps;
  PreNormStds std;
  bool qkv_bias = true;
  bool causal = false;
  double branch_dropout = 0, attention_dropout = 0;
  double branch_scale = 0;  // > 0: branches are scaled by a vector that begins with this number
};

class PreNormStack {
 public:
  // `prefix` begins the parameters' names.
  PreNormStack(std::string prefix, PreNormSettings settings);
  void declare(SpecBuilder& b) const;
  // x [B, T, C] through all layers, without a last norm. key_mask [B, T] or undefined. Fills o.hidden_states
  // with x and the output of each layer.
  Tensor run(const ParamTree& p, const Tensor& x, const Tensor& key_mask, const ApplyOptions& o) const;

  const PreNormSettings& settings() const { return s_; }

 private:
  std::string layer(i64 i) const;
  Tensor block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x, const Tensor& mask) const;
  Tensor mlp(const ParamTree& p, const ApplyOptions& o, const std::string& layer, const Tensor& x) const;
  // The result y of a layer's first or second branch, scaled.
  Tensor scaled(const ParamTree& p, const std::string& layer, int branch, const Tensor& y) const;

  std::string prefix_;
  PreNormSettings s_;
};

}  // namespace redco
