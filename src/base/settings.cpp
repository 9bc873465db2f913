#include "base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
      return "a list of sections";
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
  if (auto it = places_.find(key); it != places_.end()) return it->second;
  // A list entry without its own place has the place of the list.
  if (const auto bracket = key.rfind('['); bracket != std::string::npos) return where(key.substr(0, bracket));
  return "default";
}

}  // namespace redco
