// Code shared by text-generating pipelines: from settings and examples to answers as JSON.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "generate/text_stream.h"
#include "pipeline/pipeline.h"

namespace redco {

// A JSON object with the names of the settings, eos_ids, pad_id, ...
std::string to_json(const TextGeneration& g);

// Ids of special tokens: from generation_config.json in `folder` if it exists, else from the config, else the
// tokenizer's end token. A decoder begins with
// decoder_start_token_id, from either file, else with bos_token_id. Other defaults in a
// generation_config.json are ignored: the job sets them (GenerationSettings). ContentsError for invalid ids.
GenerationTokens generation_tokens(const std::string& folder, const ConfigJson& config,
                                   const Tokenizer* tokenizer);

// UsageError unless the model is a causal language model.
void require_causal_lm(const Model& model, const char* pipeline);

// The text of an answer's tokens, without special tokens.
Decode decoder_of(const Tokenizer& tokenizer);

// Answers each example's ids["prompt"]. The decoder of an encoder-decoder model begins with it, or without it
// with decoder_start,
// and `encode` returns its encoder's output for the examples. One JSON object each:
//   {"prediction": text, "ids": [new tokens], "finish_reason": "eos" | "length" | "stop"}
// with "score" for beams, and lists if there are several answers. The prediction ends before a stop text.
// decode: of an answer's tokens; default: decoder_of().
std::vector<std::string> predict_text(const Model& model, const Tokenizer& tokenizer, const ParamTree& params,
                                      std::span<const Example> examples, const TextGeneration& g,
                                      const StepContext& ctx,
                                      const std::function<Memory(std::span<const i64> examples)>& encode = {},
                                      Decode decode = {});

// [n, shape...]: examples[which].values[field].
Tensor example_values(std::span<const Example> examples, std::span<const i64> which, const std::string& field,
                      const Shape& shape);

// The encoder's output for examples[which].ids[field], padded on the right.
Memory encode_text(const Model& model, const ParamTree& params, std::span<const Example> examples,
                   std::span<const i64> which, const std::string& field);

}  // namespace redco
