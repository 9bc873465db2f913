// Environments by name: redco's own and those of plugins.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "env/environment.h"

namespace redco {

// CartPole-v1, Acrobot-v1, MountainCarContinuous-v0, Pendulum-v1, or one of a plugin. UsageError with the
// nearest name for others.
std::unique_ptr<Environment> make_environment(const std::string& name);
std::vector<std::string> environment_names();  // redco's own

}  // namespace redco
