// Generation settings, for `predict:` and `eval.generation:`, with Hugging Face's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// There is no do_sample: a temperature above 0 samples; 0 takes the most likely token (with num_beams the
// most likely continuation). Defaults come from here, not from a model's generation_config.json, so that a
// job means the same with every model. Only the ids of special tokens are read from there (GenerationTokens).
struct GenerationSettings {
  i64 max_new_tokens = 64, min_new_tokens = 0;
  double temperature = 0;
  std::optional<i64> top_k;
  double top_p = 1, min_p = 0;
  double repetition_penalty = 1;
  i64 no_repeat_ngram_size = 0;
  i64 num_beams = 1;
  double length_penalty = 1;
  std::string early_stopping = "false";
  i64 num_return_sequences = 1;
  std::vector<std::string> stop;
  i64 seed = 42;

  void visit(SettingsVisitor& v) {
    v.field("max_new_tokens", max_new_tokens, "largest number of generated tokens per prompt")
        .at_least(1)
        .at_most(1 << 24);
    v.field("min_new_tokens", min_new_tokens,
            "smallest number of generated tokens; the end token is forbidden until then")
        .at_least(0);
    v.field("temperature", temperature, "sampling temperature; 0 always takes the most likely token")
        .at_least(0);
    v.field("top_k", top_k, "number of most likely tokens to sample from; ~ is all").at_least(1);
    v.field("top_p", top_p, "total probability of the most likely tokens to sample from (nucleus sampling)")
        .above(0)
        .at_most(1);
    v.field("min_p", min_p, "smallest probability of a sampled token, relative to the most likely token")
        .at_least(0)
        .at_most(1);
    v.field("repetition_penalty", repetition_penalty,
            "penalty for tokens that the prompt or the answer already has: above 1, their scores are divided "
            "by it (multiplied if negative)")
        .above(0);
    v.field("no_repeat_ngram_size", no_repeat_ngram_size,
            "size of the n-grams that may occur only once, prompt included; 0 allows all")
        .at_least(0);
    v.field("num_beams", num_beams, "number of beams; above 1 selects beam search").at_least(1).at_most(1024);
    v.field("length_penalty", length_penalty,
            "exponent of the length in a beam's score, log-probability / length^length_penalty; above 0 "
            "prefers long answers");
    v.field("early_stopping", early_stopping,
            "end of a beam search: true at num_beams finished answers; false when a better answer is "
            "unlikely; never when a better answer is impossible")
        .one_of({"false", "true", "never"});
    v.field("num_return_sequences", num_return_sequences,
            "number of answers per prompt: samples, or the best beams")
        .at_least(1)
        .at_most(1 << 16);
    v.field("stop", stop, "stop texts: each ends an answer and is removed from it").one_or_more();
    v.field("seed", seed, "random seed of sampling").at_least(0);
  }

  bool draws() const { return temperature > 0; }
};

// Ids of special tokens, from generation_config.json, else config.json, else the tokenizer.
struct GenerationTokens {
  std::vector<i32> eos;  // end tokens
  i32 pad = 0;
  std::optional<i32> decoder_start;  // encoder-decoder models: the first token of every output
  std::optional<i32> forced_bos;     // the second token, if only one token was given
  std::optional<i32> forced_eos;     // the last token, at max_new_tokens
};

// The generation part of a job.
struct TextGeneration {
  GenerationSettings settings;
  GenerationTokens tokens;
  i64 batch_size = 8;
};

}  // namespace redco
