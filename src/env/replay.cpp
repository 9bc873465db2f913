#include "env/replay.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/jsonl.h"
#include "base/words.h"
#include "env/make_environment.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

std::string name_of_file(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find(".json"));
}

class Trace {
 public:
  Trace(const std::string& path, const Environment& env, double tolerance)
      : lines_(path), env_(env), tolerance_(tolerance) {}

  ReplayReport run() {
    report_.environment = env_.name();
    std::string text;
    std::vector<double> state;
    i64 t = 0;
    while (lines_.next(text)) {
      const Json j = parse_json_line(text, "[env] " + lines_.where());
      if (j.contains("reset_observation")) {
        state = numbers(j, "internal_state", env_.state_size());
        ++report_.episodes;
        t = 0;
        std::vector<float> o(env_.observation_size());
        env_.observe(state, o);
        compare(report_.observation, o, numbers(j, "reset_observation", env_.observation_size()),
                "observation");
        continue;
      }
      if (state.empty()) fail("a step before the first reset");
      one_step(j, state, ++t);
    }
    if (report_.steps == 0) throw ContentsError("[env] {} has no steps", name_of_file(lines_.where()));
    report_.passed = report_.first_wrong.empty();
    return report_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ContentsError("[env] {}: {}", lines_.where(), what);
  }

  std::vector<double> numbers(const Json& j, const char* key, i64 n) const {
    const auto it = j.find(key);
    if (it == j.end()) fail(fmt::format("no \"{}\"", key));
    std::vector<double> out;
    if (it->is_number()) out.push_back(it->get<double>());
    if (it->is_array())
      for (const Json& v : *it) {
        if (!v.is_number()) fail(fmt::format("{}: expected a number, got {}", key, excerpt(v.dump())));
        out.push_back(v.get<double>());
      }
    if (static_cast<i64>(out.size()) != n)
      fail(fmt::format("{}: {} needs {} numbers, got {}", key, env_.name(), n, excerpt(it->dump())));
    return out;
  }
  bool flag(const Json& j, const char* key) const {
    const auto it = j.find(key);
    if (it == j.end() || !it->is_boolean()) fail(fmt::format("\"{}\" must be true or false", key));
    return it->get<bool>();
  }

  void wrong(const std::string& what) {
    if (report_.first_wrong.empty()) report_.first_wrong = fmt::format("{}: {}", lines_.where(), what);
  }
  template <class T>
  void compare(double& largest, const std::vector<T>& got, const std::vector<double>& expected,
               const char* what) {
    for (size_t i = 0; i < got.size(); ++i) {
      const double d = std::fabs(static_cast<double>(got[i]) - expected[i]);
      largest = std::max(largest, d);
      if (!(d <= tolerance_ * (1 + std::fabs(expected[i]))))
        wrong(fmt::format("{}[{}] is {}, expected {}", what, i, static_cast<double>(got[i]), expected[i]));
    }
  }

  void one_step(const Json& j, std::vector<double>& state, i64 t) {
    std::vector<float> action, o(env_.observation_size());
    for (double a : numbers(j, "action", env_.action_size())) action.push_back(static_cast<float>(a));
    const EnvOutcome outcome = env_.step(state, action);
    env_.observe(state, o);
    compare(report_.observation, o, numbers(j, "observation", env_.observation_size()), "observation");
    compare(report_.reward, std::vector<double>{outcome.reward}, numbers(j, "reward", 1), "reward");
    const auto next = numbers(j, "internal_state", env_.state_size());
    compare(report_.state, state, next, "internal_state");
    // The time limit truncates even if the task has ended in the same step.
    const bool truncated = t >= env_.time_limit();
    if (outcome.terminated != flag(j, "terminated") || truncated != flag(j, "truncated")) {
      ++report_.wrong_ends;
      wrong(fmt::format("terminated {}, truncated {}", outcome.terminated, truncated));
    }
    state = next;
    ++report_.steps;
  }

  JsonLines lines_;
  const Environment& env_;
  double tolerance_;
  ReplayReport report_;
};

}  // namespace

ReplayReport replay_trace(const std::string& path, const std::string& environment, double tolerance) {
  const std::string name = environment.empty() ? name_of_file(path) : environment;
  const auto known = environment_names();
  if (environment.empty() && std::find(known.begin(), known.end(), name) == known.end())
    throw UsageError("[env] {}: the file name is not an environment's name; give --env {}", path,
                     fmt::join(known, ", "));
  const auto env = make_environment(name);
  return Trace(path, *env, tolerance).run();
}

}  // namespace redco
