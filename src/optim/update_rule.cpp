#include "optim/update_rule.h"

#include <algorithm>

#include "base/registry.h"

namespace redco {

namespace {

constexpr const char* kBuiltInOptimizers[] = {"adamw", "sgd", "muon", "adafactor"};

Registry<PluginOptimizer>& optimizers() {
  static auto& known = *new Registry<PluginOptimizer>("optimizer");
  return known;
}

}  // namespace

std::vector<StateSpec> UpdateRule::state_of(const ParamSpec& spec) const {
  std::vector<StateSpec> out;
  for (const std::string& name : state()) out.push_back({name, spec.shape});
  return out;
}

void add_optimizer(const PluginOptimizer& optimizer) {
  const bool python = optimizer.origin.ends_with(".py");
  optimizers().add(optimizer,
                   fmt::format("{}(\"{}\")", python ? "Optimizer" : "REDCO_OPTIMIZER", optimizer.name),
                   std::ranges::count(kBuiltInOptimizers, optimizer.name) > 0);
}

const PluginOptimizer* plugin_optimizer(const std::string& name) { return optimizers().find(name); }

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out(std::begin(kBuiltInOptimizers), std::end(kBuiltInOptimizers));
  for (const PluginOptimizer& o : optimizers().all()) out.push_back(o.name);
  return out;
}

}  // namespace redco
