#include "optim/rule_optimizer.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "optim/deal.h"

namespace redco {

namespace {

// The value with the layout of `to`, in other bytes than those of `written`, unless they are those of `to`.
Tensor value_for(const Tensor& to, const Tensor& value, const Tensors& written) {
  Tensor out = redistribute(value, to.layout());
  if (out.same_bytes(to)) return to;
  if (std::ranges::any_of(written, [&](const Tensor& t) { return t.storage() == out.storage(); })) {
    const Tensor other(out.shape(), out.dtype(), out.layout());
    copy_into(out, other);
    out = other;
  }
  return out;
}

// The layout of a parameter's state of this shape.
Layout state_layout(const Tensor& param, StateSharding sharding, const Shape& shape) {
  Layout out = redco::state_layout(param, sharding);
  for (Placement& p : out.on)
    if (p.is_sharded() && shape[p.dim] != param.shape()[p.dim]) p = Placement::replicated();
  return out;
}

}  // namespace

RuleOptimizer::RuleOptimizer(const RuleSettings& settings, const ParamTree& params, StateSharding sharding,
                             const std::vector<bool>& members)
    : Optimizer(params, sharding, members), settings_(settings) {
  struct Named {
    std::vector<ParamSpec> specs;
    std::vector<Tensor> values;
  };
  std::vector<std::string> names;
  std::map<std::string, Named> named;
  for (const std::size_t i : this->members()) {
    const Tensor& p = params.values()[i];
    Tensors& mine = of_member_.emplace_back();
    for (const StateSpec& s : checked_state(params.specs()[i])) {
      mine.push_back(redco::zeros(s.shape, p.dtype(), state_layout(p, sharding, s.shape)));
      if (!named.contains(s.name)) names.push_back(s.name);
      Named& all = named[s.name];
      all.values.push_back(mine.back());
      ParamSpec& spec = all.specs.emplace_back(params.specs()[i]);
      if (s.shape != spec.shape) {
        spec.shape = s.shape;
        spec.stored = {.name = spec.name, .shape = s.shape};
      }
    }
  }
  if (settings_.rule->elementwise() && !this->members().empty())
    check_elementwise(params.specs()[this->members()[0]]);
  for (const std::string& name : names) {
    ParamTree tree(named[name].specs, {});
    tree.values() = named[name].values;
    by_name_.push_back({name, tree});
  }
}

std::vector<Optimizer::State> RuleOptimizer::state() const { return by_name_; }

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
    if (!values[k].same_bytes(to[k])) copy_into(values[k], to[k]);
}

void RuleOptimizer::in_ranges(const Job& job, double scale) const {
  for (i64 first = 0; first < job.param.local_numel(); first += UpdateRule::kMostElements) {
    const i64 n = std::min(UpdateRule::kMostElements, job.param.local_numel() - first);
    Tensors state;
    for (const Tensor& s : job.state) state.push_back(range_of(s, first, n));
    apply(range_of(job.param, first, n), range_of(job.gradient, first, n), state, scale, job.about);
  }
}

// At most one job for each replica; parameters have the same shape and layout, and so has each of the state.
void RuleOptimizer::dealt(const std::vector<Job>& jobs, double scale) const {
  const Tensor& like = jobs[0].param;
  const std::size_t n_state = jobs[0].state.size();
  // State like the parameter moves together with it.
  std::vector<std::size_t> alike, others;
  for (std::size_t s = 0; s < n_state; ++s)
    (jobs[0].state[s].shape() == like.shape() ? alike : others).push_back(s);
  std::vector<Tensors> in(jobs.size()), out(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    in[j] = {jobs[j].param, jobs[j].gradient};
    out[j] = {jobs[j].param};
    for (const std::size_t s : alike) in[j].push_back(jobs[j].state[s]), out[j].push_back(jobs[j].state[s]);
  }
  const auto one = [&](std::size_t s) {
    std::vector<Tensors> parts;
    for (const Job& job : jobs) parts.push_back({job.state[s]});
    return parts;
  };
  const Tensor mine = to_replicas(in);
  Tensors more;
  for (const std::size_t s : others) more.push_back(to_replicas(one(s)));
  const auto k = static_cast<i64>(jobs.size());
  const Tensor results = stack_of(k, 1 + static_cast<i64>(alike.size()), like, mine.layout());
  Tensors more_results;
  for (std::size_t o = 0; o < others.size(); ++o)
    more_results.push_back(stack_of(k, 1, jobs[0].state[others[o]], more[o].layout()));
  if (const Range own = mine.range(0); own.size() > 0) {
    REDCO_CHECK(own.size() == 1, "{} parameters for one replica", own.size());
    const auto at = [&](const Tensor& stack, std::size_t n, const Tensor& part) {
      return dealt_entry(stack, static_cast<i64>(n), part);
    };
    Tensors state(n_state), to(n_state);
    for (std::size_t a = 0; a < alike.size(); ++a) {
      state[alike[a]] = at(mine, 2 + a, like);
      to[alike[a]] = at(results, 1 + a, like);
    }
    for (std::size_t o = 0; o < others.size(); ++o) {
      const Tensor& part = jobs[0].state[others[o]];
      state[others[o]] = at(more[o], 0, part);
      to[others[o]] = at(more_results[o], 0, part);
    }
    const Update u =
        call(at(mine, 0, like), redco::scale(at(mine, 1, like), scale), state, jobs[own.begin].about);
    const auto put = [](const Tensor& value, const Tensor& into) {
      copy_into(redistribute(value, into.layout()), into);
    };
    put(u.param, at(results, 0, like));
    for (std::size_t s = 0; s < n_state; ++s) put(u.state[s], to[s]);
  }
  from_replicas(results, out);
  for (std::size_t o = 0; o < others.size(); ++o) from_replicas(more_results[o], one(others[o]));
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
        .state = of_member_[k],
        .about = {.spec = spec,
                  .updates = updates()[i],
                  .learning_rate = learning_rate,
                  .weight_decay = decay_of(spec, settings_.weight_decay, settings_.decay_norms_and_biases)}};
    updated.push_back({params.values()[i], grads[i].layout()});
    const Layout& layout = job.param.layout();
    bool divided = false;
    for (Axis a : mesh.axes()) divided = divided || (divides_state(mesh, a) && layout[a].is_sharded());
    if (settings_.rule->elementwise()) {
      in_ranges(job, scale);
    } else if (!divided || settings_.rule->on_shards()) {
      apply(job.param, job.gradient, job.state, scale, job.about);
    } else {
      auto deal = std::ranges::find_if(deals, [&](const std::vector<Job>& d) {
        return d[0].param.shape() == job.param.shape() && d[0].param.layout() == layout &&
               std::ranges::equal(d[0].state, job.state, {}, &Tensor::shape, &Tensor::shape);
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
