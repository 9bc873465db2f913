// Pieces of text that the writers of this folder share.
#pragma once

#include <string>

#include "base/settings.h"

namespace redco {

// A scalar as YAML that resolve() reads back to the same value and type.
std::string yaml_scalar(const SettingValue& v);

// The current value of a scalar or list setting as YAML: "3", "[a, b]", "~", "auto".
std::string yaml_value(const Setting& s);

}  // namespace redco
