#include "env/make_environment.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/words.h"
#include "env/classic_control.h"
#include "env/plugin_environments.h"

namespace redco {

std::vector<std::string> environment_names() {
  std::vector<std::string> out;
  for (const ClassicEnvironment& e : classic_control()) out.emplace_back(e.name);
  return out;
}

std::unique_ptr<Environment> make_environment(const std::string& name) {
  for (const ClassicEnvironment& e : classic_control())
    if (name == e.name) return e.make();
  std::vector<std::string> names = environment_names();
  for (const PluginEnvironment& p : plugin_environments()) {
    if (name == p.name) return checked_environment(p);
    names.push_back(p.name);
  }
  const std::string near = nearest(name, names);
  throw UsageError("[env] unknown environment '{}'; {}", excerpt(name),
                   near.empty() ? fmt::format("known: {}; a plugin may add others (plugins: [./x.so])",
                                              fmt::join(names, ", "))
                                : "did you mean " + near + "?");
}

}  // namespace redco
