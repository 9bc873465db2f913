#include "train/folder_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "ckpt/manifest.h"
#include "ckpt/params_io.h"
#include "models/config_tree.h"
#include "train/checkpoint.h"

namespace redco {

namespace {

// UsageError if no loaded shared object has the config's family, but the training that made one of these
// checkpoints ("": none) had a plugin with it.
void require_family(const nlohmann::ordered_json& config, const std::vector<std::string>& checkpoints) {
  const auto type = config.find("model_type");
  if (type == config.end() || !type->is_string()) return;
  const auto family = type->get<std::string>();
  const auto known = model_families();
  if (std::ranges::find(known, family) != known.end()) return;
  for (const std::string& checkpoint : checkpoints)
    // A trained model of `models:` is in models/NAME of its checkpoint.
    for (const std::string& folder : {checkpoint, parent_path(parent_path(checkpoint))}) {
      const std::string path = join_path(folder, ckpt::kStatePath);
      if (checkpoint.empty() || !exists(path)) continue;
      const TrainState state = parse_state(read_file(path, 1 << 26), path);
      for (const PluginRecord& p : state.plugins) {
        if (std::ranges::find(p.families, family) == p.families.end()) continue;
        const std::string there = (std::filesystem::path(state.started_in) / p.path).lexically_normal();
        throw UsageError(
            "[plugins] {} is a model of the family {}, which is not built in. Its training had it from {}, "
            "which a checkpoint does not load. Add it to the job: plugins=[{}]",
            checkpoint, family, p.path, exists(there) ? there : p.path);
      }
    }
}

}  // namespace

std::unique_ptr<Model> make_folder_model(const std::string& folder, const FolderConfig& config) {
  require_family(config.config.tree().json, {folder, config.adapter});
  const auto make = [&](const std::map<std::string, std::string>& more) {
    auto overrides = config.overrides;
    overrides.insert(more.begin(), more.end());
    return make_model(ModelConfig(config.config, overrides, config.ignore_keys, config.places));
  };
  auto model = make({});
  const bool weights = !folder.empty() && (exists(join_path(folder, "model.safetensors")) ||
                                           exists(join_path(folder, "model.safetensors.index.json")));
  if (!weights || model->params().aliases.empty() || config.overrides.count("tie_word_embeddings"))
    return model;
  const auto apart = ckpt::stored_apart(
      ckpt::ModelFiles::open(folder), [&](const std::string& n) { return model->canonical_name(n); },
      model->params().aliases);
  if (apart.empty()) return model;
  const std::string head = "lm_head.weight";
  if (apart != std::vector{head})
    throw ContentsError("[checkpoint] {}: {} differ{} from the tensor that config.json ties {} to", folder,
                        fmt::join(apart, ", "), apart.size() == 1 ? "s" : "",
                        apart.size() == 1 ? "it" : "them");
  log_once(
      LogLevel::warn,
      fmt::format("{}: config.json ties {} to the embedding (tie_word_embeddings), but the files have two "
                  "different tensors; using the stored head, as transformers does. If that is right, set "
                  "tie_word_embeddings: false in config.json; model.tie_word_embeddings=true uses the "
                  "embedding",
                  folder, head));
  return make(model->untied_config());
}

}  // namespace redco
