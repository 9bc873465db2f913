#include <algorithm>

#include "config/write.h"
#include "config/yaml.h"

namespace redco {

namespace {

using Kind = Setting::Kind;

void add_values(const Setting& s, const std::string& key, const std::string& begun,
                std::vector<Candidate>& out) {
  std::vector<std::string> values = s.choices;
  if (s.kind == Kind::boolean) values = {"true", "false"};
  if (!s.null_word.empty()) values.push_back(s.null_word);
  for (const std::string& v : values)
    if (v.starts_with(begun)) out.push_back({key + "=" + v, s.help});
}

// `prefix`: the enclosing sections, with a dot; `word`: the whole word typed so far.
void add_keys(const std::vector<Setting>& settings, const std::string& prefix, const std::string& word,
              std::vector<Candidate>& out) {
  for (const Setting& s : settings) {
    if (s.kind == Kind::rest) continue;
    const std::string key = prefix + s.name;
    if (s.kind == Kind::section) {
      if (word.starts_with(key + "."))
        add_keys(s.fields, key + ".", word, out);
      else if ((key + ".").starts_with(word))
        out.push_back({key + ".", s.help});
    } else if (word.starts_with(key + "=")) {
      add_values(s, key, word.substr(key.size() + 1), out);
    } else if (key.starts_with(word)) {
      out.push_back({key + "=", s.help});
    }
  }
}

}  // namespace

std::vector<Candidate> complete_override(const std::vector<Setting>& settings, const std::string& word) {
  std::vector<Candidate> out;
  add_keys(settings, "", word, out);
  return out;
}

bool takes_path(const std::vector<Setting>& settings, const std::string& key) {
  for (const Setting& s : settings) {
    if (s.name == key) return s.is_path;
    if (s.kind == Kind::section && key.starts_with(s.name + "."))
      return takes_path(s.fields, key.substr(s.name.size() + 1));
  }
  return false;
}

}  // namespace redco
