// The `plan:` section: the machines of a plan, if they differ from this one.
#pragma once

#include <optional>
#include <string>

#include "base/settings.h"

namespace redco {

struct PlanSettings {
  std::optional<std::string> devices;

  void visit(SettingsVisitor& v) {
    v.field("devices", devices, "machines of the plan, like 2 x 4 x 32GiB; ~ is this machine")
        .looks_like("HOSTS x DEVICES x MEMORY");
  }
};

}  // namespace redco
