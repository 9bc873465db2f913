// The optimizers by their settings.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "optim/adafactor.h"
#include "optim/adamw.h"
#include "optim/muon.h"
#include "optim/rule_optimizer.h"
#include "optim/sgd.h"

namespace redco {

using OptimizerSettings =
    std::variant<AdamWSettings, SgdSettings, MuonSettings, AdafactorSettings, RuleSettings>;

// members[i]: parameter i may be updated; empty: all trained ones.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings, const ParamTree& params,
                                          StateSharding sharding, const std::vector<bool>& members = {});

// Number of state tensors of a parameter's shape that each parameter has, or the least number.
int states_of(const OptimizerSettings& settings);

}  // namespace redco
