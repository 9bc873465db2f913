// The `plan:` section: the machines to plan for.
#pragma once

#include <optional>
#include <string>

#include "base/settings.h"

namespace redco {

struct PlanSettings {
  std::optional<std::string> devices;

  void visit(SettingsVisitor& v) {
    v.field("devices", devices, "machines to plan for, e.g. 2 x 4 x 32GiB; ~: this machine")
        .looks_like("HOSTS x DEVICES x MEMORY");
  }
};

}  // namespace redco
