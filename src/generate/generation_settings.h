// How text is generated: the settings of `predict:` and of `eval.generation:`, under Hugging Face's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// do_sample is not a setting: a temperature above 0 draws, 0 takes the likeliest token (or, with num_beams,
// the likeliest continuation). What is silent here has these defaults; of a model's generation_config.json
// only the ids of special tokens count (GenerationTokens), so that a job means the same with every model.
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
    v.field("max_new_tokens", max_new_tokens, "most tokens generated for a prompt")
        .at_least(1)
        .at_most(1 << 24);
    v.field("min_new_tokens", min_new_tokens, "the end token is not taken before this many").at_least(0);
    v.field("temperature", temperature, "0 takes the likeliest token; above, tokens are drawn").at_least(0);
    v.field("top_k", top_k, "draw among the k likeliest tokens").at_least(1);
    v.field("top_p", top_p, "draw among the likeliest tokens that hold this much probability")
        .above(0)
        .at_most(1);
    v.field("min_p", min_p, "draw among tokens with at least this share of the likeliest one's probability")
        .at_least(0)
        .at_most(1);
    v.field("repetition_penalty", repetition_penalty,
            "above 1, tokens that prompt or answer have already are less likely: their scores are divided by "
            "it (multiplied if negative)")
        .above(0);
    v.field("no_repeat_ngram_size", no_repeat_ngram_size,
            "no run of this many tokens comes twice, prompt included; 0 allows all")
        .at_least(0);
    v.field("num_beams", num_beams, "above 1, beam search with this many beams").at_least(1).at_most(1024);
    v.field("length_penalty", length_penalty,
            "beams are compared by log-probability / length^length_penalty: above 0 prefers long answers");
    v.field("early_stopping", early_stopping,
            "true ends a beam search at num_beams finished answers; false when a better one is unlikely; "
            "never when none can come")
        .one_of({"false", "true", "never"});
    v.field("num_return_sequences", num_return_sequences,
            "answers to each prompt: samples, or the best beams")
        .at_least(1)
        .at_most(1 << 16);
    v.field("stop", stop, "texts that end an answer, and are cut from it").one_or_more();
    v.field("seed", seed, "of the draws").at_least(0);
  }

  bool draws() const { return temperature > 0; }
};

// Ids of tokens with a role, from generation_config.json, else config.json, else the tokenizer.
struct GenerationTokens {
  std::vector<i32> eos;  // any ends an answer
  i32 pad = 0;
  std::optional<i32> decoder_start;  // encoder-decoder models: what every output begins with
  std::optional<i32> forced_bos;     // the token after a lone first one
  std::optional<i32> forced_eos;     // the last of max_new_tokens
};

// What a job says about generating.
struct TextGeneration {
  GenerationSettings settings;
  GenerationTokens tokens;
  i64 batch_size = 8;
};

}  // namespace redco
