// Types of plain scalars by the YAML 1.2 core schema.
#pragma once

#include <string>

#include "base/settings.h"
#include "config/tree.h"

namespace redco {

// The value of a scalar or null by the core schema. A number that does not fit into i64 or double is a text.
SettingValue resolve(const YamlNode& node);

// The node as JSON text (", " and ": " as separators). Throws UsageError for .inf and .nan, which JSON lacks.
std::string to_json_text(const YamlNode& node);

}  // namespace redco
