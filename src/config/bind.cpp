#include "config/bind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "config/other_names.h"
#include "config/overrides.h"
#include "config/paths.h"
#include "config/resolve.h"
#include "config/tree.h"

namespace redco {

namespace {

// A number as people write it, as a number of YAML: 10_000 and 10,000 without separators, 0,5 with a point,
// 10% as 0.1.
std::string plain_number(std::string text) {
  const std::size_t comma = text.find(',');
  if (comma != std::string::npos && comma == text.rfind(',') &&
      (text.size() - comma != 4 || text.starts_with('0')))
    text[comma] = '.';
  std::erase_if(text, [](char c) { return c == '_' || c == ','; });
  if (!text.ends_with('%')) return text;
  try {
    return fmt::format("{}", std::stod(text) / 100);
  } catch (const std::logic_error&) {
    return text;
  }
}

using Kind = Setting::Kind;

constexpr std::size_t kMaxProblems = 20;

std::string quote(std::string_view text) { return "'" + excerpt(text) + "'"; }

std::string describe(const YamlNode& n) {
  if (n.kind == YamlNode::Kind::list) return "a list";
  if (n.kind == YamlNode::Kind::map) return "a map";
  const SettingValue v = resolve(n);
  if (std::holds_alternative<std::monostate>(v)) return "nothing";
  if (std::holds_alternative<std::string>(v)) return "the text " + quote(n.text);
  return std::holds_alternative<bool>(v) ? n.text : "the number " + excerpt(n.text);
}

const Setting* declared(const std::vector<Setting>& settings, const std::string& key) {
  for (const Setting& s : settings)
    if (s.kind != Kind::rest && s.name == key) return &s;
  return nullptr;
}

class Binder {
 public:
  Binder(const std::vector<Setting>& all, Origins* origins, Paths paths = Paths::as_given)
      : keys_(setting_keys(all)), origins_(origins), paths_(paths) {}

  void bind(const std::vector<Setting>& settings, YamlNode& map, const std::string& prefix) {
    for (YamlNode::Entry& e : map.map) entry(settings, e, prefix);
    for (const Setting& s : settings)
      if (s.needed && !map.find(s.name))
        problem(map.place, "{}{} is missing: {}", prefix, s.name, s.expected());
  }

  // One key of the map.
  void entry(const std::vector<Setting>& settings, YamlNode::Entry& e, const std::string& prefix) {
    const std::string key = prefix + e.key;
    const auto rest =
        std::find_if(settings.begin(), settings.end(), [](const Setting& s) { return s.kind == Kind::rest; });
    if (const Setting* s = declared(settings, e.key)) {
      value(*s, e, key);
    } else if (rest != settings.end() && !is_typo(settings, e.key) &&
               !(prefix == "model." && is_other_name_of_model(e.key))) {
      other(*rest, e, key);
    } else {
      // Suggestions cost time; those past the limit are not printed.
      problem(e.place, "unknown key {}{}", excerpt(key),
              problems_.size() < kMaxProblems ? suggestion(settings, e.key, prefix) : "");
    }
  }

  const std::vector<std::string>& problems() const { return problems_; }
  // Problems of expanding paths. A value that a later source replaces has none.
  const std::vector<std::string>& path_problems() const { return path_problems_; }

  template <class... A>
  void problem(const Place& p, fmt::format_string<A...> f, A&&... a) {
    problems_.push_back(p.words() + ": " + fmt::format(f, std::forward<A>(a)...));
  }

 private:
  // Settings of a user's pipeline or plugin have no counterparts in the job.
  bool is_a_job() const { return std::find(keys_.begin(), keys_.end(), "train.n_epochs") != keys_.end(); }

  // A key of rest() that is one letter away from a declared key is a mistake.
  static bool is_typo(const std::vector<Setting>& settings, const std::string& key) {
    return std::any_of(settings.begin(), settings.end(), [&](const Setting& s) {
      return s.kind != Kind::rest && edit_distance(key, s.name, 1) <= 1;
    });
  }

  std::string suggestion(const std::vector<Setting>& settings, const std::string& key,
                         const std::string& prefix) const {
    std::vector<std::string> here;
    for (const Setting& s : settings) {
      if (s.kind != Kind::rest) here.push_back(s.name);
    }
    if (const std::string other = counterpart(key, prefix); !other.empty() && is_a_job()) return other;
    const std::string near = nearest(key, here);
    if (near.empty() || edit_distance(key, near) > 1) {
      // The same or a similar key in another section.
      std::vector<std::string> names;
      for (const std::string& k : keys_) names.push_back(k.substr(k.rfind('.') + 1));
      const std::string elsewhere = nearest(key, names);
      for (std::size_t i = 0; i < names.size() && !elsewhere.empty(); ++i) {
        const bool nearer = near.empty() || edit_distance(key, elsewhere) < edit_distance(key, near);
        if (names[i] == elsewhere && nearer && keys_[i].find("[]") == std::string::npos) {
          return fmt::format("; did you mean {}?", keys_[i]);
        }
      }
    }
    if (!near.empty()) return fmt::format("; did you mean {}{}?", prefix, near);
    return fmt::format("; known here: {}", fmt::join(here, ", "));
  }

  void value(const Setting& s, YamlNode::Entry& e, const std::string& key) {
    YamlNode& n = e.value;
    if (s.kind == Kind::section) {
      if (n.kind == YamlNode::Kind::null) return;
      if (n.kind != YamlNode::Kind::map) return mistyped(s, n, key);
      bind(s.fields, n, key + ".");
    } else if (s.kind == Kind::items) {
      items(s, n, key);
    } else if (s.list) {
      list(s, n, key);
    } else if (const auto v = scalar(s, n, key, s.nullable)) {
      s.set(expand(s, *v, n.place, key));
    }
    if (s.kind != Kind::section) origin(key, n.place);
  }

  void origin(const std::string& key, const Place& p) {
    if (origins_) origins_->set(key, p.words(), p.is_override());
  }

  void items(const Setting& s, YamlNode& n, const std::string& key) {
    if (s.takes_word() && n.kind == YamlNode::Kind::scalar) {
      if (const auto v = scalar(s, n, key, false)) s.set({*v});
      return;
    }
    if (n.kind != YamlNode::Kind::list || (s.takes_word() && n.list.empty())) return mistyped(s, n, key);
    s.resize(n.list.size());
    for (std::size_t i = 0; i < n.list.size(); ++i) {
      const std::string entry = fmt::format("{}[{}]", key, i);
      if (n.list[i].kind != YamlNode::Kind::map) {
        problem(n.list[i].place, "{}: expected a section (`{{key: value}}`), got {}", entry,
                describe(n.list[i]));
        continue;
      }
      origin(entry, n.list[i].place);
      bind(s.item(i), n.list[i], entry + ".");
    }
  }

  void list(const Setting& s, YamlNode& n, const std::string& key) {
    std::vector<SettingValue> values;
    if (n.kind == YamlNode::Kind::list) {
      for (std::size_t i = 0; i < n.list.size(); ++i) {
        const std::string entry = fmt::format("{}[{}]", key, i);
        if (const auto v = scalar(s, n.list[i], entry, s.item_nullable, true)) {
          // All files of a pattern have its place.
          for (SettingValue& one : expand(s, *v, n.list[i].place, entry)) {
            origin(fmt::format("{}[{}]", key, values.size()), n.list[i].place);
            values.push_back(std::move(one));
          }
        }
      }
    } else if (s.single_is_list && n.kind == YamlNode::Kind::scalar) {
      if (const auto v = scalar(s, n, key, false)) values = expand(s, *v, n.place, key);
    } else {
      return mistyped(s, n, key);
    }
    s.set(values);
  }

  // The value; a path is expanded, to several files if the setting takes a list.
  std::vector<SettingValue> expand(const Setting& s, const SettingValue& v, const Place& place,
                                   const std::string& key) {
    const std::string* text = std::get_if<std::string>(&v);
    if (paths_ == Paths::as_given || !s.is_path || !text) return {v};
    try {
      if (!s.list) return {SettingValue(expand_path(*text))};
      std::vector<SettingValue> files;
      for (std::string& file : expand_files(*text)) files.emplace_back(std::move(file));
      return files;
    } catch (const UsageError& e) {
      path_problems_.push_back(fmt::format("{}: {}: {}", place.words(), key, e.what()));
      return {v};
    }
  }

  std::optional<SettingValue> scalar(const Setting& s, const YamlNode& n, const std::string& key,
                                     bool nullable, bool entry = false) {
    if (n.kind == YamlNode::Kind::list || n.kind == YamlNode::Kind::map)
      return mistyped(s, n, key, entry), std::nullopt;
    SettingValue v = resolve(n);
    const std::string* text = std::get_if<std::string>(&v);
    if (nullable && text && !n.quoted && !s.null_word.empty() && *text == s.null_word) return SettingValue();
    if (std::holds_alternative<std::monostate>(v)) {
      if (nullable) return v;
      return mistyped(s, n, key, entry), std::nullopt;
    }
    switch (s.kind) {
      case Kind::boolean:
        if (std::holds_alternative<bool>(v)) return v;
        return mistyped(s, n, key, entry), std::nullopt;
      case Kind::integer:
        if (const i64* x = std::get_if<i64>(&v)) {
          const bool chosen =
              s.choices.empty() || std::ranges::find(s.choices, std::to_string(*x)) != s.choices.end();
          if (chosen && s.limits.contains(static_cast<double>(*x))) return v;
        }
        return mistyped(s, n, key, entry), std::nullopt;
      case Kind::real: {
        if (const i64* i = std::get_if<i64>(&v)) v = static_cast<double>(*i);
        const double* x = std::get_if<double>(&v);
        if (x && std::isfinite(*x) && s.limits.contains(*x)) return v;
        return mistyped(s, n, key, entry), std::nullopt;
      }
      default:
        break;
    }
    if (const bool* flag = std::get_if<bool>(&v)) {
      // One of the words is `true`, as in early_stopping: [false, true, never].
      const std::string word = *flag ? "true" : "false";
      if (std::find(s.choices.begin(), s.choices.end(), word) != s.choices.end()) return SettingValue(word);
    }
    const bool known = text && (s.choices.empty() ||
                                std::find(s.choices.begin(), s.choices.end(), *text) != s.choices.end());
    if (!known || (s.not_empty && text->empty()) || text->find('\0') != std::string::npos) {
      return mistyped(s, n, key, entry), std::nullopt;
    }
    return v;
  }

  // Reports key, expected and found value, and for common mistakes the correction.
  void mistyped(const Setting& s, const YamlNode& n, const std::string& key, bool entry = false) {
    std::string hint;
    if (n.kind == YamlNode::Kind::scalar) {
      const SettingValue v = resolve(n);
      const bool text = std::holds_alternative<std::string>(v);
      YamlNode plain = n;
      plain.quoted = false;
      if (s.kind == Kind::text || s.takes_word()) {
        if (!text) {
          hint = fmt::format("; put it in quotes: {}",
                             n.place.line ? "\"" + excerpt(n.text) + "\"" : "'\"" + excerpt(n.text) + "\"'");
        } else if (const std::string near = nearest(n.text, s.choices); !near.empty()) {
          hint = fmt::format("; did you mean {}?", near);
        }
      } else if (n.quoted && !std::holds_alternative<std::string>(resolve(plain))) {
        hint = "; remove the quotes";
      } else if (s.kind == Kind::boolean && text) {
        const std::string& t = n.text;
        if (t == "yes" || t == "Yes" || t == "on" || t == "On" || t == "y") hint = "; write true";
        if (t == "no" || t == "No" || t == "off" || t == "Off" || t == "n") hint = "; write false";
      } else if (s.kind == Kind::integer && std::holds_alternative<double>(v)) {
        const double x = std::get<double>(v);
        if (x == std::floor(x) && std::abs(x) < 1e15) hint = fmt::format("; write {:.0f}", x);
      } else if (text) {
        plain.text = plain_number(n.text);
        if (plain.text != n.text && !std::holds_alternative<std::string>(resolve(plain)))
          hint = fmt::format("; write {}", plain.text);
      }
    } else if (n.kind == YamlNode::Kind::map && s.kind == Kind::text) {
      hint = "; put a text with `: ` in quotes";
    } else if ((s.list || (s.kind == Kind::items && !s.takes_word())) && !entry &&
               n.kind == YamlNode::Kind::null) {
      hint = "; write [] for none";
    } else if (n.kind == YamlNode::Kind::null && s.kind == Kind::text && !s.not_empty && s.choices.empty()) {
      hint = "; write \"\" for the empty text";
    }
    problem(n.place, "{}: expected {}, got {}{}", key, entry ? s.expected_entry() : s.expected(), describe(n),
            hint);
  }

  void other(const Setting& rest, YamlNode::Entry& e, const std::string& key) {
    try {
      (*rest.others)[e.key] = to_json_text(e.value);
      if (origins_) set_places(e, key);
    } catch (const UsageError& error) {
      problems_.push_back(fmt::format("{} (in {})", error.what(), key));
    }
  }

  // Places of the value and of all keys inside it, for messages of the code that reads them.
  void set_places(const YamlNode::Entry& e, const std::string& key) {
    origin(key, e.value.place);
    origins_->set_key(key, e.place.words());
    for (const YamlNode::Entry& inner : e.value.map) set_places(inner, key + "." + inner.key);
  }

  std::vector<std::string> keys_;
  Origins* origins_;
  Paths paths_;
  std::vector<std::string> problems_, path_problems_;
};

// Functions that restore the current values of the settings.
void keep(const std::vector<Setting>& settings, std::vector<std::function<void()>>& back) {
  for (const Setting& s : settings) {
    if (s.kind == Kind::section) {
      keep(s.fields, back);
    } else if (s.kind == Kind::items && s.takes_word()) {
      if (s.n_items() == 0) back.push_back([&s, was = s.get()] { s.set(was); });
    } else if (s.kind == Kind::items) {
      if (s.n_items() == 0) back.push_back([&s] { s.resize(0); });
    } else if (s.kind == Kind::rest) {
      back.push_back([&s, was = *s.others] { *s.others = was; });
    } else {
      back.push_back([&s, was = s.get()] { s.set(was); });
    }
  }
}

// Binds the valid entries; adds the keys of all others to `unknown`.
void bind_known(const std::vector<Setting>& settings, YamlNode& map, const std::string& prefix,
                std::vector<std::string>& unknown) {
  for (YamlNode::Entry& e : map.map) {
    const Setting* s = declared(settings, e.key);
    if (s && s->kind == Kind::section && e.value.kind == YamlNode::Kind::map) {
      bind_known(s->fields, e.value, prefix + e.key + ".", unknown);
      continue;
    }
    std::vector<std::function<void()>> back;
    keep(settings, back);
    Binder binder(settings, nullptr);
    binder.entry(settings, e, prefix);
    if (binder.problems().empty()) continue;
    for (const auto& restore : back) restore();
    unknown.push_back(prefix + e.key);
  }
}

void add_keys(const std::vector<Setting>& settings, const std::string& prefix,
              std::vector<std::string>& keys) {
  for (const Setting& s : settings) {
    if (s.kind == Kind::rest) continue;
    keys.push_back(prefix + s.name);
    add_keys(s.fields, prefix + s.name + (s.kind == Kind::items ? "[]." : "."), keys);
  }
}

// Gives the nodes of the value of a key their places in the job. A node without one has that of the node
// around it.
void relocate(YamlNode& n, const std::string& key, const Origins& origins, const Place* around = nullptr) {
  if (const std::string place = origins.where(key); place != "default")
    n.place = {place};
  else if (around)
    n.place = *around;
  const Place* own = around || n.place.is_override() ? &n.place : nullptr;
  for (YamlNode::Entry& e : n.map) {
    const std::string inner = key + "." + e.key;
    relocate(e.value, inner, origins, own);
    const std::string place = origins.where_key(inner);
    if (place != "default")
      e.place = {place};
    else if (own)
      e.place = *own;
  }
  for (YamlNode& item : n.list) relocate(item, key, origins, own);
}

[[noreturn]] void throw_problems(std::vector<std::string> problems) {
  const std::size_t n = problems.size();
  if (n > kMaxProblems) {
    problems.resize(kMaxProblems);
    problems.push_back(fmt::format("... and {} more", n - kMaxProblems));
  }
  throw UsageError("{}", fmt::join(problems, "\n"));
}

}  // namespace

std::vector<std::string> setting_keys(const std::vector<Setting>& settings) {
  std::vector<std::string> keys;
  add_keys(settings, "", keys);
  return keys;
}

std::vector<std::string> load_known_settings(const std::vector<Setting>& settings, const YamlText& text) {
  YamlNode n = parse_yaml(text.text, text.name);
  std::vector<std::string> unknown;
  if (n.kind == YamlNode::Kind::map) {
    bind_known(settings, n, "", unknown);
  } else if (n.kind != YamlNode::Kind::null) {
    throw UsageError("{}: expected `key: value` lines, got {}", n.place.words(), describe(n));
  }
  return unknown;
}

Origins load_settings(const std::vector<Setting>& settings, const std::vector<YamlText>& texts,
                      const std::vector<std::string>& overrides, Paths paths,
                      const std::function<std::vector<std::string>(const Origins&)>& more) {
  std::vector<std::string> problems;
  YamlNode merged;
  merged.kind = YamlNode::Kind::map;
  std::vector<std::function<void()>> back;
  keep(settings, back);
  // Each source is checked on its own, because a later source could replace a wrong value. This also sets
  // values, which are restored before the merged tree is bound.
  const auto add = [&](auto parse, bool null_clears) {
    try {
      YamlNode n = parse();
      if (n.kind == YamlNode::Kind::null) return;
      if (n.kind != YamlNode::Kind::map) {
        throw UsageError("{}: expected `key: value` lines, got {}", n.place.words(), describe(n));
      }
      Binder binder(settings, nullptr);
      binder.bind(settings, n, "");
      problems.insert(problems.end(), binder.problems().begin(), binder.problems().end());
      merge(merged, n, null_clears);
    } catch (const UsageError& e) {
      problems.push_back(e.what());
    }
  };
  for (const YamlText& t : texts)
    add(
        [&] {
          YamlNode n = parse_yaml(t.text, t.name, t.includer);
          if (t.is_file) std::erase_if(n.map, [](const YamlNode::Entry& e) { return e.key == kIncludeKey; });
          return n;
        },
        false);
  for (const std::string& o : overrides) add([&] { return parse_override(settings, o); }, true);
  Origins origins;
  for (const auto& restore : back) restore();
  Binder binder(settings, &origins, paths);
  binder.bind(settings, merged, "");
  // The merged tree repeats the problems of the sources.
  if (problems.empty()) problems = binder.problems();
  problems.insert(problems.end(), binder.path_problems().begin(), binder.path_problems().end());
  if (problems.empty()) return origins;
  if (more)
    for (std::string& p : more(origins)) problems.push_back(std::move(p));
  throw_problems(std::move(problems));
}

void load_section(const std::vector<Setting>& settings, const std::string& section, const std::string& json,
                  const Origins& origins) {
  YamlNode n = parse_yaml(json, section);
  relocate(n, section, origins);
  Binder binder(settings, nullptr);
  binder.bind(settings, n, section + ".");
  if (!binder.problems().empty()) throw_problems(binder.problems());
}

}  // namespace redco
