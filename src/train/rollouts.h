// Rollouts: answers that the model itself gives, with their log-probabilities, for algorithms that learn from
// them (GRPO, online DPO).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generate/generation_settings.h"
#include "train/pipeline.h"

namespace redco {

struct Rollout {
  std::vector<i32> ids;          // the new tokens; the end token too if the model ended the answer
  std::string text;              // without special tokens
  std::vector<float> log_probs;  // of each new token, under the distribution of the model (temperature 1)
  std::string finish_reason;     // "eos", "length", "stop"
};

// num_return_sequences answers to each prompt, in order. The prompts are spread over the replicas; all ranks
// get all answers. Draws are keyed by (generation.settings.seed, first_ordinal + index of the prompt, sample,
// position): give another first_ordinal in each epoch, for example the number of prompts so far. The answers
// are the same on every rank, and in every run with equal model shards and threads. Nothing is recorded on
// the tape. Collective: call it in source().
std::vector<std::vector<Rollout>> sample(const Pipeline& pipeline, const ParamTree& params,
                                         std::span<const std::vector<i32>> prompts,
                                         const TextGeneration& generation, i64 first_ordinal = 0);

}  // namespace redco
