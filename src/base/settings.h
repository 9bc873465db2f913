// Settings are declared once. A section of the job file is a plain struct with defaults and a visit() that
// declares each member with its help and range:
//
//   struct TrainSettings {
//     double learning_rate = 3e-4;
//     Shape shape = Shape::linear;
//     std::optional<i64> max_steps;                  // optional: `~` in YAML
//     void visit(SettingsVisitor& v) {
//       v.field("learning_rate", learning_rate, "peak learning rate").above(0).on_resume(OnResume::note);
//       v.choice("shape", shape, {{"linear", Shape::linear}, {"cosine", Shape::cosine}},
//                "shape of the rate after warm-up")
//           .on_resume(OnResume::note);
//       v.field("max_steps", max_steps, "stop after this many steps").at_least(1).on_resume(OnResume::note);
//     }
//   };
//
// Parsing, --help, the resolved config, the JSON Schema and docs/config.md are made from these declarations
// (src/config). A member is one of: bool, i64, double, std::string; std::optional or std::vector of these; a
// vector of optional strings; an enum (choice); another such struct (section); a vector of such structs
// (items), or a word in its place (items_or_word); the JSON texts of all undeclared keys (rest).
#pragma once

#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/types.h"

namespace redco {

class SettingsVisitor;

// One scalar; monostate is null.
using SettingValue = std::variant<std::monostate, bool, i64, double, std::string>;

// The interval that a number must lie in.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  // true: the bound itself is not allowed

  bool contains(double x) const {
    return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
  }
  std::string words() const;  // " >= 1", " > 0 and <= 1"; "" if unlimited
};

// What happens on resume if a setting's value differs from the checkpoint's.
enum class OnResume : std::uint8_t {
  error,  // refuse the changed value: the run could not continue as one run
  note,   // continue, and report the changed value
  free,   // continue without a report: the setting does not change what is trained
};
const char* to_text(OnResume x);  // "error", "note", "free"

// The job that decides a value in a command that uses a trained checkpoint: predict, evaluate, chat, merge,
// data. The checkpoint holds the job of its training.
enum class DecidedBy : std::uint8_t {
  job,          // the job file and the overrides
  either,       // the same; if they do not give it, the checkpoint
  checkpoint,   // the checkpoint: another value in the job file is a warning, as an override an error
  overridable,  // the checkpoint, unless an override gives another value
};
const char* to_text(DecidedBy x);  // "job", "job, else checkpoint", "checkpoint", "checkpoint or override"

// A condition on another setting: `key` ("rl.algorithm") has one of these values.
struct SettingCondition {
  std::string key;
  std::vector<std::string> values;

  std::string words() const;  // "rl.algorithm=ppo", "pipeline=lm or seq2seq"
  bool operator==(const SettingCondition&) const = default;
};

// A declared setting, bound to the struct member that holds its value. Valid while that struct lives.
struct Setting {
  enum class Kind { boolean, integer, real, text, section, items, rest };

  std::string name, help;
  Kind kind = Kind::text;
  bool nullable = false;        // the value may be null
  bool list = false;            // a list of scalars
  bool item_nullable = false;   // entries of the list may be null
  bool single_is_list = false;  // a single scalar is read as a list with one entry
  bool needed = false;      // must be given (only for entries of items; the job's validation checks others)
  bool not_empty = false;   // a text that must not be empty
  bool is_path = false;     // a path: ~/x and $NAME are expanded, in lists also patterns such as *.txt
  bool is_literal = false;  // free text: the value of an override is the text as typed, not YAML
  std::string null_word;    // how null is written if not as `~`, e.g. "auto"
  std::string form;         // description of the expected text where "a text" is too vague
  NumberRange limits;       // of the number, or of each number in a list
  std::vector<std::string> choices;  // the allowed texts or integers; empty: any

  // The setting has an effect only if all of these hold. Those of the section come first.
  std::vector<SettingCondition> conditions;

  std::optional<OnResume> when_resumed;  // nullopt: not declared
  std::string resume_remark;             // added to the message about a changed value
  std::string noted_part;                // rest: a key whose name contains this text is OnResume::note
  std::optional<DecidedBy> decider;      // nullopt: not declared, the job decides

  // Scalars and lists: the current value (exactly one unless `list`) and a setter. Values passed to set()
  // must already satisfy the fields above.
  std::function<std::vector<SettingValue>()> get;
  std::function<void(const std::vector<SettingValue>&)> set;

  std::vector<Setting> fields;  // section: its settings; items: those of a default entry, for documentation
  std::shared_ptr<void> keep;   // items: owns that default entry

  // items: the number of entries, replacement by n default entries, the settings of entry i. If it has
  // choices, one of these texts may be given in place of the list: get() returns it, or kListGiven.
  std::function<std::size_t()> n_items;
  std::function<void(std::size_t)> resize;
  std::function<std::vector<Setting>(std::size_t)> item;

  static constexpr const char* kListGiven = "a list";
  bool takes_word() const { return kind == Kind::items && !choices.empty(); }

  std::map<std::string, std::string>* others = nullptr;  // rest: key -> JSON text

  // Modifiers that follow a declaration.
  Setting& at_least(double x) { return limits.low = x, *this; }
  Setting& at_most(double x) { return limits.high = x, *this; }
  Setting& above(double x) { return limits.low = x, limits.low_open = true, *this; }
  Setting& below(double x) { return limits.high = x, limits.high_open = true, *this; }
  Setting& one_of(std::vector<std::string> texts) { return choices = std::move(texts), *this; }
  Setting& one_of(std::initializer_list<i64> numbers);
  Setting& required() { return needed = true, *this; }
  Setting& path() { return not_empty = is_path = true, *this; }
  Setting& literal() { return is_literal = true, *this; }
  // Must not be empty; `words` describes the expected text, e.g. "`last` or a path".
  Setting& looks_like(std::string words) { return not_empty = true, form = std::move(words), *this; }
  Setting& null_means(std::string word) { return null_word = std::move(word), *this; }
  Setting& one_or_more() { return single_is_list = true, *this; }
  // Adds a condition. On a section it applies to all fields in it.
  Setting& only_with(std::string key, std::vector<std::string> values);
  // Sets when_resumed. On a section or items it applies to all fields in it that do not declare their own.
  Setting& on_resume(OnResume x, std::string remark = "");
  // For rest(): keys whose name contains `part` ("drop": attn_pdrop, dropout_rate) are OnResume::note.
  Setting& noted_if_named(std::string part) { return noted_part = std::move(part), *this; }
  // Of a section or items: for all fields in it that declare nothing themselves.
  Setting& decided_by(DecidedBy x);

  // The expected value, for messages and documentation: "an integer >= 1", "one of linear, cosine", "a list
  // of texts or ~".
  std::string expected() const;
  // The same for one entry of a list.
  std::string expected_entry() const;
};

namespace detail {
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

template <class T>
constexpr Setting::Kind kind_of() {
  if constexpr (is_optional<T>::value || is_vector<T>::value) {
    return kind_of<typename T::value_type>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return Setting::Kind::boolean;
  } else if constexpr (std::is_same_v<T, i64>) {
    return Setting::Kind::integer;
  } else if constexpr (std::is_same_v<T, double>) {
    return Setting::Kind::real;
  } else {
    static_assert(std::is_same_v<T, std::string>, "a setting is a bool, i64, double or std::string");
    return Setting::Kind::text;
  }
}

template <class T>
SettingValue to_value(const T& x) {
  if constexpr (is_optional<T>::value) {
    return x ? SettingValue(*x) : SettingValue();
  } else {
    return SettingValue(x);
  }
}

template <class T>
void from_value(const SettingValue& v, T& x) {
  if constexpr (is_optional<T>::value) {
    if (std::holds_alternative<std::monostate>(v)) {
      x.reset();
    } else {
      x = std::get<typename T::value_type>(v);
    }
  } else {
    x = std::get<T>(v);
  }
}
}  // namespace detail

// Collects the declarations of a struct; see settings_of().
class SettingsVisitor {
 public:
  template <class T>
  Setting& field(std::string name, T& x, std::string help) {
    Setting& s = add(std::move(name), std::move(help), detail::kind_of<T>());
    if constexpr (detail::is_vector<T>::value) {
      using Item = typename T::value_type;
      s.list = true;
      s.item_nullable = detail::is_optional<Item>::value;
      s.get = [&x] {
        std::vector<SettingValue> v;
        for (const Item& e : x) v.push_back(detail::to_value(e));
        return v;
      };
      s.set = [&x](const std::vector<SettingValue>& v) {
        x.clear();
        for (const SettingValue& e : v) {
          Item item{};
          detail::from_value(e, item);
          x.push_back(std::move(item));
        }
      };
    } else {
      s.nullable = detail::is_optional<T>::value;
      s.get = [&x] { return std::vector<SettingValue>{detail::to_value(x)}; };
      s.set = [&x](const std::vector<SettingValue>& v) { detail::from_value(v.at(0), x); };
    }
    return s;
  }

  // One of the texts of `texts`; x has the value of that text.
  template <class E>
  Setting& choice(std::string name, E& x, std::vector<std::pair<std::string, E>> texts, std::string help) {
    Setting& s = add(std::move(name), std::move(help), Setting::Kind::text);
    for (const auto& [text, value] : texts) s.choices.push_back(text);
    const auto known = std::make_shared<const std::vector<std::pair<std::string, E>>>(std::move(texts));
    s.get = [&x, known] {
      for (const auto& [text, value] : *known)
        if (value == x) return std::vector<SettingValue>{text};
      return std::vector<SettingValue>{std::string()};
    };
    s.set = [&x, known](const std::vector<SettingValue>& v) {
      for (const auto& [text, value] : *known)
        if (text == std::get<std::string>(v.at(0))) x = value;
    };
    return s;
  }

  template <class T>
  Setting& section(std::string name, T& x, std::string help) {
    SettingsVisitor inner;
    x.visit(inner);
    Setting& s = add(std::move(name), std::move(help), Setting::Kind::section);
    s.fields = std::move(inner.settings_);
    return s;
  }

  template <class T>
  Setting& items(std::string name, std::vector<T>& x, std::string help) {
    auto fresh = std::make_shared<T>();
    SettingsVisitor inner;
    fresh->visit(inner);
    Setting& s = add(std::move(name), std::move(help), Setting::Kind::items);
    s.fields = std::move(inner.settings_);
    s.keep = fresh;
    s.n_items = [&x] { return x.size(); };
    s.resize = [&x](std::size_t n) { x.clear(), x.resize(n); };
    s.item = [&x](std::size_t i) {
      SettingsVisitor v;
      x.at(i).visit(v);
      return std::move(v.settings_);
    };
    return s;
  }

  // A list of sections, or one of `words` in its place. A list that is given is not empty.
  template <class T>
  Setting& items_or_word(std::string name, std::vector<T>& x, std::string& word,
                         std::vector<std::string> words, std::string help) {
    Setting& s = items(std::move(name), x, std::move(help));
    s.choices = std::move(words);
    s.get = [&x, &word] {
      return std::vector<SettingValue>{x.empty() ? word : std::string(Setting::kListGiven)};
    };
    s.set = [&x, &word](const std::vector<SettingValue>& v) {
      word = std::get<std::string>(v.at(0));
      x.clear();
    };
    return s;
  }

  // Collects all undeclared keys as JSON texts; another part of the program validates them.
  Setting& rest(std::map<std::string, std::string>& x, std::string help) {
    Setting& s = add("", std::move(help), Setting::Kind::rest);
    s.others = &x;
    return s;
  }

  std::vector<Setting> take() { return std::move(settings_); }

 private:
  Setting& add(std::string name, std::string help, Setting::Kind kind);

  std::vector<Setting> settings_;
};

// The declarations of t, bound to its members. If t is default-constructed, their current values are the
// defaults.
template <class T>
std::vector<Setting> settings_of(T& t) {
  SettingsVisitor v;
  t.visit(v);
  return v.take();
}

// Where each given value came from, so that errors found long after parsing can cite the line.
class Origins {
 public:
  void set(const std::string& key, std::string place, bool is_override = false) {
    places_[key] = std::move(place);
    if (is_override)
      overridden_.insert(key);
    else
      overridden_.erase(key);
  }
  // The value comes from another job: it is not given, but messages cite `place`.
  void inherit(const std::string& key, std::string place) {
    places_.erase(key);
    overridden_.erase(key);
    inherited_[key] = std::move(place);
  }
  // The place of the key itself; for keys that are not declared.
  void set_key(const std::string& key, std::string place) { key_places_[key] = std::move(place); }

  // True if the key ("train.seed", "parallel.hosts") was given in a file or an override.
  bool given(const std::string& key) const { return places_.count(key) != 0; }
  // True if its value is an override's.
  bool overridden(const std::string& key) const { return overridden_.count(key) != 0; }

  // "job.yaml:12:13" or "override 'train.seed=1'"; "default" if not given. Also finds keys inside a list
  // ("parallel.hosts[1]", "parallel.sharding_rules[0].match").
  std::string where(const std::string& key) const;

  // The place of the key itself; where(key) if it is unknown.
  std::string where_key(const std::string& key) const {
    const auto it = key_places_.find(key);
    return it == key_places_.end() ? where(key) : it->second;
  }

  // Key -> place, for all given keys.
  const std::map<std::string, std::string>& places() const { return places_; }
  // Key -> place, for all inherited values.
  const std::map<std::string, std::string>& inherited() const { return inherited_; }
  const std::map<std::string, std::string>& key_places() const { return key_places_; }

 private:
  std::map<std::string, std::string> places_, inherited_, key_places_;
  std::set<std::string> overridden_;
};

// A section whose keys a user's pipeline defines, a JSON object. `origins`: the places of its keys in the
// job.
struct SectionText : std::string {
  SectionText(std::string json = "{}", Origins places = {})  // NOLINT: as a text
      : std::string(std::move(json)), origins(std::move(places)) {}
  Origins origins;
};

}  // namespace redco
