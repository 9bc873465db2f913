// Overrides on the command line: "train.seed=1".
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "config/tree.h"

namespace redco {

// "train.seed=1" as the tree {train: {seed: 1}}. The value is YAML; that of a literal() setting is plain
// text. UsageError: it is no override, or names no key.
YamlNode parse_override(const std::vector<Setting>& settings, const std::string& text);

// Shell completions of an incomplete override: a section ("train."), a key ("train.seed=") or a value
// ("train.schedule=linear").
struct Candidate {
  std::string text, help;
};
std::vector<Candidate> complete_override(const std::vector<Setting>& settings, const std::string& word);
// Whether the value of that key may be a path.
bool takes_path(const std::vector<Setting>& settings, const std::string& key);

}  // namespace redco
