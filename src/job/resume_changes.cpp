#include "job/resume_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "config/bind.h"
#include "config/dump.h"
#include "config/include.h"

namespace redco {

namespace {

using Kind = Setting::Kind;
using Json = nlohmann::json;

constexpr const char* kAbsent = "not given";
constexpr std::size_t kShown = 60;  // characters of a value in a message

// "[{match: a, spec: [mp]}]"
std::string items_text(const Setting& s) {
  if (s.takes_word() && s.n_items() == 0) return yaml_value(s);
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < s.n_items(); ++i) {
    std::vector<std::string> fields;
    for (const Setting& f : s.item(i)) fields.push_back(f.name + ": " + yaml_value(f));
    entries.push_back(fmt::format("{{{}}}", fmt::join(fields, ", ")));
  }
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

class Comparison {
 public:
  Comparison(const Origins& origins, std::vector<ResumeChange>& out) : origins_(origins), out_(out) {}

  // `was` and `is` are the same declarations, bound to two jobs.
  void compare(const std::vector<Setting>& was, const std::vector<Setting>& is, const std::string& prefix) {
    for (std::size_t i = 0; i < was.size(); ++i) {
      const Setting &a = was[i], &b = is[i];
      const std::string key = prefix + a.name;
      if (a.kind == Kind::section) {
        compare(a.fields, b.fields, key + ".");
      } else if (a.kind == Kind::rest) {
        compare_others(b, *a.others, *b.others, prefix);
      } else if (a.kind == Kind::items) {
        if (items_text(a) != items_text(b)) add(b, key, items_text(a), items_text(b));
      } else if (a.get() != b.get()) {
        add(b, key, yaml_value(a), yaml_value(b));
      }
    }
  }

 private:
  using Texts = std::map<std::string, std::string>;

  void compare_others(const Setting& s, const Texts& was, const Texts& is, const std::string& prefix) {
    std::set<std::string> keys;
    for (const Texts* side : {&was, &is})
      for (const auto& [key, json] : *side) keys.insert(key);
    const auto value = [](const Texts& side, const std::string& key) {
      const auto it = side.find(key);
      return it == side.end() ? Json(Json::value_t::discarded) : Json::parse(it->second);
    };
    for (const std::string& key : keys) compare_json(s, value(was, key), value(is, key), prefix + key);
  }

  // Compares objects key by key. A discarded value means an absent key; an absent object equals an empty one.
  void compare_json(const Setting& s, const Json& was, const Json& is, const std::string& key) {
    const auto object = [](const Json& j) { return j.is_object() && !j.empty(); };
    if ((object(was) && (is.is_object() || is.is_discarded())) ||
        (object(is) && (was.is_object() || was.is_discarded()))) {
      std::set<std::string> keys;
      for (const Json* side : {&was, &is})
        if (side->is_object())
          for (const auto& [name, value] : side->items()) keys.insert(name);
      const auto value = [](const Json& side, const std::string& name) {
        return side.is_object() && side.contains(name) ? side[name] : Json(Json::value_t::discarded);
      };
      for (const std::string& name : keys)
        compare_json(s, value(was, name), value(is, name), key + "." + name);
      return;
    }
    const auto text = [](const Json& j) { return j.is_discarded() ? kAbsent : j.dump(); };
    if (was.is_discarded() != is.is_discarded() || (!was.is_discarded() && was != is))
      add(s, key, text(was), text(is));
  }

  void add(const Setting& s, const std::string& key, std::string was, std::string is) {
    REDCO_CHECK(s.when_resumed, "setting {} doesn't declare on_resume()", key);
    const std::string name = key.substr(key.rfind('.') + 1);
    const bool noted = !s.noted_part.empty() && name.find(s.noted_part) != std::string::npos;
    out_.push_back({key, std::move(was), std::move(is), noted ? OnResume::note : *s.when_resumed,
                    s.resume_remark, place(key)});
  }

  // The place of the key, or of the map that contains it.
  std::string place(std::string key) const {
    for (auto dot = key.rfind('.'); !origins_.given(key) && dot != std::string::npos; dot = key.rfind('.'))
      key.resize(dot);
    return origins_.where(key);
  }

  const Origins& origins_;
  std::vector<ResumeChange>& out_;
};

std::string line_of(const ResumeChange& c) {
  std::string s =
      fmt::format("{} was {}, is {}", excerpt(c.key), excerpt(c.was, kShown), excerpt(c.is, kShown));
  if (c.is != kAbsent) s += fmt::format(" ({})", c.place);
  return s;
}

std::string remedy(const ResumeChange& c) {
  if (c.was == kAbsent) return "remove it";
  return c.was.size() > kShown ? "restore the saved value" : fmt::format("restore {}={}", c.key, c.was);
}

}  // namespace

ResumeChanges resume_changes(const YamlText& saved, const JobConfig& job) {
  ResumeChanges out;
  out.saved_job = saved.name;
  JobConfig was, is = job;  // visit() hands out mutable members
  try {
    out.unknown = load_known_settings(settings_of(was), saved);
  } catch (const UsageError& e) {
    throw ContentsError("[checkpoint] the saved job is not readable: {}", e.what());
  }
  Comparison(job.origins, out.changed).compare(settings_of(was), settings_of(is), "");
  return out;
}

void refuse_resume_changes(const ResumeChanges& changes, const std::string& checkpoint) {
  std::string lines;
  for (const ResumeChange& c : changes.changed)
    if (c.meaning == OnResume::error) lines += fmt::format("\n  {}; {}", line_of(c), remedy(c));
  if (!lines.empty())
    throw UsageError(
        "[checkpoint] {} cannot be resumed: these settings differ from {}. Restore them, or start a new run "
        "in another workdir or with checkpoint.resume=never:{}",
        checkpoint, changes.saved_job, lines);
}

std::vector<std::string> resume_notes(const ResumeChanges& changes) {
  std::vector<std::string> notes;
  for (const ResumeChange& c : changes.changed)
    if (c.meaning == OnResume::note) notes.push_back(line_of(c) + (c.remark.empty() ? "" : "; " + c.remark));
  if (!changes.unknown.empty())
    notes.push_back(fmt::format("{} has settings that this version of redco does not have: {}",
                                changes.saved_job,
                                excerpt(fmt::format("{}", fmt::join(changes.unknown, ", ")), 200)));
  return notes;
}

}  // namespace redco
