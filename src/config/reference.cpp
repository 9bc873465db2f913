// Settings as documentation: JSON Schema, Markdown, help texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "config/write.h"
#include "config/yaml.h"

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

// "error", "note", "free", with what goes with it; "" where nothing is declared.
std::string resume_words(const Setting& s) {
  if (!s.when_resumed) return "";
  std::string out = to_text(*s.when_resumed);
  if (!s.noted_part.empty()) out += fmt::format("; note for keys with `{}` in their name", s.noted_part);
  if (!s.resume_remark.empty()) out += "; " + s.resume_remark;
  return out;
}

// "checkpoint", ...; "job" where nothing is declared.
std::string decider_words(const Setting& s) { return to_text(s.decider.value_or(DecidedBy::job)); }

// What the declaration adds to the help: "; on resume: note; with a checkpoint: job, else checkpoint".
std::string remarks(const Setting& s) {
  std::string out;
  if (const std::string resume = resume_words(s); !resume.empty()) out += "; on resume: " + resume;
  if (s.decider.value_or(DecidedBy::job) != DecidedBy::job) out += "; with a checkpoint: " + decider_words(s);
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
  if (s.is_path) j["minLength"] = 1;
  if (!s.choices.empty()) {
    j["enum"] = s.choices;
    if (nullable) j["enum"].push_back(nullptr);
    for (const bool flag : {false, true})  // as YAML reads the word without quotes
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
    j["default"] = Json::array();
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

// "integer >= 1" for tables; the default as YAML.
std::string default_of(const Setting& s) {
  if (s.kind == Kind::items) return "[]";
  return s.needed ? "" : yaml_value(s);
}

std::string cell(std::string text) {
  for (std::size_t i = 0; (i = text.find('|', i)) != std::string::npos; i += 2) text.insert(i, "\\");
  return text;
}

bool is_leaf(const Setting& s) { return s.kind != Kind::section; }

void markdown(const std::vector<Setting>& settings, const std::string& prefix, std::string& out) {
  bool any = false;
  for (const Setting& s : settings) {
    if (!is_leaf(s)) continue;
    if (!any)
      out +=
          "| key | value | default | on resume | with a checkpoint | meaning |\n|---|---|---|---|---|---|\n";
    any = true;
    if (s.kind == Kind::rest) {
      out += fmt::format("| any other key | any value | | {} | {} | {} |\n", cell(resume_words(s)),
                         decider_words(s), cell(s.help));
      continue;
    }
    const std::string def = default_of(s);
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", s.name, cell(s.expected()),
                       def.empty() ? "" : "`" + cell(def) + "`", cell(resume_words(s)), decider_words(s),
                       cell(s.help));
  }
  if (any) out += "\n";
  for (const Setting& s : settings) {
    if (s.kind != Kind::section && s.kind != Kind::items) continue;
    const std::string key = prefix + s.name + (s.kind == Kind::items ? "[]" : "");
    out += s.kind == Kind::items
               ? fmt::format("### `{}`\nEach entry:\n\n", key)
               : fmt::format("{} `{}`\n{}.\n\n", prefix.empty() ? "##" : "###", key, s.help);
    markdown(s.fields, key + ".", out);
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
      out += fmt::format("  {}\n      {}; {}{}{}\n", key, s.help, s.expected(),
                         def.empty() ? "" : "; default " + def, remarks(s));
    }
    if (s.kind == Kind::section && inside)
      out += fmt::format("{}{}: {}\n", out.empty() ? "" : "\n", key, s.help);
    help(s.fields, key + (s.kind == Kind::items ? "[]." : "."), wanted, out);
  }
}

}  // namespace

std::string json_schema(const std::vector<Setting>& settings, const std::string& title) {
  Json j;
  j["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  j["title"] = title;
  j.update(object_schema(settings));
  return j.dump(2) + "\n";
}

std::string markdown_reference(const std::vector<Setting>& settings) {
  std::string out;
  markdown(settings, "", out);
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
