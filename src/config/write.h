// Text functions shared by dump.cpp, reference.cpp and complete.cpp.
#pragma once

#include <string>

#include "base/settings.h"

namespace redco {

// A scalar as YAML; resolve() reads it back to the same value and type.
std::string yaml_scalar(const SettingValue& v);

// The current value of a scalar or list setting as YAML: "3", "[a, b]", "~", "auto".
std::string yaml_value(const Setting& s);

}  // namespace redco
