#include "optim/rule_optimizer.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ops/elementwise.h"

namespace redco {

namespace {

void copy(const Tensor& from, const Tensor& to) { Context::current().run(&Kernels::copy, from, to); }

// The value with the layout of `to`, in other bytes than those of `written`, unless they are those of `to`.
Tensor value_for(const Tensor& to, const Tensor& value, const Tensors& written) {
  Tensor out = redistribute(value, to.layout());
  if (out.same_bytes(to)) return to;
  if (std::ranges::any_of(written, [&](const Tensor& t) { return t.storage() == out.storage(); })) {
    const Tensor other(out.shape(), out.dtype(), out.layout());
    copy(out, other);
    out = other;
  }
  return out;
}

void check_names(const RuleSettings& s, const std::vector<std::string>& names) {
  std::set<std::string> known = {"master"};  // of the fp32 copies in a checkpoint
  for (const std::string& name : names)
    if (name.empty() || name.find('/') != std::string::npos || !known.insert(name).second)
      throw UsageError(
          "[optimizer] state() of {}{} has the name '{}'; expected names that differ, without a slash, and not "
          "'master'",
          s.name, s.origin.empty() ? "" : " (" + s.origin + ")", name);
}

// Elements [first, first + n) of the local block, as a vector of this rank alone.
Tensor range(const Tensor& t, i64 first, i64 n) { return Tensor::within(t, first, {n}, {}); }

}  // namespace

RuleOptimizer::RuleOptimizer(const RuleSettings& settings, const ParamTree& params, StateSharding sharding,
                             const std::vector<bool>& members)
    : Optimizer(params, sharding, members), settings_(settings), names_(settings.rule->state()) {
  check_names(settings_, names_);
  for (std::size_t s = 0; s < names_.size(); ++s) trees_.push_back(zeros(params));
}

std::vector<Optimizer::State> RuleOptimizer::state() const {
  std::vector<State> out;
  for (std::size_t s = 0; s < names_.size(); ++s) out.push_back({names_[s], trees_[s]});
  return out;
}

Update RuleOptimizer::call(const Tensor& p, const Tensor& g, const Tensors& state,
                           const UpdateContext& c) const {
  const std::string who =
      settings_.origin.empty() ? settings_.name : fmt::format("{} ({})", settings_.name, settings_.origin);
  const auto fail = [&](const std::string& why) {
    throw UsageError("[optimizer] update() of {} for {} {}", who, c.spec.name, why);
  };
  Update u;
  try {
    u = settings_.rule->update(p, g, state, c);
  } catch (const BugError& e) {
    fail("failed: " + e.found());
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ExitCode::bug,
                fmt::format("[optimizer] update() of {} for {} failed: {}", who, c.spec.name, e.what()));
  }
  const auto check = [&](const Tensor& t, const std::string& what) {
    if (!t.defined()) fail(fmt::format("returned no {}", what));
    if (t.shape() != p.shape() || t.dtype() != p.dtype())
      fail(fmt::format("returned {} as {}; expected the parameter's {}", describe(t), what, describe(p)));
  };
  check(u.param, "parameter");
  if (u.state.size() != names_.size())
    fail(fmt::format("returned {} tensors of state; state() names {}", u.state.size(), names_.size()));
  for (std::size_t s = 0; s < names_.size(); ++s) check(u.state[s], "state '" + names_[s] + "'");
  return u;
}

// One update, in place.
void RuleOptimizer::apply(const Tensor& p, const Tensor& g, const Tensors& state, double scale,
                          const UpdateContext& c) const {
  // Scaled by 1 too, so that plan and run have the same ops.
  const Update u = call(p, redco::scale(g, scale), state, c);
  Tensors to = {p}, values;
  for (const Tensor& s : state) to.push_back(s);
  values.push_back(value_for(p, u.param, to));
  for (std::size_t s = 0; s < state.size(); ++s) values.push_back(value_for(state[s], u.state[s], to));
  for (std::size_t k = 0; k < to.size(); ++k)
    if (!values[k].same_bytes(to[k])) copy(values[k], to[k]);
}

void RuleOptimizer::update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate,
                           double scale, const std::vector<bool>& selected) {
  const NoGrad off;
  const Scope scope("optimizer");
  std::vector<RowParts> updated;
  for (std::size_t k = 0; k < members().size(); ++k) {
    const std::size_t i = members()[k];
    if (!selected.empty() && !selected[i]) continue;
    ++updates()[i];
    const Tensor p = part(params, grads, i, sharding());
    Tensors state;
    for (const ParamTree& tree : trees_) state.push_back(tree.values()[k]);
    const ParamSpec& spec = params.specs()[i];
    const UpdateContext about{
        .spec = spec,
        .updates = updates()[i],
        .learning_rate = learning_rate,
        .weight_decay = decay_of(spec, settings_.weight_decay, settings_.decay_norms_and_biases)};
    if (settings_.rule->elementwise()) {
      for (i64 first = 0; first < p.local_numel(); first += UpdateRule::kMostElements) {
        const i64 n = std::min(UpdateRule::kMostElements, p.local_numel() - first);
        Tensors part_of_state;
        for (const Tensor& s : state) part_of_state.push_back(range(s, first, n));
        apply(range(p, first, n), range(grads[i], first, n), part_of_state, scale, about);
      }
    } else {
      apply(p, grads[i], state, scale, about);
    }
    updated.push_back({params.values()[i], grads[i].layout()});
  }
  const Scope gathers("parameters");
  gather_rows_in_place(updated);
}

}  // namespace redco
