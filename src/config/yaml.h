// Job files into declared settings, and back. The only folder that knows yaml-cpp.
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// A YAML text and the name messages call it by, usually its path.
struct YamlText {
  std::string name, text;
};

// Sets the members bound in `settings` from the texts, later ones laid over earlier ones key by key, then
// from the overrides "train.seed=1", whose values are YAML. Maps are merged, lists replaced as a whole; a
// section that is null is a section with nothing in it, and the override "train.lora=~" takes back what the
// texts say of a section. What isn't given keeps its value. Throws UsageError
// that lists up to ten problems, one a line, each with place, key, what came, what was expected and the
// nearest known key. The members are then in no defined state.
Origins load_settings(const std::vector<Setting>& settings, const std::vector<YamlText>& texts,
                      const std::vector<std::string>& overrides);

// The same for a text that another version of redco may have written: a key that isn't declared, or whose
// value isn't allowed now, is left out. Returns these keys ("train.old_key"). Throws UsageError where the
// text is no map in YAML.
std::vector<std::string> load_known_settings(const std::vector<Setting>& settings, const YamlText& text);

// Reads the files (UsageError if one is missing, a folder, unreadable or over 1 MiB).
std::vector<YamlText> read_yaml_files(const std::vector<std::string>& paths);

// The settings as YAML that load_settings reads back to the same values; all keys, in order of declaration.
std::string dump_settings(const std::vector<Setting>& settings);

// The settings as JSON Schema (draft 2020-12) for editors; the bound values are the defaults.
std::string json_schema(const std::vector<Setting>& settings, const std::string& title);

// Tables of the settings in Markdown: one heading a section, one row a key; the bound values are the
// defaults.
std::string markdown_reference(const std::vector<Setting>& settings);

// The same for a terminal, of one section ("train"), of one key ("train.seed") or of all (""). Throws
// UsageError with the nearest name if there is none such.
std::string settings_help(const std::vector<Setting>& settings, const std::string& key);

// "train.seed", ...: every declared key; entries of lists of sections as "parallel.sharding_rules[].match".
std::vector<std::string> setting_keys(const std::vector<Setting>& settings);

// What a half-typed override may become: a section ("train."), a key ("train.seed="), or one of its values
// ("train.schedule=linear"). For shells.
struct Candidate {
  std::string text, help;
};
std::vector<Candidate> complete_override(const std::vector<Setting>& settings, const std::string& word);
// Whether the value of that key may be a path.
bool takes_path(const std::vector<Setting>& settings, const std::string& key);

}  // namespace redco
