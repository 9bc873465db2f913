// The report of a plan as text and as JSON.
#pragma once

#include <string>

#include "plan/plan.h"

namespace redco {

std::string to_text(const PlanReport& report);
std::string to_json(const PlanReport& report);

}  // namespace redco
