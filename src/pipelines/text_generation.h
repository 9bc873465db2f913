// What pipelines that generate text share: from settings and examples to answers as JSON.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "generate/text_stream.h"
#include "train/pipeline.h"

namespace redco {

// A JSON object; its members have the settings' names, eos_ids, pad_id, ...
std::string to_json(const TextGeneration& g);

// Ids of special tokens: those of generation_config.json in `folder` where it is there, else those of the
// config (`config_json`, which `origin` names); where both are silent, the tokenizer's end token. A decoder
// begins with decoder_start_token_id, which the config may say as well, else with bos_token_id. All other
// defaults that a generation_config.json has are the job's to say (GenerationSettings). ContentsError for ids
// that are none.
GenerationTokens generation_tokens(const std::string& folder, const std::string& config_json,
                                   const std::string& origin, const Tokenizer* tokenizer);

// The text of an answer's tokens, without special ones.
Decode decoder_of(const Tokenizer& tokenizer);

// Answers each example's ids["prompt"]; an encoder-decoder model's decoder begins with decoder_start, and
// `encode` gives what its encoder makes of the examples. One JSON object each:
//   {"prediction": text, "ids": [new tokens], "finish_reason": "eos" | "length" | "stop"}
// with "score" for beams, and lists where there are several answers. The prediction ends before a stop text.
std::vector<std::string> predict_text(
    const Model& model, const Tokenizer& tokenizer, const ParamTree& params,
    std::span<const Example> examples, const TextGeneration& g, const StepContext& ctx,
    const std::function<Memory(std::span<const i64> examples)>& encode = {});

// The encoder's memory of examples[which].ids[field], padded on the right.
Memory encode_text(const Model& model, const ParamTree& params, std::span<const Example> examples,
                   std::span<const i64> which, const std::string& field);

}  // namespace redco
