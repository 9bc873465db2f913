// Settings that a user's dataclass declares.
#pragma once

#include <string>

#include "config/bind.h"
#include "python/bindings.h"

namespace redco::python {

// The values of a section of the job. specs: a list of (name, kind, is a list, may be None, choices, help,
// default), of redco._pipeline._settings_specs(). UsageError: a wrong key or value, with its place.
py::dict read_settings(const py::list& specs, const std::string& section, const std::string& json,
                       const Origins& origins);

}  // namespace redco::python
