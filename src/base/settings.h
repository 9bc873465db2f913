// Settings, declared once. A section of the job file is a plain struct with its defaults, and a visit() that
// names each member once more with its help and its range:
//
//   struct TrainSettings {
//     double learning_rate = 3e-4;
//     std::string schedule = "linear";
//     std::optional<i64> max_steps;                  // optional: `~` in YAML
//     void visit(SettingsVisitor& v) {
//       v.field("learning_rate", learning_rate, "peak learning rate").above(0).on_resume(OnResume::note);
//       v.field("schedule", schedule, "shape of the rate after warm-up")
//           .one_of({"linear", "cosine"})
//           .on_resume(OnResume::note);
//       v.field("max_steps", max_steps, "stop after this many steps").at_least(1).on_resume(OnResume::note);
//     }
//   };
//
// Parsing, --help, the resolved config, the JSON Schema and docs/config.md are all made from that
// (src/config). A member may be bool, i64, double, std::string, std::optional or std::vector of these, a
// vector of optional strings, another such struct (section), a vector of such structs (items), or the JSON
// texts of all keys that are not declared (rest).
#pragma once

#include <functional>
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

// A number's allowed interval.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  // the bound itself is not allowed

  bool contains(double x) const {
    return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high);
  }
  std::string words() const;  // " >= 1", " > 0 and <= 1", "" where unlimited
};

// What it means for a run that resumes from a checkpoint if a setting's value is another than before.
enum class OnResume : std::uint8_t {
  error,  // the run can't continue as one run: the changed value is refused
  note,   // the run continues; it says which value changed
  free,   // the run continues: the setting doesn't change what is trained
};
const char* to_text(OnResume x);  // "error", "note", "free"

// Whose value counts in a command that uses a trained checkpoint: predict, evaluate, chat, merge, data. The
// checkpoint holds the job of its training.
enum class DecidedBy : std::uint8_t {
  job,          // the value of the job file and the overrides
  either,       // the same if it is given, else the checkpoint's
  checkpoint,   // the checkpoint's: another value in the job file is a warning, as an override an error
  overridable,  // the checkpoint's, unless an override gives another
};
const char* to_text(DecidedBy x);  // "job", "job, else checkpoint", "checkpoint", "checkpoint or override"

// A declared setting, bound to the struct member that holds its value; valid while that struct lives.
struct Setting {
  enum class Kind { boolean, integer, real, text, section, items, rest };

  std::string name, help;
  Kind kind = Kind::text;
  bool nullable = false;             // the value may be null
  bool list = false;                 // a list of scalars
  bool item_nullable = false;        // ... whose entries may be null
  bool single_is_list = false;       // ... and a lone scalar stands for a list of one
  bool needed = false;               // must be given (entries of items; other rules are the job's validation)
  bool is_path = false;              // a text that may not be empty: a path
  std::string null_word;             // how null is written, where not `~` ("auto")
  std::string form;                  // what a text looks like, where "a text" says too little
  NumberRange limits;                // of a number, or of each number of a list
  std::vector<std::string> choices;  // the allowed texts; empty: any

  std::optional<OnResume> when_resumed;  // none: not declared
  std::string resume_remark;             // what a message about the changed value adds
  std::string noted_part;                // rest: a key with this text in its name is OnResume::note
  std::optional<DecidedBy> decider;      // none: not declared, the job decides

  // Scalars and lists: the current value (exactly one unless `list`), and its replacement. set() takes values
  // that were checked against the fields above.
  std::function<std::vector<SettingValue>()> get;
  std::function<void(const std::vector<SettingValue>&)> set;

  std::vector<Setting> fields;  // section: its settings; items: those of a fresh entry, for documentation
  std::shared_ptr<void> keep;   // items: owns that fresh entry

  // items: number of entries, replacement by n fresh ones, settings of entry i.
  std::function<std::size_t()> n_items;
  std::function<void(std::size_t)> resize;
  std::function<std::vector<Setting>(std::size_t)> item;

  std::map<std::string, std::string>* others = nullptr;  // rest: key -> JSON text

  // What a declaration says after its name and help.
  Setting& at_least(double x) { return limits.low = x, *this; }
  Setting& at_most(double x) { return limits.high = x, *this; }
  Setting& above(double x) { return limits.low = x, limits.low_open = true, *this; }
  Setting& below(double x) { return limits.high = x, limits.high_open = true, *this; }
  Setting& one_of(std::vector<std::string> texts) { return choices = std::move(texts), *this; }
  Setting& required() { return needed = true, *this; }
  Setting& path() { return is_path = true, *this; }
  // Not empty, and what it looks like: "`last` or a path".
  Setting& looks_like(std::string words) { return is_path = true, form = std::move(words), *this; }
  Setting& null_means(std::string word) { return null_word = std::move(word), *this; }
  Setting& one_or_more() { return single_is_list = true, *this; }
  // What a change means for a run that resumes. Of a section or items: for all fields in it that declare
  // nothing themselves.
  Setting& on_resume(OnResume x, std::string remark = "");
  // Of rest(): keys with `part` in their name ("drop": attn_pdrop, dropout_rate) are OnResume::note.
  Setting& noted_if_named(std::string part) { return noted_part = std::move(part), *this; }
  // Of a section or items: for all fields in it that declare nothing themselves.
  Setting& decided_by(DecidedBy x);

  // "an integer >= 1", "one of linear, cosine", "a list of texts or ~": for messages and documentation.
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

  // All keys beside the declared ones, as JSON text, for somebody else to judge.
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

// The declarations of t, bound to its members. Their current values are the defaults where t is fresh.
template <class T>
std::vector<Setting> settings_of(T& t) {
  SettingsVisitor v;
  t.visit(v);
  return v.take();
}

// Where each given value came from, so that a complaint made long after parsing can still cite the line.
class Origins {
 public:
  void set(const std::string& key, std::string place, bool is_override = false) {
    places_[key] = std::move(place);
    if (is_override)
      overridden_.insert(key);
    else
      overridden_.erase(key);
  }
  // The value is another job's: not given, but messages cite `place`.
  void inherit(const std::string& key, std::string place) {
    places_.erase(key);
    overridden_.erase(key);
    inherited_[key] = std::move(place);
  }

  // True if the key ("train.seed", "parallel.hosts") was given in a file or an override.
  bool given(const std::string& key) const { return places_.count(key) != 0; }
  // True if its value is an override's.
  bool overridden(const std::string& key) const { return overridden_.count(key) != 0; }

  // "job.yaml:12:13" or "override 'train.seed=1'"; "default" where not given. A key inside a list
  // ("parallel.hosts[1]", "parallel.sharding_rules[0].match") is found, too.
  std::string where(const std::string& key) const;

  // Key -> place, of all that were given.
  const std::map<std::string, std::string>& places() const { return places_; }
  // The same of those that were inherited.
  const std::map<std::string, std::string>& inherited() const { return inherited_; }

 private:
  std::map<std::string, std::string> places_, inherited_;
  std::set<std::string> overridden_;
};

}  // namespace redco
