// The section of a page that shows where the time of the profiled steps went.
#pragma once

#include <string>

#include "report/profile_data.h"

namespace redco {

// Markup: the phases as bars, the ops with the most time, the collectives if there are any.
std::string profile_section(const ProfileData& profile);

}  // namespace redco
