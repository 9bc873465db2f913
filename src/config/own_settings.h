// Reads the job's `settings:` section (PipelineSettings::own) into a struct of the pipeline, whose members
// are declared like redco's settings (base/settings.h).
#pragma once

#include <string>

#include "config/yaml.h"

namespace redco {

// Members that are not given keep their defaults. UsageError for an unknown key and for a value of a wrong
// type or out of range.
template <class T>
T own_settings(const std::string& json) {
  T out;
  load_settings(settings_of(out), {{"settings", json}}, {});
  return out;
}

}  // namespace redco
