#include "config/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "config/bind.h"
#include "config/dump.h"
#include "config/tree.h"

namespace redco {

namespace {

using Kind = Setting::Kind;
using Json = nlohmann::ordered_json;

Json to_json(const SettingValue& v) {
  return std::visit(
      [](const auto& x) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>) {
          return nullptr;
        } else {
          return x;
        }
      },
      v);
}

// "error", "note" or "free" with its remarks; "" if on_resume() is not declared.
std::string resume_words(const Setting& s) {
  if (!s.when_resumed) return "";
  std::string out = to_text(*s.when_resumed);
  if (!s.noted_part.empty()) out += fmt::format("; note for keys with `{}` in their name", s.noted_part);
  if (!s.resume_remark.empty()) out += "; " + s.resume_remark;
  return out;
}

// "pipeline=rl; rl.algorithm=ppo": the conditions from the n-th on; "" where there are none.
std::string condition_words(const Setting& s, std::size_t n = 0) {
  std::vector<std::string> words;
  for (; n < s.conditions.size(); ++n) words.push_back(s.conditions[n].words());
  return fmt::format("{}", fmt::join(words, "; "));
}

// "checkpoint", "checkpoint or override", ...; "" if the job decides.
std::string decider_words(const Setting& s) {
  const DecidedBy decider = s.decider.value_or(DecidedBy::job);
  return decider == DecidedBy::job ? "" : to_text(decider);
}

// Remarks that follow a help text in one line: "; only with pipeline=rl; on resume: note".
std::string remarks(const Setting& s) {
  std::string out;
  if (const std::string only = condition_words(s); !only.empty()) out += "; only with " + only;
  if (const std::string resume = resume_words(s); !resume.empty()) out += "; on resume: " + resume;
  if (const std::string decider = decider_words(s); !decider.empty())
    out += "; with a checkpoint: " + decider;
  return out;
}

// One scalar, without help and default.
Json scalar_schema(const Setting& s, bool nullable) {
  const char* types[] = {"boolean", "integer", "number", "string"};
  const char* type = types[static_cast<int>(s.kind)];
  Json j;
  j["type"] = nullable ? Json::array({type, "null"}) : Json(type);
  const bool whole = s.kind == Kind::integer;
  const auto bound = [&](const char* name, double x) {
    if (std::isinf(x)) return;
    j[name] = whole ? Json(static_cast<i64>(x)) : Json(x);
  };
  bound(s.limits.low_open ? "exclusiveMinimum" : "minimum", s.limits.low);
  bound(s.limits.high_open ? "exclusiveMaximum" : "maximum", s.limits.high);
  if (s.not_empty) j["minLength"] = 1;
  if (!s.choices.empty()) {
    j["enum"] = Json::array();
    for (const std::string& c : s.choices) j["enum"].push_back(whole ? Json(std::stoll(c)) : Json(c));
    if (nullable) j["enum"].push_back(nullptr);
    for (const bool flag : {false, true})  // YAML reads the unquoted word as a boolean
      if (std::find(s.choices.begin(), s.choices.end(), flag ? "true" : "false") != s.choices.end()) {
        j["enum"].push_back(flag);
        j["type"] = nullable ? Json::array({type, "boolean", "null"}) : Json::array({type, "boolean"});
      }
  }
  return j;
}

Json object_schema(const std::vector<Setting>& settings);

Json schema_of(const Setting& s) {
  Json j;
  if (s.kind == Kind::section) {
    j = object_schema(s.fields);
    j["type"] = Json::array({"object", "null"});
  } else if (s.kind == Kind::items) {
    j["type"] = "array";
    j["items"] = object_schema(s.fields);
    if (s.takes_word()) {
      j["minItems"] = 1;
      j = Json{{"anyOf", Json::array({Json{{"type", "string"}, {"enum", s.choices}}, j})}};
    }
    j["default"] = s.takes_word() ? to_json(s.get().at(0)) : Json::array();
  } else if (s.list) {
    j["type"] = "array";
    j["items"] = scalar_schema(s, s.item_nullable);
    if (s.single_is_list) j = Json{{"anyOf", Json::array({scalar_schema(s, false), j})}};
    j["default"] = Json::array();
    for (const SettingValue& v : s.get()) j["default"].push_back(to_json(v));
  } else {
    j = scalar_schema(s, s.nullable);
    const bool word = !s.null_word.empty();
    if (word) j = Json{{"anyOf", Json::array({j, Json{{"const", s.null_word}}})}};
    const SettingValue v = s.get().at(0);
    j["default"] = word && std::holds_alternative<std::monostate>(v) ? Json(s.null_word) : to_json(v);
  }
  j["description"] = s.kind == Kind::section ? s.help : s.help + remarks(s);
  return j;
}

Json object_schema(const std::vector<Setting>& settings) {
  Json j, needed = Json::array();
  j["type"] = "object";
  j["properties"] = Json::object();
  j["additionalProperties"] = false;
  for (const Setting& s : settings) {
    if (s.kind == Kind::rest) {
      j["additionalProperties"] = Json{{"description", s.help + remarks(s)}};
    } else {
      j["properties"][s.name] = schema_of(s);
      if (s.needed) needed.push_back(s.name);
    }
  }
  if (!needed.empty()) j["required"] = needed;
  return j;
}

// The default as YAML; "" if the setting is required.
std::string default_of(const Setting& s) {
  if (s.kind == Kind::items && !s.takes_word()) return "[]";
  return s.needed ? "" : yaml_value(s);
}

// The text as lines of at most `width` characters. `first` precedes the first line, `indent` the others.
std::string wrapped(const std::string& text, const std::string& first, const std::string& indent,
                    std::size_t width) {
  std::string out, line = first;
  bool empty = true;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = std::min(text.find(' ', i), text.size());
    const std::string word = text.substr(i, end - i);
    if (!empty && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    i = end + 1;
  }
  return out + line + "\n";
}

// Allowed values, in words.
std::string value_words(const Setting& s) {
  return s.expected() + (s.is_literal ? "; on the command line as typed" : "");
}

bool is_leaf(const Setting& s) { return s.kind != Kind::section; }

// A list of the settings, then a part for each section. A table would be wider than a page.
// `n_conditions`: conditions of the section, which its head names.
void markdown(const std::vector<Setting>& settings, const std::string& prefix, std::size_t n_conditions,
              std::string& out) {
  const std::size_t width = 100;
  for (const Setting& s : settings) {
    if (!is_leaf(s)) continue;
    std::string facts = "Value: " + (s.kind == Kind::rest ? "any" : value_words(s));
    if (const std::string def = s.kind == Kind::rest ? "" : default_of(s); !def.empty())
      facts += fmt::format(". Default: `{}`", def);
    if (const std::string only = condition_words(s, n_conditions); !only.empty())
      facts += fmt::format(". Only with: `{}`", only);
    if (const std::string resume = resume_words(s); !resume.empty()) facts += ". On resume: " + resume;
    if (const std::string decider = decider_words(s); !decider.empty())
      facts += ". With a checkpoint: " + decider;
    const std::string name = s.kind == Kind::rest ? "any other key" : "`" + s.name + "`";
    out += wrapped(s.help + ".", "- **" + name + "**: ", "  ", width) +
           wrapped(facts + ".", "  - ", "    ", width);
  }
  if (!out.ends_with("\n\n")) out += "\n";
  for (const Setting& s : settings) {
    if (s.kind != Kind::section && s.kind != Kind::items) continue;
    const std::string key = prefix + s.name + (s.kind == Kind::items ? "[]" : "");
    if (s.kind == Kind::items) {
      out += fmt::format("### `{}`\n\nEach entry:\n\n", key);
    } else {
      const std::string only = condition_words(s, n_conditions);
      const std::string text = s.help + "." + (only.empty() ? "" : " Only with: `" + only + "`.");
      out += fmt::format("{} `{}`\n\n{}\n", prefix.empty() ? "##" : "###", key, wrapped(text, "", "", width));
    }
    markdown(s.fields, key + ".", s.conditions.size(), out);
  }
}

void help(const std::vector<Setting>& settings, const std::string& prefix, const std::string& wanted,
          std::string& out) {
  for (const Setting& s : settings) {
    const std::string key = prefix + s.name;
    const bool inside = wanted.empty() || key == wanted || key.rfind(wanted + ".", 0) == 0 ||
                        key.rfind(wanted + "[", 0) == 0 || (s.kind == Kind::rest && key == wanted + ".");
    if (s.kind == Kind::rest) {
      if (inside) out += fmt::format("  {}KEY\n      {}{}\n", prefix, s.help, remarks(s));
      continue;
    }
    if (inside && is_leaf(s)) {
      const std::string def = default_of(s);
      out += fmt::format("  {}\n      {}; {}{}{}\n", key, s.help, value_words(s),
                         def.empty() ? "" : "; default " + def, remarks(s));
    }
    if (s.kind == Kind::section && inside)
      out += fmt::format("{}{}: {}\n", out.empty() ? "" : "\n", key, s.help);
    help(s.fields, key + (s.kind == Kind::items ? "[]." : "."), wanted, out);
  }
}

}  // namespace

std::string json_schema(const std::vector<Setting>& settings, const std::string& title, bool of_files) {
  Json j;
  j["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  j["title"] = title;
  j.update(object_schema(settings));
  if (of_files)
    j["properties"][kIncludeKey] = {
        {"anyOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}},
        {"description", "job files whose keys this file inherits; paths relative to this file"}};
  return j.dump(2) + "\n";
}

std::string markdown_reference(const std::vector<Setting>& settings) {
  std::string out;
  markdown(settings, "", 0, out);
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

std::string settings_help(const std::vector<Setting>& settings, const std::string& key) {
  std::string out;
  help(settings, "", key, out);
  if (out.empty()) {
    const std::string near = nearest(key, setting_keys(settings));
    throw UsageError("no setting or section '{}'{}", excerpt(key),
                     near.empty() ? "" : "; did you mean " + near + "?");
  }
  return out;
}

}  // namespace redco
