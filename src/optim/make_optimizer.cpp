#include "optim/make_optimizer.h"

namespace redco {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, const ParamTree& params,
                                          StateSharding sharding, const std::vector<bool>& members) {
  if (const auto* sgd = std::get_if<SgdSettings>(&settings))
    return std::make_unique<Sgd>(*sgd, params, sharding, members);
  if (const auto* rule = std::get_if<RuleSettings>(&settings))
    return std::make_unique<RuleOptimizer>(*rule, params, sharding, members);
  return std::make_unique<AdamW>(std::get<AdamWSettings>(settings), params, sharding, members);
}

int states_of(const OptimizerSettings& settings) {
  if (const auto* rule = std::get_if<RuleSettings>(&settings))
    return static_cast<int>(rule->rule->state().size());
  const auto* sgd = std::get_if<SgdSettings>(&settings);
  return sgd ? (sgd->momentum > 0 ? 1 : 0) : 2;
}

}  // namespace redco
