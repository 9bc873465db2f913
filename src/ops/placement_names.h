// Short names of placements for the tables of strategies (not part of the public headers).
#pragma once

#include "shard/layout.h"

namespace redco {

inline const Placement R_ = Placement::replicated();
inline const Placement P_ = Placement::partial();

}  // namespace redco
