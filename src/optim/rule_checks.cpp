// Calls of a user's rule, and checks of what it returns.
#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/user_code.h"
#include "ops/create.h"
#include "optim/deal.h"
#include "optim/rule_optimizer.h"

namespace redco {

std::string RuleOptimizer::who() const {
  return settings_.origin.empty() ? settings_.name : fmt::format("{} ({})", settings_.name, settings_.origin);
}

std::vector<StateSpec> RuleOptimizer::checked_state(const ParamSpec& spec) const {
  std::vector<StateSpec> out;
  try {
    out = settings_.rule->state_of(spec);
  } catch (...) {
    rethrow_from_user([&](const std::string& why) {
      return fmt::format("[optimizer] state_of() of {} for {} failed{}", who(), spec.name, why);
    });
  }
  std::set<std::string> known = {"master"};  // of the fp32 copies in a checkpoint
  for (const StateSpec& s : out) {
    if (s.name.empty() || s.name.find('/') != std::string::npos || !known.insert(s.name).second)
      throw UsageError(
          "[optimizer] the state of {} for {} has the name '{}'; expected names that differ, without a slash, "
          "and not 'master'",
          who(), spec.name, s.name);
    bool fits = s.shape.size() == spec.shape.size();
    for (std::size_t d = 0; fits && d < s.shape.size(); ++d)
      fits = s.shape[d] == spec.shape[d] || (s.shape[d] == 1 && !settings_.rule->elementwise());
    if (!fits)
      throw UsageError(
          "[optimizer] the state '{}' of {} for {} has the shape {}; expected the parameter's, {}{}", s.name,
          who(), spec.name, to_string(s.shape), to_string(spec.shape),
          settings_.rule->elementwise() ? ", since elementwise() is true" : ", where a dim may also be 1");
  }
  return out;
}

Update RuleOptimizer::call(const Tensor& p, const Tensor& g, const Tensors& state,
                           const UpdateContext& c) const {
  Update u;
  try {
    u = settings_.rule->update(p, g, state, c);
  } catch (...) {
    rethrow_from_user([&](const std::string& why) {
      return fmt::format("[optimizer] update() of {} for {} failed{}", who(), c.spec.name, why);
    });
  }
  const auto fail = [&](const std::string& why) {
    throw UsageError("[optimizer] update() of {} for {} returned {}", who(), c.spec.name, why);
  };
  const auto check = [&](const Tensor& t, const Tensor& was, const std::string& what) {
    if (!t.defined()) fail("no " + what);
    if (t.shape() != was.shape() || t.dtype() != was.dtype())
      fail(fmt::format("{} as {}; expected {}", describe(t), what, describe(was)));
  };
  check(u.param, p, "parameter");
  if (u.state.size() != state.size())
    fail(fmt::format("{} tensors of state; its state has {}", u.state.size(), state.size()));
  const std::vector<StateSpec> names = settings_.rule->state_of(c.spec);
  for (std::size_t s = 0; s < state.size(); ++s) check(u.state[s], state[s], "state '" + names[s].name + "'");
  return u;
}

void RuleOptimizer::check_elementwise(const ParamSpec& spec) const {
  const NoGrad off;
  constexpr i64 kWhole = 6, kHalf = 3;
  const auto vector = [](double from) {
    std::vector<float> values;
    for (i64 i = 0; i < kWhole; ++i)
      values.push_back(static_cast<float>(from + 0.37 * std::sin(5.0 * static_cast<double>(i))));
    return from_values({kWhole}, std::span<const float>(values));
  };
  const Tensor p = vector(0.1), g = vector(-0.2);
  Tensors state;
  for (std::size_t s = 0; s < checked_state(spec).size(); ++s) state.push_back(vector(0.5));
  // The new parameter and state of elements [first, first + n) after two updates.
  const auto updated = [&](i64 first, i64 n) {
    Tensors now = {range_of(p, first, n)};
    for (const Tensor& t : state) now.push_back(range_of(t, first, n));
    for (i64 k = 1; k <= 2; ++k) {
      const UpdateContext c{.spec = spec, .updates = k, .learning_rate = 0.01, .weight_decay = 0.1};
      const Update u = call(now[0], range_of(g, first, n), Tensors(now.begin() + 1, now.end()), c);
      now[0] = u.param;
      std::ranges::copy(u.state, now.begin() + 1);
    }
    std::vector<std::vector<double>> values;
    if (Context::current().is_meta()) return values;
    for (const Tensor& t : now) values.push_back(to_values(t));
    return values;
  };
  const auto whole = updated(0, kWhole), left = updated(0, kHalf), right = updated(kHalf, kWhole - kHalf);
  for (std::size_t t = 0; t < whole.size(); ++t)
    for (i64 i = 0; i < kWhole; ++i) {
      const double apart = i < kHalf ? left[t][i] : right[t][i - kHalf];
      if (std::bit_cast<u64>(whole[t][i]) == std::bit_cast<u64>(apart)) continue;
      throw UsageError(
          "[optimizer] elementwise() of {} is true, but update() of a vector of {} elements gives element {} "
          "{} as {}, and update() of its half gives {}. Remove elementwise() if update() adds up over "
          "elements or draws random numbers",
          who(), kWhole, i, t == 0 ? "of the parameter" : "of state " + std::to_string(t - 1), whole[t][i],
          apart);
    }
}

}  // namespace redco
