// Autoregressive decoding with a KV cache, for decoder-only and encoder-decoder models: greedy, by sampling,
// or by beam search.
//
// generate() computes batch_size answers at a time. When an answer ends, the next prompt takes its rows while
// the other rows continue: the prompt is prefilled alone, and its rows of the cache are copied into the free
// ones (RowCache). Scheduler assigns answers to rows, AnswerPasses runs the model on them,
// TokenChooser and BeamSearch choose the tokens. An answer depends only on its prompt, the settings and its
// ordinal, not on the other rows, up to the rounding of the model's sums.
//
// Every rank of the current context's mp group makes the same call and gets the same answers. The first rank
// decides for all (generate/token_chooser.h), because rounding may differ between CPU types.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "generate/beam_search.h"
#include "generate/generation_settings.h"
#include "models/model.h"

namespace redco {

struct GenerationPrompt {
  // The tokens that the decoder continues, at least one: the prompt, or an encoder-decoder model's
  // decoder_start_token_id.
  std::vector<i32> ids;
  i64 ordinal = 0;  // of the random draws: the key of a draw is (seed, ordinal, sample, position)
};

// The encoder's output for some prompts.
struct Memory {
  Tensor states;          // [n, S, C]
  std::vector<i32> mask;  // [n, S], 0 is padding; empty: no padding
};

// A cache kept between calls: tokens at the beginning of the next prompt that it holds are not computed
// again.
struct PrefixCache {
  ModelCache cache;
  std::vector<i32> ids;  // the cached tokens
};

struct GenerateOptions {
  i64 batch_size = 8;
  // Encoder-decoder models: encodes these prompts, one row for each. Called on every rank.
  std::function<Memory(std::span<const i64> prompts)> encode;
  // Optional; for one greedy or sampled answer of a decoder-only model.
  PrefixCache* prefix = nullptr;
  // Called after each step, on every rank.
  std::function<void()> on_step;

  // --- called on the mp group's first rank only
  // Whether an answer ends with these new tokens (a stop text).
  std::function<bool(std::span<const i32> new_ids)> stops;
  // Gets each new token of a greedy or sampled answer; `last` marks the answer's last token.
  std::function<void(i64 prompt, i64 sample, std::span<const i32> new_ids, bool last)> on_token;
  // Called at each step; true ends all answers with the tokens they have.
  std::function<bool()> interrupted;
};

// The type of the cache that the settings choose.

// num_return_sequences answers to each prompt, in order. An answer has at most max_new_tokens tokens, and at
// most as many as the model has positions for. Error(non_finite) for logits that are not finite. REQUIRES:
// each prompt is shorter than model.length_limit().
std::vector<std::vector<Answer>> generate(const Model& model, const ParamTree& params,
                                          std::span<const GenerationPrompt> prompts,
                                          const GenerationSettings& settings, const GenerationTokens& tokens,
                                          const GenerateOptions& options = {});

}  // namespace redco
