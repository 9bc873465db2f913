#include "train/folder_model.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/params_io.h"

namespace redco {

std::unique_ptr<Model> make_folder_model(const std::string& folder, const ModelConfigText& config) {
  const auto make = [&](const std::map<std::string, std::string>& more) {
    auto overrides = config.overrides;
    overrides.insert(more.begin(), more.end());
    return make_model(ModelConfig(config.json, config.origin, overrides, config.ignore_keys, config.places));
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
  return make(model->untied_config());
}

}  // namespace redco
