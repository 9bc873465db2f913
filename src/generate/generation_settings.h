// Generation settings, for `predict:` and `eval.generation:`, with Hugging Face's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "nn/cache_dtype.h"

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
  CacheDType cache_dtype = CacheDType::fp32;

  void visit(SettingsVisitor& v) {
    v.field("max_new_tokens", max_new_tokens, "maximum number of generated tokens per answer")
        .at_least(1)
        .at_most(1 << 24);
    v.field("min_new_tokens", min_new_tokens,
            "minimum number of generated tokens; the end token is excluded before it")
        .at_least(0);
    v.field("temperature", temperature,
            "sampling temperature; 0: greedy decoding (or beam search with num_beams > 1)")
        .at_least(0);
    v.field("top_k", top_k, "top-k sampling: only the k most likely tokens; ~: all tokens").at_least(1);
    v.field("top_p", top_p,
            "top-p (nucleus) sampling: the most likely tokens with this total probability; 1: all tokens")
        .above(0)
        .at_most(1);
    v.field("min_p", min_p,
            "min-p sampling: tokens with at least this fraction of the highest token probability; 0: all "
            "tokens")
        .at_least(0)
        .at_most(1);
    v.field("repetition_penalty", repetition_penalty,
            "penalty on tokens that are already in the prompt or the answer: positive logits are divided by "
            "it, negative ones multiplied; 1: no penalty")
        .above(0);
    v.field("no_repeat_ngram_size", no_repeat_ngram_size,
            "length of token n-grams that may occur only once in prompt and answer; 0: no limit")
        .at_least(0);
    v.field("num_beams", num_beams, "number of beams; above 1: beam search; 1: no beam search")
        .at_least(1)
        .at_most(1024);
    v.field("length_penalty", length_penalty,
            "length exponent in beam search: a beam's score is log-probability / length^length_penalty; "
            "larger values prefer longer answers");
    v.field("early_stopping", early_stopping,
            "end of beam search: true stops at num_beams finished answers; false stops when a better answer "
            "is unlikely; never stops only when no better answer is possible")
        .one_of({"false", "true", "never"});
    v.field("num_return_sequences", num_return_sequences,
            "number of answers per prompt: samples, or the best beams")
        .at_least(1)
        .at_most(1 << 16);
    v.field("stop", stop, "stop texts: an answer ends before the first of them").one_or_more().literal();
    v.field("seed", seed, "random seed of sampling").at_least(0);
    v.choice("cache_dtype", cache_dtype, {{"fp32", CacheDType::fp32}, {"bf16", CacheDType::bf16}},
             "data type of the KV cache; bf16 halves its memory and the bytes that a step reads of it; sums "
             "stay fp32");
  }

  bool draws() const { return temperature > 0; }
};

// Tokens of time, the last ones of a vocabulary: each is 20 ms after the one before.
struct TimestampTokens {
  i32 first = 0;                  // of time 0
  i32 none = 0;                   // <|notimestamps|>
  i32 end = 0;                    // the end token
  std::optional<i32> most_first;  // the largest time that may begin a window, in tokens after `first`
};

// Ids of special tokens, from generation_config.json, else config.json, else the tokenizer.
struct GenerationTokens {
  std::vector<i32> eos;  // end tokens
  i32 pad = 0;
  std::optional<i32> decoder_start;           // encoder-decoder models: the first token of every output
  std::optional<i32> forced_bos;              // the second token, if only one token was given
  std::optional<i32> forced_eos;              // the last token, at max_new_tokens
  std::vector<i32> suppress, begin_suppress;  // tokens that are never generated, and not as the first one
  std::vector<i32> first_among;               // the first generated token is one of these; empty: any
  std::optional<TimestampTokens> timestamps;  // rules for times (generate/timestamp_rules.h)
};

// The generation part of a job.
struct TextGeneration {
  GenerationSettings settings;
  GenerationTokens tokens;
  i64 batch_size = 8;
};

}  // namespace redco
