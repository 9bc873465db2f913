#include "train/step_options.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {
// UsageError: no such optimizer, or settings that it does not have.
RuleSettings rule_settings(const TrainSettings& t) {
  const PluginOptimizer* plugin = plugin_optimizer(t.optimizer);
  if (!plugin) {
    const std::string near = nearest(t.optimizer, optimizer_names());
    throw UsageError(
        "[optimizer] train.optimizer={}: no such optimizer; {}known: {}, and those of plugins "
        "(plugins: [./x.so])",
        excerpt(t.optimizer), near.empty() ? "" : "did you mean " + near + "? ",
        fmt::join(optimizer_names(), ", "));
  }
  std::string json = "{";
  for (const auto& [key, value] : t.optimizer_settings.values)
    json += (json.size() > 1 ? "," : "") + nlohmann::json(key).dump() + ":" + value;
  return {.name = plugin->name,
          .origin = plugin->origin,
          .rule = plugin->make(json + "}"),
          .weight_decay = t.weight_decay,
          .decay_norms_and_biases = t.decay_norms_and_biases};
}
}  // namespace

StepOptions step_options(const TrainSettings& t, const ParallelSettings& parallel, DType weights) {
  StepOptions o{.clip_grad_norm = t.clip_grad_norm,
                .recompute_blocks = t.recompute == Recompute::block,
                .sequence_parallel = parallel.sequence_parallel,
                .optimizer = AdamWSettings{.beta1 = t.adam_beta1,
                                           .beta2 = t.adam_beta2,
                                           .epsilon = t.adam_epsilon,
                                           .weight_decay = t.weight_decay,
                                           .decay_norms_and_biases = t.decay_norms_and_biases},
                .sharding = parallel.sharding(),
                .weights = weights};
  if (t.optimizer == "sgd") {
    o.optimizer = SgdSettings{.momentum = t.momentum,
                              .weight_decay = t.weight_decay,
                              .decay_norms_and_biases = t.decay_norms_and_biases};
  } else if (t.optimizer == "muon") {
    o.optimizer = MuonSettings{.momentum = t.muon.momentum,
                               .nesterov = t.muon.nesterov,
                               .iterations = t.muon.iterations,
                               .scale = t.muon.scale == "adamw"      ? MuonScale::adamw
                                        : t.muon.scale == "original" ? MuonScale::original
                                                                     : MuonScale::spectral,
                               .others = std::get<AdamWSettings>(o.optimizer)};
  } else if (t.optimizer == "adafactor") {
    o.optimizer = AdafactorSettings{.decay_rate = t.adafactor.decay_rate,
                                    .epsilon1 = t.adafactor.epsilon1,
                                    .epsilon2 = t.adafactor.epsilon2,
                                    .clip_threshold = t.adafactor.clip_threshold,
                                    .scale_parameter = t.adafactor.scale_parameter,
                                    .weight_decay = t.weight_decay,
                                    .decay_norms_and_biases = t.decay_norms_and_biases};
  } else if (t.optimizer != "adamw") {
    o.optimizer = rule_settings(t);
    return o;
  }
  if (!t.optimizer_settings.values.empty())
    throw UsageError(
        "[optimizer] train.optimizer_settings.{}: these are settings of an optimizer of a plugin, but "
        "train.optimizer is {}. Remove them",
        t.optimizer_settings.values.begin()->first, t.optimizer);
  return o;
}

}  // namespace redco
