#include "base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace redco {

std::string NumberRange::words() const {
  std::string s;
  if (low > -std::numeric_limits<double>::infinity()) s += fmt::format(" {} {}", low_open ? ">" : ">=", low);
  if (high < std::numeric_limits<double>::infinity()) {
    s += fmt::format("{} {} {}", s.empty() ? "" : " and", high_open ? "<" : "<=", high);
  }
  return s;
}

const char* to_text(OnResume x) {
  return x == OnResume::error ? "error" : x == OnResume::note ? "note" : "free";
}

const char* to_text(DecidedBy x) {
  switch (x) {
    case DecidedBy::either:
      return "job, else checkpoint";
    case DecidedBy::checkpoint:
      return "checkpoint";
    case DecidedBy::overridable:
      return "checkpoint or override";
    default:
      return "job";
  }
}

Setting& Setting::one_of(std::initializer_list<i64> numbers) {
  choices.clear();
  for (const i64 n : numbers) choices.push_back(std::to_string(n));
  return *this;
}

Setting& Setting::decided_by(DecidedBy x) {
  decider = x;
  for (Setting& f : fields)
    if (!f.decider) f.decided_by(x);
  return *this;
}

std::string SettingCondition::words() const {
  if (values.size() == 1) return fmt::format("{}={}", key, values[0]);
  const std::vector<std::string> first(values.begin(), values.end() - 1);
  return fmt::format("{}={} or {}", key, fmt::join(first, ", "), values.back());
}

Setting& Setting::only_with(std::string key, std::vector<std::string> values) {
  REDCO_CHECK(!values.empty());
  for (Setting& f : fields) {
    f.only_with(key, values);
    std::rotate(f.conditions.begin(), f.conditions.end() - 1, f.conditions.end());
  }
  conditions.push_back({std::move(key), std::move(values)});
  return *this;
}

Setting& Setting::on_resume(OnResume x, std::string remark) {
  when_resumed = x;
  resume_remark = std::move(remark);
  for (Setting& f : fields)
    if (!f.when_resumed) f.on_resume(x);
  return *this;
}

std::string Setting::expected() const {
  const char* many[] = {"booleans", "integers", "numbers", "texts"};
  const char* one[] = {"true or false", "an integer", "a number", "a text"};
  std::string s;
  switch (kind) {
    case Kind::section:
      return "a section (`key: value` lines)";
    case Kind::items:
      return choices.empty() ? "a list of sections"
                             : fmt::format("one of {}, or a list of sections", fmt::join(choices, ", "));
    case Kind::rest:
      return "any value";
    default:
      break;
  }
  const int k = static_cast<int>(kind);
  std::string single = !form.empty() ? form : is_path ? "a path" : one[k];
  std::string plural = is_path ? "paths" : many[k];
  if (choices.size() == 1) {
    single = fmt::format("`{}`", choices[0]);
    plural = single;
  } else if (!choices.empty()) {
    single = fmt::format("one of {}", fmt::join(choices, ", "));
    plural = fmt::format("values out of {}", fmt::join(choices, ", "));
  }
  if (item_nullable) plural += " or ~";
  if (list) {
    s = single_is_list ? fmt::format("{} or a list of {}", single, plural)
                       : fmt::format("a list of {}", plural);
  } else {
    s = single;
  }
  s += limits.words();
  if (nullable) s += fmt::format(" or {}", null_word.empty() ? "~" : null_word);
  return s;
}

std::string Setting::expected_entry() const {
  Setting entry;
  entry.kind = kind;
  entry.is_path = is_path;
  entry.not_empty = not_empty;
  entry.form = form;
  entry.choices = choices;
  entry.limits = limits;
  entry.nullable = item_nullable;
  return entry.expected();
}

Setting& SettingsVisitor::add(std::string name, std::string help, Setting::Kind kind) {
  for (const Setting& s : settings_) REDCO_CHECK(s.name != name, "setting {} is declared twice", name);
  Setting& s = settings_.emplace_back();
  s.name = std::move(name);
  s.help = std::move(help);
  s.kind = kind;
  return s;
}

std::string Origins::where(const std::string& key) const {
  for (const auto* places : {&places_, &inherited_})
    if (auto it = places->find(key); it != places->end()) return it->second;
  // A list entry without its own place has the place of the list.
  if (const auto bracket = key.rfind('['); bracket != std::string::npos) return where(key.substr(0, bracket));
  return "default";
}

}  // namespace redco
