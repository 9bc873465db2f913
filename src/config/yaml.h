// Reads job files into declared settings and writes them back. Only this folder uses yaml-cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// A YAML text and its name in messages, usually its path.
struct YamlText {
  std::string name, text;
  std::string includer;  // the place of the include: that names this file, "job.yaml:1"
  bool is_file = false;  // read by read_yaml_files(): its include: was followed and is no setting
};

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

// Reads the files and the files that they include (top-level key include:, paths relative to the including
// file). Order: later texts win, so a file comes after the files that it includes. UsageError if a file is
// missing, a folder, unreadable or over 1 MiB, and if includes form a cycle or are nested deeper than
// kMaxIncludeDepth.
constexpr int kMaxIncludeDepth = 16;
std::vector<YamlText> read_yaml_files(const std::vector<std::string>& paths);

// All settings as YAML, in order of declaration. load_settings() reads it back to the same values.
std::string dump_settings(const std::vector<Setting>& settings);

// The settings as JSON Schema (draft 2020-12) for editors; the bound values are the defaults. of_files: with
// the key include:.
std::string json_schema(const std::vector<Setting>& settings, const std::string& title,
                        bool of_files = false);

// The settings as Markdown tables: one heading per section, one row per key; the bound values are the
// defaults.
std::string markdown_reference(const std::vector<Setting>& settings);

// Help text of one section ("train"), one key ("train.seed") or all settings (""). Throws UsageError with the
// nearest name if the name is unknown.
std::string settings_help(const std::vector<Setting>& settings, const std::string& key);

// Every declared key, e.g. "train.seed"; keys in lists of sections as "parallel.sharding_rules[].match".
std::vector<std::string> setting_keys(const std::vector<Setting>& settings);

// Shell completions of an incomplete override: a section ("train."), a key ("train.seed=") or a value
// ("train.schedule=linear").
struct Candidate {
  std::string text, help;
};
std::vector<Candidate> complete_override(const std::vector<Setting>& settings, const std::string& word);
// Whether the value of that key may be a path.
bool takes_path(const std::vector<Setting>& settings, const std::string& key);

}  // namespace redco
