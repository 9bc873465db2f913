#include "launch/rank_environment.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "launch/join/server.h"
#include "launch/rank_errors.h"

namespace redco {

namespace {

bool is_identifier(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

Environment parse_environment(const std::map<std::string, std::string>& settings, const Environment& here) {
  Environment out;
  for (const auto& [name, text] : settings) {
    const std::string key = "[parallel] environment." + excerpt(name);
    if (!is_identifier(name))
      throw UsageError(
          "{}: '{}' is not the name of an environment variable; expected letters, digits and '_', not "
          "starting with a digit",
          key, excerpt(name));
    if (name == "OMP_NUM_THREADS")
      throw UsageError("{}: redco sets this variable itself; use parallel.threads_per_rank", key);
    const auto value = nlohmann::json::parse(text, nullptr, false);
    if (value.is_null()) {
      if (const auto it = here.find(name); it != here.end()) out[name] = it->second;
      continue;
    }
    if (value.is_number_integer()) {
      out[name] = value.dump();
    } else if (value.is_string()) {
      out[name] = value.get<std::string>();
    } else {
      throw UsageError("{}: expected a string, an integer or ~, got {}; write the value in quotes", key,
                       excerpt(text));
    }
    if (out[name].find('\0') != std::string::npos)
      throw UsageError("{}: the value has a zero byte, which an environment variable cannot hold", key);
  }
  return out;
}

std::set<std::string> inherited_names(const Environment& environment, bool other_hosts) {
  static constexpr std::array<std::string_view, 5> kPrefixes{"REDCO_", "OPENBLAS_", "OMP_", "GOMP_", "HF_"};
  std::set<std::string> names;
  for (const auto& [name, value] : environment) {
    const bool secret = name == kAgentVariable || name == "REDCO_KEY" || name == "REDCO_KEY_FILE";
    if (!is_identifier(name) || name == kMarkErrors || name == kStarted || secret) continue;
    const bool known = std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                   [&name = name](std::string_view p) { return name.rfind(p, 0) == 0; });
    const bool of_hwloc = name == "HWLOC_HIDE_ERRORS";  // see hide_hwloc_warnings()
    const bool of_start = name == "SLURM_ARRAY_TASK_ID" || name == "SLURM_RESTART_COUNT" ||
                          name == "SLURM_JOB_ID" || name == "SLURM_CLUSTER_NAME";
    if (known || of_hwloc || of_start ||
        (other_hosts && !value.empty() && (name == "PATH" || name == "LD_LIBRARY_PATH")))
      names.insert(name);
  }
  return names;
}

}  // namespace redco
