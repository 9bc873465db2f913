// Filters (`value | name`) and tests (`value is name`).
#pragma once

#include <string>

#include "jinja/value.h"

namespace redco::jinja {

// Failure for an unknown name.
Value call_filter(const std::string& name, const Value& operand, Arguments& arguments);
bool has_filter(const std::string& name);
bool call_test(const std::string& name, const Value& operand, Arguments& arguments);

}  // namespace redco::jinja
