// Autoregressive decoding of decoder-only models: greedy and by sampling, with a KV cache.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "models/model.h"

namespace redco {

struct GenerationSettings {
  i64 max_new_tokens = 64;
  double temperature = 0;  // 0: the likeliest token
  i64 top_k = 0;           // 0: all
  double top_p = 1;        // nucleus (Holtzman et al. 2020)
  u64 seed = 42;
  std::vector<i32> eos_ids;  // any ends a row
  i32 pad_id = 0;
};

// Prompts [rows][tokens], any lengths >= 1. Rows run side by side, padded on the left. Runs on the current
// context's mp group: every rank of it makes the call with the same prompts and gets the same answer (decided
// on its first rank). `ordinals[i]` names row i for its random draws, so that they don't depend on how rows
// are batched. Returns the new tokens of each row, eos included. on_tokens (may be empty): called on every
// rank after each step with the row indices still running and their new tokens.
std::vector<std::vector<i32>> generate(
    const Model& model, const ParamTree& params, const std::vector<std::vector<i32>>& prompts,
    const std::vector<i64>& ordinals, const GenerationSettings& settings,
    const std::function<void(const std::vector<i64>&, const std::vector<i32>&)>& on_tokens = {});

// The distribution that sampling draws from: temperature, then top-k, then top-p (transformers' order).
// logits[V] -> probabilities.
std::vector<float> sampling_probabilities(std::span<const float> logits, const GenerationSettings& s);

// Logits of each row's last position, [rows, V] on every rank of the mp group.
std::vector<float> next_token_logits(const Model& model, const ParamTree& params,
                                     const std::vector<std::vector<i32>>& prompts, i32 pad_id);

}  // namespace redco
