// Environments of users' shared objects (pipeline/plugin.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "env/environment.h"

namespace redco {

struct PluginEnvironment {
  std::string name;
  std::unique_ptr<Environment> (*make)() = nullptr;
  std::string origin;  // the shared object
};

// Makes the environment known for the rest of the process. UsageError: the name is taken or empty.
void add_environment(const PluginEnvironment& environment);
std::vector<PluginEnvironment> plugin_environments();

// An environment of a plugin whose calls are checked. UsageError that names environment and shared object:
// sizes that make no sense, a check of redco that fails in a call, a call that writes outside of its span or
// leaves numbers of it unwritten, a state, observation or reward that is not finite, an action that is out of
// range.
std::unique_ptr<Environment> checked_environment(const PluginEnvironment& plugin);

}  // namespace redco
