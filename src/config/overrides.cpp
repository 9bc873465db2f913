#include "config/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"

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
void add_candidates(const std::vector<Setting>& settings, const std::string& prefix, const std::string& word,
                    std::vector<Candidate>& out) {
  for (const Setting& s : settings) {
    if (s.kind == Kind::rest) continue;
    const std::string key = prefix + s.name;
    if (s.kind == Kind::section) {
      if (word.starts_with(key + "."))
        add_candidates(s.fields, key + ".", word, out);
      else if ((key + ".").starts_with(word))
        out.push_back({key + ".", s.help});
    } else if (word.starts_with(key + "=")) {
      add_values(s, key, word.substr(key.size() + 1), out);
    } else if (key.starts_with(word)) {
      out.push_back({key + "=", s.help});
    }
  }
}

// The setting "train.seed"; null if there is none.
const Setting* setting_named(const std::vector<Setting>& settings, const std::string& key) {
  const auto at = std::ranges::find_if(settings, [&](const Setting& s) {
    return s.kind != Kind::rest && s.name == key.substr(0, key.find('.'));
  });
  const Setting* const s = at == settings.end() ? nullptr : &*at;
  const auto dot = key.find('.');
  if (!s || dot == std::string::npos) return s;
  return s->kind == Kind::section ? setting_named(s->fields, key.substr(dot + 1)) : nullptr;
}

}  // namespace

YamlNode parse_override(const std::vector<Setting>& settings, const std::string& text) {
  const std::string source = fmt::format("override {}", "'" + excerpt(text) + "'");
  const auto equals = text.find('=');
  if (equals == std::string::npos) throw UsageError("{}: expected key=value", source);
  if (!is_utf8(text)) throw UsageError("{}: not UTF-8 text", source);
  std::string key = text.substr(0, equals);
  const Setting* setting = setting_named(settings, key);
  YamlNode n;
  const std::string value = text.substr(equals + 1);
  // A text in braces is a template; YAML would read a map. A dash is standard input; YAML would read a list.
  const bool text_only = setting && setting->kind == Kind::text;
  const bool braces = text_only && !setting->list && value.starts_with('{');
  if (setting && (setting->is_literal || braces || (text_only && value == "-"))) {
    n.kind = YamlNode::Kind::scalar;
    n.text = value;
    n.quoted = true;
    n.place = {source};
  } else {
    n = parse_yaml_value(value, source);
  }
  if (key == kIncludeKey && !setting)
    throw UsageError("{}: include is a key of job files; name the other file on the command line", source);
  if (key.find('[') != std::string::npos) {
    throw UsageError("{}: a list is replaced as a whole; write {}=[...]", source,
                     key.substr(0, key.find('[')));
  }
  for (int depth = 0; !key.empty(); ++depth) {
    const auto dot = key.rfind('.');
    const std::string last = dot == std::string::npos ? key : key.substr(dot + 1);
    if (last.empty() || depth >= kMaxYamlDepth) break;
    YamlNode up;
    up.kind = YamlNode::Kind::map;
    up.place = {source};
    up.map.push_back({last, {source}, std::move(n)});
    n = std::move(up);
    if (dot == std::string::npos) return n;
    key.resize(dot);
  }
  throw UsageError("{}: '{}' is not a key; expected e.g. train.seed", source, text.substr(0, equals));
}

std::vector<Candidate> complete_override(const std::vector<Setting>& settings, const std::string& word) {
  std::vector<Candidate> out;
  add_candidates(settings, "", word, out);
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
