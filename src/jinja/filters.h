// Filters and tests.
#pragma once

#include <string>

#include "jinja/value.h"

namespace redco::jinja {

// Failure for a name that redco's templates don't have.
Value call_filter(const std::string& name, const Value& operand, Arguments& arguments);
bool has_filter(const std::string& name);
bool call_test(const std::string& name, const Value& operand, Arguments& arguments);

}  // namespace redco::jinja
