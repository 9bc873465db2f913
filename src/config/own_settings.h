// Reads a section whose keys a user's pipeline or plugin defines into its struct, whose members are declared
// like redco's settings (base/settings.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/bind.h"

namespace redco {

// The job's `settings:` (PipelineSettings::own). Members that are not given keep their defaults. UsageError
// for an unknown key and for a value of a wrong type or out of range.
template <class T>
T own_settings(const SectionText& section) {
  T out;
  load_section(settings_of(out), "settings", section, section.origins);
  return out;
}

// The same for settings of another section, into an object of a plugin. A class without visit() has none.
template <class T>
std::unique_ptr<T> make_with_settings(const std::string& json, const std::string& section) {
  auto out = std::make_unique<T>();
  std::vector<Setting> settings;
  if constexpr (requires(SettingsVisitor & v) { out->visit(v); }) settings = settings_of(*out);
  load_section(settings, section, json, {});
  return out;
}

}  // namespace redco
