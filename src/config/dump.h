// Settings as YAML text.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// All settings as YAML, in order of declaration. load_settings() reads it back to the same values.
std::string dump_settings(const std::vector<Setting>& settings);

// A scalar as YAML; resolve() reads it back to the same value and type.
std::string yaml_scalar(const SettingValue& v);

// The current value of a scalar or list setting as YAML: "3", "[a, b]", "~", "auto".
std::string yaml_value(const Setting& s);

}  // namespace redco
