// The JSON in a ConfigJson. Users' pipelines and families don't include this: they need not have nlohmann's
// headers.
#pragma once

#include <nlohmann/json.hpp>

#include "models/config.h"

namespace redco {

struct ConfigTree {
  nlohmann::ordered_json json;
};

}  // namespace redco
