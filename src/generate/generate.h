// Autoregressive decoding with a KV cache: greedy, by sampling, by beam search; of decoder-only and of
// encoder-decoder models.
//
// Answers are worked on batch_size at once. Where one ends, the next prompt takes its place while the others
// run on: it is prefilled alone and its keys and values are copied into the freed rows (RowCache). An answer
// depends on its prompt, settings and ordinal alone, not on what runs beside it, up to the rounding of the
// model's sums.
//
// Runs on the current context's mp group: every rank of it makes the same call and gets the same answers. The
// logits stay cut over the vocabulary: each rank offers the best tokens of its part, and the group's first
// rank decides for all (rounding may differ between CPU types). Only drawing gathers whole rows.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "generate/beam_search.h"
#include "generate/generation_settings.h"
#include "models/model.h"

namespace redco {

struct GenerationPrompt {
  // What the decoder goes on from, at least one token: the prompt, or an encoder-decoder model's
  // decoder_start_token_id.
  std::vector<i32> ids;
  i64 ordinal = 0;  // names its draws: one is keyed by (seed, ordinal, sample, position)
};

// What an encoder made of some inputs.
struct Memory {
  Tensor states;          // [n, S, C]
  std::vector<i32> mask;  // [n, S], 0 is padding; empty: none
};

// A cache that outlives one call: the next prompt's tokens that it holds already are not computed again.
struct PrefixCache {
  KvCache cache;
  std::vector<i32> ids;  // what it holds
};

struct GenerateOptions {
  i64 batch_size = 8;
  // Encoder-decoder models: what the encoder makes of these prompts, one row for each. On every rank.
  std::function<Memory(std::span<const i64> prompts)> encode;
  // Of one prompt, greedy or drawn, of a decoder-only model.
  PrefixCache* prefix = nullptr;
  // After each pass through the model and what was decided on it. On every rank.
  std::function<void()> on_step;

  // --- on the mp group's first rank alone
  // Whether an answer ends with these new tokens (a stop text).
  std::function<bool(std::span<const i32> new_ids)> stops;
  // A new token of a greedy or drawn answer; its last one comes with `last`.
  std::function<void(i64 prompt, i64 sample, std::span<const i32> new_ids, bool last)> on_token;
  // Asked at each step; true ends all answers as they are.
  std::function<bool()> interrupted;
};

// num_return_sequences answers to each prompt, in order. An answer has at most max_new_tokens, or what the
// model has positions for; REQUIRES: a prompt is shorter than model.length_limit(). Logits that aren't
// numbers are an Error(non_finite).
std::vector<std::vector<Answer>> generate(const Model& model, const ParamTree& params,
                                          std::span<const GenerationPrompt> prompts,
                                          const GenerationSettings& settings, const GenerationTokens& tokens,
                                          const GenerateOptions& options = {});

// Logits of each row's last position, [rows, V] on every rank of the mp group; rows padded on the left.
std::vector<float> next_token_logits(const Model& model, const ParamTree& params,
                                     const std::vector<std::vector<i32>>& prompts);

// The passes of a batch without the choosing, for plans on a meta context: the encoder's over `encoded`
// tokens a row (0: none), a prefill of `prompt` tokens, one step that makes the cache hold `length`.
// between() is called after the prefill. -> bytes of the cache on this rank.
i64 trace_generation(const Model& model, const ParamTree& params, i64 rows, i64 encoded, i64 prompt,
                     i64 length, const std::function<void()>& between);

// Most tokens of one pass: longer prompts go through the model in pieces.
constexpr i64 kTokensOfPass = 8192;

}  // namespace redco
