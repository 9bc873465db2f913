#include "optim/update_rule.h"

#include <deque>
#include <mutex>

#include "base/error.h"

namespace redco {

namespace {

// Ranks may be threads of one process.
struct Optimizers {
  std::mutex mutex;
  std::deque<PluginOptimizer> all;  // entries stay where they are
};
Optimizers& optimizers() {
  static auto& known = *new Optimizers;
  return known;
}

}  // namespace

void add_optimizer(const PluginOptimizer& optimizer) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("[plugins] {}: REDCO_OPTIMIZER(\"{}\"): {}. Use another name", optimizer.origin,
                     optimizer.name, why);
  };
  if (optimizer.name.empty()) refuse("the name is empty");
  for (const std::string& name : optimizer_names())
    if (name == optimizer.name) {
      const PluginOptimizer* other = plugin_optimizer(name);
      refuse(other ? other->origin + " has an optimizer of this name" : "this optimizer is built in");
    }
  Optimizers& known = optimizers();
  const std::lock_guard lock(known.mutex);
  known.all.push_back(optimizer);
}

const PluginOptimizer* plugin_optimizer(const std::string& name) {
  Optimizers& known = optimizers();
  const std::lock_guard lock(known.mutex);
  for (const PluginOptimizer& o : known.all)
    if (o.name == name) return &o;
  return nullptr;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out = {"adamw", "sgd", "muon"};
  Optimizers& known = optimizers();
  const std::lock_guard lock(known.mutex);
  for (const PluginOptimizer& o : known.all) out.push_back(o.name);
  return out;
}

}  // namespace redco
