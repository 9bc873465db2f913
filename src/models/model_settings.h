// The `model:` section: where the weights and the architecture come from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

struct ModelSettings {
  std::optional<std::string> path;
  std::optional<std::string> preset;
  std::optional<std::string> arch;
  bool random = false;
  std::optional<std::string> adapter;
  std::optional<std::string> tokenizer;
  std::vector<std::string> ignore_config_keys;
  // Hugging Face config key -> JSON text. The model family checks names and values.
  std::map<std::string, std::string> config;

  void visit(SettingsVisitor& v) {
    v.field("path", path,
            "Hugging Face folder with weights, config.json and tokenizer; or the id of a model in the hub's "
            "cache, such as gpt2 or org/name@revision")
        .path();
    v.field(
        "preset", preset,
        "name of a published architecture, such as gpt-j-6b; the weights are random unless path is given");
    v.field("arch", arch,
            "model family, such as gpt2, with sizes from the config keys in this section; random weights");
    v.field("random", random,
            "use random weights if there is no checkpoint and no model.path: predict, evaluate and chat; "
            "false makes that an error. Training with preset or arch always begins with random weights")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field("adapter", adapter,
            "folder of a PEFT adapter (LoRA) for the model; model.path may be one, too, if its base is found")
        .path();
    v.field("tokenizer", tokenizer,
            "tokenizer: a file or folder, or an id like in path; ~ is the tokenizer of model.path")
        .looks_like("`bytes` or a path");
    v.field("ignore_config_keys", ignore_config_keys, "keys of the model's config.json that redco may ignore")
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::either);
    v.rest(config,
           "a key of the model's Hugging Face config, e.g. n_layer: 4; overrides the one in path or preset")
        .on_resume(OnResume::error)
        .noted_if_named("drop");
  }
};

}  // namespace redco
