// Reads job files into declared settings: keys, types and ranges are checked. Only this folder uses yaml-cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "config/include.h"

namespace redco {

// Whether paths are expanded (config/paths.h). The paths in a dump are expanded already.
enum class Paths { as_given, expanded };

// Sets the members bound in `settings` from the texts and the overrides "train.seed=1". A later text wins
// over an earlier one, key by key; overrides win over texts. Maps are merged, lists are replaced. A null
// section in a text has no effect; the override "train.lora=~" removes what the texts say of the section.
// Override values are YAML; values of literal() settings are plain text. Settings that are not given keep
// their values. Throws UsageError that lists up to 20 problems, one a line, each with place, key, value
// found, what was expected and the nearest known key. The members are then in an undefined state. `more` is
// called if there are problems, when the members have all values that are right; its problems follow.
Origins load_settings(const std::vector<Setting>& settings, const std::vector<YamlText>& texts,
                      const std::vector<std::string>& overrides, Paths paths = Paths::as_given,
                      const std::function<std::vector<std::string>(const Origins&)>& more = nullptr);

// Sets the members bound in `settings` from the JSON object of a section of the job ("settings"). Problems
// have the places of `origins`; without them, those in the text. Throws UsageError as load_settings().
void load_section(const std::vector<Setting>& settings, const std::string& section, const std::string& json,
                  const Origins& origins);

// The same for a text that may come from another version of redco: ignores keys that are not declared and
// values that are not allowed now. Returns the ignored keys ("train.old_key"). Throws UsageError if the text
// is not a YAML map.
std::vector<std::string> load_known_settings(const std::vector<Setting>& settings, const YamlText& text);

// Every declared key, e.g. "train.seed"; keys in lists of sections as "parallel.sharding_rules[].match".
std::vector<std::string> setting_keys(const std::vector<Setting>& settings);

}  // namespace redco
