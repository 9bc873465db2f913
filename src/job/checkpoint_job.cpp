#include "job/checkpoint_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "config/bind.h"
#include "config/dump.h"
#include "config/include.h"

namespace redco {

namespace {

using Kind = Setting::Kind;
using Json = nlohmann::json;

constexpr std::size_t kMostNamed = 4;  // values in the warning

class Merge {
 public:
  Merge(CheckpointJob& out, const std::string& saved_name, const CheckpointFacts& facts)
      : out_(out), origins_(out.job.origins), saved_name_(saved_name), facts_(facts) {}

  // The same declarations, bound to the saved job and to the merged one.
  void merge(const std::vector<Setting>& saved, const std::vector<Setting>& mine, const std::string& prefix) {
    for (std::size_t i = 0; i < saved.size(); ++i) {
      const Setting &from = saved[i], &to = mine[i];
      const std::string key = prefix + to.name;
      if (to.kind == Kind::section) {
        merge(from.fields, to.fields, key + ".");
      } else if (to.decider.value_or(DecidedBy::job) == DecidedBy::job) {
        continue;
      } else if (to.kind == Kind::rest) {
        merge_others(*from.others, to, prefix);
      } else {
        REDCO_CHECK(to.kind != Kind::items, "{}: a list of sections is the job's", key);
        merge_value(from, to, key);
      }
    }
  }

 private:
  void merge_value(const Setting& from, const Setting& to, const std::string& key) {
    if (origins_.given(key)) {
      if (*to.decider == DecidedBy::either) return;
      const bool same = to.is_path && !to.list ? same_path(from, to, key) : from.get() == to.get();
      if (!same) {
        if (*to.decider == DecidedBy::overridable && origins_.overridden(key)) return;
        contradict(key, yaml_value(to), yaml_value(from), key);
      }
    }
    to.set(from.get());
    origins_.inherit(key, saved_name_);
  }

  bool same_path(const Setting& from, const Setting& to, const std::string& key) {
    const SettingValue given = to.get().at(0), saved = from.get().at(0);
    const auto* path = std::get_if<std::string>(&given);
    if (!path) return true;  // ~: the model's own
    const auto* other = std::get_if<std::string>(&saved);
    if (!facts_.same_files) return other && *path == *other;
    return facts_.same_files(key, *path, other ? std::optional(*other) : std::nullopt);
  }

  // Keys that are not declared, as JSON texts.
  void merge_others(const std::map<std::string, std::string>& from, const Setting& to,
                    const std::string& prefix) {
    std::map<std::string, std::string> merged = from;
    for (const auto& [name, text] : *to.others) {
      const std::string key = prefix + name;
      const bool is_override = overridden_in(key);
      if (*to.decider == DecidedBy::either || (*to.decider == DecidedBy::overridable && is_override)) {
        merged[name] = text;
        continue;
      }
      const auto it = from.find(name);
      std::string saved = it != from.end() ? it->second : "";
      if (saved.empty() && facts_.config) saved = facts_.config(name);
      compare_json(Json::parse(text), saved.empty() ? Json(Json::value_t::discarded) : Json::parse(saved),
                   key, key);
    }
    *to.others = std::move(merged);
    for (const auto& [name, text] : *to.others)
      if (from.count(name) && from.at(name) == text) origins_.inherit(prefix + name, saved_name_);
  }

  // Whether an override gives the key, or a key inside its value.
  bool overridden_in(const std::string& key) const {
    if (origins_.overridden(key)) return true;
    return std::ranges::any_of(origins_.places(), [&](const auto& place) {
      return place.first.starts_with(key + ".") && origins_.overridden(place.first);
    });
  }

  // Compares the given keys of an object. A discarded value means an absent key.
  void compare_json(const Json& given, const Json& saved, const std::string& key, const std::string& origin) {
    if (given.is_object() && saved.is_object()) {
      for (const auto& [name, value] : given.items())
        compare_json(value, saved.contains(name) ? saved[name] : Json(Json::value_t::discarded),
                     key + "." + name, origin);
    } else if (saved.is_discarded() || given != saved) {
      contradict(key, given.dump(), saved.is_discarded() ? "~" : saved.dump(), origin);
    }
  }

  void contradict(const std::string& key, std::string given, std::string saved, const std::string& origin) {
    if (given == saved) saved += " of other contents";
    if (saved == "~") saved = "its own";
    out_.contradictions.push_back(
        {key, std::move(given), std::move(saved), origins_.where(origin), origins_.overridden(origin)});
  }

  CheckpointJob& out_;
  Origins& origins_;
  const std::string& saved_name_;
  const CheckpointFacts& facts_;
};

}  // namespace

CheckpointJob merge_checkpoint_job(const JobConfig& given, const YamlText& saved,
                                   const CheckpointFacts& facts) {
  CheckpointJob out{given, {}, {}};
  JobConfig theirs;
  try {
    out.unknown = load_known_settings(settings_of(theirs), saved);
  } catch (const UsageError& e) {
    throw ContentsError("[checkpoint] the saved job can't be read: {}", e.what());
  }
  Merge(out, saved.name, facts).merge(settings_of(theirs), settings_of(out.job), "");
  return out;
}

void refuse_contradicting_overrides(const CheckpointJob& merged, const std::string& checkpoint) {
  std::string lines;
  for (const Contradiction& c : merged.contradictions)
    if (c.is_override)
      lines += fmt::format("\n  {}: {} is {}, but the checkpoint has {}", excerpt(c.place, 200),
                           excerpt(c.key), excerpt(c.given), excerpt(c.saved));
  if (!lines.empty())
    throw UsageError(
        "[checkpoint] overrides contradict the checkpoint {}. Remove them; or use its weights as those of "
        "any model: model.path={}, without workdir and predict.checkpoint:{}",
        checkpoint, checkpoint, lines);
}

std::string ignored_values(const CheckpointJob& merged, const std::string& checkpoint) {
  std::vector<std::string> values;
  for (const Contradiction& c : merged.contradictions)
    if (!c.is_override)
      values.push_back(
          fmt::format("{} is {}, not {} ({})", excerpt(c.key), excerpt(c.saved), excerpt(c.given), c.place));
  if (values.empty()) return "";
  const std::size_t n = values.size();
  if (n > kMostNamed) {
    values.resize(kMostNamed);
    values.push_back(fmt::format("and {} more", n - kMostNamed));
  }
  return fmt::format("[checkpoint] the settings of {} are used: {}", checkpoint, fmt::join(values, "; "));
}

}  // namespace redco
