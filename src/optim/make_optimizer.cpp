#include "optim/make_optimizer.h"

namespace redco {

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, const ParamTree& params,
                                          StateSharding sharding, const std::vector<bool>& members) {
  if (const auto* sgd = std::get_if<SgdSettings>(&settings))
    return std::make_unique<Sgd>(*sgd, params, sharding, members);
  if (const auto* muon = std::get_if<MuonSettings>(&settings))
    return std::make_unique<Muon>(*muon, params, sharding, members);
  if (const auto* adafactor = std::get_if<AdafactorSettings>(&settings))
    return std::make_unique<RuleOptimizer>(adafactor_rule(*adafactor), params, sharding, members);
  if (const auto* rule = std::get_if<RuleSettings>(&settings))
    return std::make_unique<RuleOptimizer>(*rule, params, sharding, members);
  return std::make_unique<AdamW>(std::get<AdamWSettings>(settings), params, sharding, members);
}

int states_of(const OptimizerSettings& settings) {
  if (const auto* rule = std::get_if<RuleSettings>(&settings))
    return static_cast<int>(rule->rule->state().size());
  if (std::holds_alternative<MuonSettings>(settings)) return 1;       // AdamW's parameters have 2
  if (std::holds_alternative<AdafactorSettings>(settings)) return 0;  // vectors have 1
  const auto* sgd = std::get_if<SgdSettings>(&settings);
  return sgd ? (sgd->momentum > 0 ? 1 : 0) : 2;
}

}  // namespace redco
