// The job's `settings:` section, for the pipeline that knows what it means: PipelineSettings::own into a
// struct of its own that is declared as redco's are (base/settings.h).
#pragma once

#include <string>

#include "config/yaml.h"

namespace redco {

// What isn't given keeps its default. UsageError: an unknown key, a value of another type or outside its
// range.
template <class T>
T own_settings(const std::string& json) {
  T out;
  load_settings(settings_of(out), {{"settings", json}}, {});
  return out;
}

}  // namespace redco
