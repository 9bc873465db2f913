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

// The axes over which the replicas divide the state.
bool divides_state(const Mesh& mesh, Axis a) { return mesh.role(a) == AxisRole::data && mesh.size(a) > 1; }

// The layout of k * n stacked tensors, as (k, n, shape...).
Layout stacked(const Layout& of) {
  Layout out = of;
  for (Placement& p : out.on)
    if (p.is_sharded()) p = Placement::sharded(p.dim + 2, p.unit);
  return out;
}

// Tensor (j, s) of a stack of which this rank holds whole tensors or equal parts of all.
Tensor entry(const Tensor& stack, i64 j, i64 s, const Shape& shape, const Layout& layout) {
  const i64 n = stack.shape()[1], all = stack.local()[0] * n;
  return Tensor::within(stack, (j * n + s) * (stack.local_numel() / all), shape, layout);
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

void RuleOptimizer::in_ranges(const Job& job, double scale) const {
  for (i64 first = 0; first < job.param.local_numel(); first += UpdateRule::kMostElements) {
    const i64 n = std::min(UpdateRule::kMostElements, job.param.local_numel() - first);
    Tensors state;
    for (const Tensor& s : job.state) state.push_back(range(s, first, n));
    apply(range(job.param, first, n), range(job.gradient, first, n), state, scale, job.about);
  }
}

// At most one job for each replica; all have the same shape and layout.
void RuleOptimizer::dealt(const std::vector<Job>& jobs, double scale) const {
  const Mesh& mesh = Context::current().mesh();
  const Tensor& like = jobs[0].param;
  const auto k = static_cast<i64>(jobs.size()), n_state = static_cast<i64>(names_.size());
  const auto shape_of = [&](i64 n) {
    Shape out = {k, n};
    for (const i64 size : like.shape()) out.push_back(size);
    return out;
  };
  const Layout parts = stacked(like.layout());
  Layout whole = parts, alone = like.layout();
  for (Axis a : mesh.axes())
    if (divides_state(mesh, a)) whole[a] = Placement::sharded(0), alone[a] = Placement::replicated();
  const Tensor mine = [&] {
    const Tensor all(shape_of(2 + n_state), like.dtype(), parts);
    for (i64 j = 0; j < k && all.local_numel() > 0; ++j) {
      const auto put = [&](i64 s, const Tensor& t) {
        copy(t, entry(all, j, s, like.shape(), like.layout()));
      };
      put(0, jobs[j].param);
      put(1, jobs[j].gradient);
      for (i64 s = 0; s < n_state; ++s) put(2 + s, jobs[j].state[s]);
    }
    return redistribute(all, whole);
  }();
  const Tensor results(shape_of(1 + n_state), like.dtype(), whole);
  if (const Range own = mine.range(0); own.size() > 0) {
    REDCO_CHECK(own.size() == 1, "{} parameters for one replica", own.size());
    const auto at = [&](const Tensor& stack, i64 s) { return entry(stack, 0, s, like.shape(), alone); };
    Tensors state;
    for (i64 s = 0; s < n_state; ++s) state.push_back(at(mine, 2 + s));
    const Update u = call(at(mine, 0), redco::scale(at(mine, 1), scale), state, jobs[own.begin].about);
    copy(redistribute(u.param, alone), at(results, 0));
    for (i64 s = 0; s < n_state; ++s) copy(redistribute(u.state[s], alone), at(results, 1 + s));
  }
  const Tensor back = redistribute(results, parts);
  for (i64 j = 0; j < k && back.local_numel() > 0; ++j) {
    const auto take = [&](i64 s, const Tensor& to) {
      copy(entry(back, j, s, like.shape(), like.layout()), to);
    };
    take(0, jobs[j].param);
    for (i64 s = 0; s < n_state; ++s) take(1 + s, jobs[j].state[s]);
  }
}

void RuleOptimizer::update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate,
                           double scale, const std::vector<bool>& selected) {
  const NoGrad off;
  const Scope scope("optimizer");
  const Mesh& mesh = Context::current().mesh();
  std::vector<RowParts> updated;
  std::vector<std::vector<Job>> deals;  // each of one shape and layout, not complete
  for (std::size_t k = 0; k < members().size(); ++k) {
    const std::size_t i = members()[k];
    if (!selected.empty() && !selected[i]) continue;
    ++updates()[i];
    const ParamSpec& spec = params.specs()[i];
    Job job{
        .param = part(params, grads, i, sharding()),
        .gradient = grads[i],
        .state = {},
        .about = {.spec = spec,
                  .updates = updates()[i],
                  .learning_rate = learning_rate,
                  .weight_decay = decay_of(spec, settings_.weight_decay, settings_.decay_norms_and_biases)}};
    for (const ParamTree& tree : trees_) job.state.push_back(tree.values()[k]);
    updated.push_back({params.values()[i], grads[i].layout()});
    const Layout& layout = job.param.layout();
    bool divided = false;
    for (Axis a : mesh.axes()) divided = divided || (divides_state(mesh, a) && layout[a].is_sharded());
    if (settings_.rule->elementwise()) {
      in_ranges(job, scale);
    } else if (!divided) {
      apply(job.param, job.gradient, job.state, scale, job.about);
    } else {
      auto deal = std::ranges::find_if(deals, [&](const std::vector<Job>& d) {
        return d[0].param.shape() == job.param.shape() && d[0].param.layout() == layout;
      });
      if (deal == deals.end()) deal = deals.insert(deal, std::vector<Job>());
      deal->push_back(std::move(job));
      if (static_cast<int>(deal->size()) < mesh.ranks(AxisRole::data)) continue;
      dealt(*deal, scale);
      deals.erase(deal);
    }
  }
  for (const std::vector<Job>& deal : deals) dealt(deal, scale);
  const Scope gathers("parameters");
  gather_rows_in_place(updated);
}

}  // namespace redco
