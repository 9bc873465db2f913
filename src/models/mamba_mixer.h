// The mixer of Mamba-2 (Dao & Gu 2024): a linear recurrence per head after a short convolution, then a gate
// and a norm over the heads of each group. No positions: the order of tokens is in the recurrence.
//
// Legend: B batch, T tokens, C model width, H heads of width P, I = H P inner width, G groups of heads that
// share B and C (here: keys and queries) of N numbers, K taps of the convolution.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/spec_builder.h"
#include "nn/layers.h"

namespace redco {

struct MambaSettings {
  i64 heads = 0, head_dim = 0, groups = 1, state = 0, taps = 4;
  double eps = 1e-5;  // of the gated norm
  bool bias = false, conv_bias = true;
  std::string activation = "silu";
  // Factors of the input, of z, x, B, C and dt, and of the output.
  double input_scale = 1, output_scale = 1;
  std::vector<double> part_scales = std::vector<double>(5, 1);
  bool normed = true;              // false: a gate without a norm
  bool gate_after_norm = false;    // norm(y) * silu(z) in place of norm(y * silu(z))
  std::optional<bool> out_bias{};  // of out_proj; nullopt: as `bias`
  double least_step = 0, most_step = std::numeric_limits<double>::infinity();  // of the recurrence
  // Initial values. std: of the projections and the convolution; 0: uniform, as torch initializes layers.
  double std = 0, out_scale = 1;
  Init steps{Init::Kind::ones};  // of dt_bias
};

// time_step_limit: [low, high], where infinity is Python's or {"__float__": "Infinity"}.
void read_step_limit(ModelConfig& c, MambaSettings& s);

// `prefix.in_proj`, `prefix.conv1d`, ... The heads are cut over mp, with the groups if there are enough of
// them.
void declare_mamba(SpecBuilder& b, const std::string& prefix, i64 width, const MambaSettings& s);
// out(norm(scan(conv(x), dt) * silu(z))) (see `normed`), [B, T, C] -> [B, T, C]. layer: index in the cache, a
// StateCache.
Tensor mamba_mixer(const ParamTree& p, const std::string& prefix, const MambaSettings& s,
                   const ApplyOptions& o, size_t layer, const Tensor& x, const Tensor& key_mask);

}  // namespace redco
