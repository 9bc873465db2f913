// The `model:` section: where the weights and the architecture come from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

struct ModelSettings {
  // The type of matrices that no file gives one (ParamSpec::storage).
  DType weights() const { return weight_dtype.value_or(DType::f32); }

  std::optional<std::string> path;
  std::optional<std::string> preset;
  std::optional<std::string> arch;
  bool random = false;
  std::optional<std::string> adapter;
  std::optional<std::string> tokenizer;
  std::optional<DType> weight_dtype;  // nullopt: auto
  bool resize_embeddings = false;
  std::vector<std::string> ignore_config_keys;
  // Hugging Face config key -> JSON text. The model family checks names and values.
  std::map<std::string, std::string> config;

  void visit(SettingsVisitor& v) {
    v.field("path", path,
            "Hugging Face model: a folder with weights, config.json and tokenizer, a GGUF file, or the id of "
            "a model in the hub cache, e.g. gpt2 or org/name@revision")
        .path();
    v.field("preset", preset, "known architecture, e.g. gpt-j-6b; random weights unless model.path is set");
    v.field(
        "arch", arch,
        "model family, e.g. gpt2, or a Python file with a class derived from redco.ModelFamily, with random "
        "weights; its sizes are config keys in this section");
    v.field(
         "random", random,
         "random weights in predict, evaluate and chat if there is no checkpoint and no model.path; false: "
         "an error. Training with preset or arch always starts from random weights")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field("adapter", adapter,
            "folder of a PEFT (LoRA) adapter for the model; model.path may name an adapter folder too if its "
            "base model is found")
        .path();
    v.field("tokenizer", tokenizer,
            "tokenizer: a file, a folder, a model id as in model.path, or bytes (one token per byte); ~: the "
            "tokenizer of model.path")
        .looks_like("`bytes` or a path")
        .path();
    v.choice(
         "weight_dtype", weight_dtype,
         {{"auto", std::nullopt},
          {"fp32", DType::f32},
          {"bf16", DType::bf16},
          {"int8", DType::q8},
          {"int4", DType::q4}},
         "type of the weights of linear layers, experts and embeddings in memory. auto: the quantized blocks of "
         "a GGUF file stay as they are, all other weights are fp32. bf16 halves the memory of fp32 and the bytes "
         "that a generated token reads; int8 and int4 take 8.5 and 5 bits per weight (groups of 32 along a "
         "layer's inputs with a scale, int4 also with a minimum) and are quantized when they are loaded. Sums "
         "are fp32. In a training, bf16 weights that are trained have an fp32 copy in the optimizer, which is "
         "updated (master weights); int8, int4 and the blocks of a GGUF file need train.lora")
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::job);
    v.field("resize_embeddings", resize_embeddings,
            "more rows in the token embedding and the head if the tokenizer has more ids than the model of "
            "model.path; new rows are the mean of the others. false: an error")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::either);
    v.field("ignore_config_keys", ignore_config_keys,
            "keys of the model's config.json that are ignored instead of an error")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::either);
    v.rest(config,
           "key of the model's Hugging Face config, e.g. n_layer: 4; overrides model.path or model.preset")
        .on_resume(OnResume::error)
        .noted_if_named("drop");
  }
};

}  // namespace redco
