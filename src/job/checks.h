// The problems that checks of a job find.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/job_config.h"

namespace redco {

class Checks {
 public:
  explicit Checks(const JobConfig& job) : job_(job) {}

  // "train.seed=1 (job.yaml:3:9)"
  template <class T>
  std::string cite(const std::string& key, const T& value) const {
    return fmt::format("{}={} ({})", key, value, job_.origins.where(key));
  }

  // Whether the value is given and differs from the default. The dump of a job (config.resolved.yaml) gives
  // every key, so `given` alone is not enough.
  bool changed(const std::string& key) const {
    if (!job_.origins.given(key)) return false;
    JobConfig job = job_, fresh;  // visit() hands out mutable members
    return value(settings_of(job), key) != value(settings_of(fresh), key);
  }

  // The value of a setting that is one text.
  std::string text_of(const std::string& key) const {
    JobConfig job = job_;
    return std::get<std::string>(value(settings_of(job), key).at(0));
  }

  template <class... A>
  void problem(fmt::format_string<A...> f, A&&... a) {
    problems_.push_back(fmt::format(f, std::forward<A>(a)...));
  }

  // Runs a check that throws; false if it threw.
  template <class F>
  bool run(F f) {
    try {
      f();
      return true;
    } catch (const UsageError& e) {
      problems_.push_back(e.what());
      return false;
    }
  }

  void done(const MoreProblems& more) {
    if (problems_.empty()) return;
    if (more)
      for (std::string& p : more(job_)) problems_.push_back(std::move(p));
    throw UsageError("{}", fmt::join(problems_, "\n"));
  }

 private:
  // The value of the setting with this dotted name.
  static std::vector<SettingValue> value(const std::vector<Setting>& settings, std::string_view key) {
    const auto dot = key.find('.');
    for (const Setting& s : settings) {
      if (s.name != key.substr(0, dot)) continue;
      return dot == std::string_view::npos ? s.get() : value(s.fields, key.substr(dot + 1));
    }
    REDCO_CHECK(false, "no setting '{}'", key);
    return {};
  }

  const JobConfig& job_;
  std::vector<std::string> problems_;
};

// Checks the data: files, sources, formats, settings of the other format.
void check_data(const JobConfig& job, Checks& c);

}  // namespace redco
