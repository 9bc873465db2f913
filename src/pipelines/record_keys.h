// The keys of records that pipelines know by several names.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "pipeline/records.h"

namespace redco {

// The key of a record for a field: the one that data.fields names, else the first known one that it has; "":
// none.
std::string key_of(const Record& r, const std::optional<std::string>& named,
                   std::initializer_list<const char*> known);

}  // namespace redco
