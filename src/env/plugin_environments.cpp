#include "env/plugin_environments.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/registry.h"
#include "base/user_code.h"
#include "env/classic_control.h"

namespace redco {

namespace {

Registry<PluginEnvironment>& environments() {
  static auto& known = *new Registry<PluginEnvironment>("environment");
  return known;
}

// Numbers that a call writes, between guards. They are NaN before, so that unwritten ones are found.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::size_t n) : all_(n + 2 * kGuards, std::numeric_limits<T>::quiet_NaN()) {
    std::fill_n(all_.begin(), kGuards, kGuard);
    std::fill_n(all_.end() - kGuards, kGuards, kGuard);
  }
  std::span<T> numbers() { return std::span<T>(all_).subspan(kGuards, all_.size() - 2 * kGuards); }
  bool intact() const {
    const auto whole = [](const T& x) { return x == kGuard; };
    return std::all_of(all_.begin(), all_.begin() + kGuards, whole) &&
           std::all_of(all_.end() - kGuards, all_.end(), whole);
  }

 private:
  static constexpr std::ptrdiff_t kGuards = 8;
  static constexpr T kGuard = static_cast<T>(-7.25e30);
  std::vector<T> all_;
};

class Checked : public Environment {
 public:
  explicit Checked(const PluginEnvironment& plugin) : origin_(plugin.origin) {
    name_ = plugin.name;
    call("the constructor", [&] { user_ = plugin.make(); });
    state_size_ = user_->state_size();
    observation_size_ = user_->observation_size();
    n_actions_ = user_->n_actions();
    action_size_ = user_->action_size();
    action_low_ = user_->action_low();
    action_high_ = user_->action_high();
    time_limit_ = user_->time_limit();
    const auto at_least = [&](const char* what, i64 value, i64 least) {
      if (value < least || value > kMost)
        fail("{} is {}; expected {} to {}. Set it in the constructor", what, value, least, kMost);
    };
    at_least("state_size_", state_size_, 1);
    at_least("observation_size_", observation_size_, 1);
    at_least("action_size_", action_size_, 1);
    at_least("time_limit_", time_limit_, 1);
    at_least("n_actions_", n_actions_, 0);
    if (n_actions_ > 0 && action_size_ != 1)
      fail("n_actions_ is {} and action_size_ is {}; a discrete action is one number", n_actions_,
           action_size_);
    if (n_actions_ == 0 &&
        !(std::isfinite(action_low_) && std::isfinite(action_high_) && action_low_ < action_high_))
      fail(
          "action_low_ is {} and action_high_ is {}; expected finite numbers, the first one smaller. Set "
          "them in the constructor, or n_actions_ for discrete actions",
          action_low_, action_high_);
  }

  void reset(std::span<const double> uniforms, std::span<double> state) const override {
    Guarded<double> out(state.size());
    call("reset()", [&] { user_->reset(uniforms, out.numbers()); });
    take(out, "reset()", "state", state, [] { return std::string(); });
  }

  void observe(std::span<const double> state, std::span<float> observation) const override {
    Guarded<float> out(observation.size());
    call("observe()", [&] { user_->observe(state, out.numbers()); });
    take(out, "observe()", "observation", observation,
         [&] { return fmt::format(" of the state [{}]", fmt::join(state, ", ")); });
  }

  EnvOutcome step(std::span<double> state, std::span<const float> action) const override {
    for (const float a : action) {
      const bool good = n_actions_ > 0 ? a >= 0 && a < static_cast<float>(n_actions_) && a == std::floor(a)
                                       : std::isfinite(a);
      if (!good && n_actions_ > 0) fail("has the actions 0 to {}, but the action is {}", n_actions_ - 1, a);
      if (!good) fail("got the action [{}]; expected finite numbers", fmt::join(action, ", "));
    }
    const auto from = [was = std::vector<double>(state.begin(), state.end()), action] {
      return fmt::format(" after the action [{}] in the state [{}]", fmt::join(action, ", "),
                         fmt::join(was, ", "));
    };
    Guarded<double> out(state.size());
    std::ranges::copy(state, out.numbers().begin());
    EnvOutcome outcome;
    call("step()", [&] { outcome = user_->step(out.numbers(), action); });
    take(out, "step()", "state", state, from);
    if (!std::isfinite(outcome.reward)) fail("step() returned the reward {}{}", outcome.reward, from());
    return outcome;
  }

 private:
  static constexpr i64 kMost = 1 << 20;

  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> f, A&&... a) const {
    throw UsageError("[env] {} ({}): {}", name_, origin_, fmt::format(f, std::forward<A>(a)...));
  }

  template <class F>
  void call(const char* function, const F& f) const {
    try {
      f();
    } catch (...) {
      rethrow_from_user([&](const std::string& why) {
        return fmt::format("[env] {} ({}): {} failed{}", name_, origin_, function, why);
      });
    }
  }

  template <class T, class Where>
  void take(Guarded<T>& from, const char* function, const char* what, std::span<T> to,
            const Where& where) const {
    if (!from.intact())
      fail("{} wrote outside of the {} numbers of its {}; {}_size_ is {}", function, to.size(), what, what,
           to.size());
    const std::span<T> numbers = from.numbers();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!std::isfinite(numbers[i]))
        fail("{} left {}[{}] as {}{}; expected {} finite numbers", function, what, i, numbers[i], where(),
             numbers.size());
    std::ranges::copy(numbers, to.begin());
  }

  std::string origin_;
  std::unique_ptr<Environment> user_;
};

}  // namespace

void add_environment(const PluginEnvironment& environment) {
  environments().add(environment, fmt::format("REDCO_ENVIRONMENT(\"{}\")", environment.name),
                     std::ranges::count(classic_control(), environment.name, &ClassicEnvironment::name) > 0);
}

std::vector<PluginEnvironment> plugin_environments() { return environments().all(); }

std::unique_ptr<Environment> checked_environment(const PluginEnvironment& plugin) {
  return std::make_unique<Checked>(plugin);
}

}  // namespace redco
