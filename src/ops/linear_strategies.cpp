#include "ops/linear_strategies.h"

#include "ops/placement_names.h"

namespace redco {

namespace {

Sums sums_of(const OpCall::Strategies& s) { return static_cast<Sums>(s.attribute(0)); }
int weights_of(const OpCall::Strategies& s) { return static_cast<int>(s.attribute(1)); }

using Placements = OpCall::Strategies::Placements;
Placements repeated(const Placement& p, int n) { return Placements(static_cast<std::size_t>(n), p); }
// The placements of inputs: one, then those of each further list.
Placements joined(const Placement& first, std::initializer_list<Placements> lists) {
  Placements all = {first};
  for (const Placements& l : lists)
    for (const Placement& p : l) all.push_back(p);
  return all;
}

}  // namespace

void linear_strategies(OpCall::Strategies& s) {
  const ProductInputs at{weights_of(s)};
  const int n = at.n, last = s.input(at.x).rank() - 1;
  const Placement x = s.in(at.x), w = s.in(at.w(0));
  const Placements replicated = repeated(R_, n), partial = repeated(P_, n);
  if (sums_of(s) == Sums::partial && x.is_partial() && w.is_replicated())
    return s.add(joined(P_, {replicated, partial}), partial);
  if (w.is_replicated()) {
    s.all_replicated(n);
    if (x.is_sharded() && x.dim < last) s.add(joined(x, {replicated, replicated}), repeated(x, n));
    if (x.is_partial()) s.add(joined(P_, {replicated, partial}), partial);
    if (x.is_sharded(last)) {
      const Placement in = Placement::sharded(1, x.unit);
      s.add(joined(x, {repeated(in, n), partial}), partial);
    }
  } else if (w.is_sharded(0)) {
    Placements weights, outputs;
    for (int i = 0; i < n; ++i) {
      const Placement p = s.in(at.w(i));
      weights.push_back(p);
      outputs.push_back(Placement::sharded(last, p.unit));
    }
    s.add(joined(R_, {weights, weights}), outputs);
  } else if (w.is_sharded(1)) {
    s.add(joined(Placement::sharded(last, w.unit), {repeated(w, n), partial}), partial);
  } else if (w.is_partial()) {
    s.add(joined(R_, {partial, partial}), partial);
    s.all_replicated(n);
  }
}

void input_gradient_strategies(OpCall::Strategies& s) {
  const InputGradientInputs at{weights_of(s)};
  const int n = at.n, last = s.input(at.g(0)).rank() - 1;
  const Placement g = s.in(at.g(0)), w = s.in(at.w(0));
  const auto inputs = [&](const Placements& of_g, const Placements& of_w) {
    Placements all = of_g;
    for (const Placement& p : of_w) all.push_back(p);
    return all;
  };
  const Placements replicated = repeated(R_, n), partial = repeated(P_, n);
  const bool some_partial = [&] {
    for (int i = 0; i < n; ++i)
      if (s.in(at.g(i)).is_partial()) return true;
    return false;
  }();
  if (sums_of(s) == Sums::partial && some_partial && w.is_replicated())
    return s.add(inputs(partial, replicated), {P_});
  if (w.is_replicated()) {
    s.all_replicated();
    if (g.is_sharded() && g.dim < last) s.add(inputs(repeated(g, n), replicated), {g});
    if (some_partial) s.add(inputs(partial, replicated), {P_});
    if (g.is_sharded(last)) {
      Placements of_g, of_w;
      for (int i = 0; i < n; ++i) {
        const Placement p = s.in(at.g(i)).is_sharded(last) ? s.in(at.g(i)) : g;
        of_g.push_back(p);
        of_w.push_back(Placement::sharded(0, p.unit));
      }
      s.add(inputs(of_g, of_w), {P_});
    }
  } else if (w.is_sharded(1)) {
    s.add(inputs(replicated, repeated(w, n)), {Placement::sharded(last, w.unit)});
  } else if (w.is_sharded(0)) {
    Placements of_g, of_w;
    for (int i = 0; i < n; ++i) {
      of_g.push_back(Placement::sharded(last, s.in(at.w(i)).unit));
      of_w.push_back(s.in(at.w(i)));
    }
    s.add(inputs(of_g, of_w), {P_});
  } else if (w.is_partial()) {
    s.add(inputs(replicated, partial), {P_});
    s.all_replicated();
  }
}

void weight_gradient_strategies(OpCall::Strategies& s) {
  const WeightGradientInputs at;
  const int n = weights_of(s), last = s.input(at.x).rank() - 1;
  const Placement x = s.in(at.x), g = s.in(at.g(0));
  const Placements replicated = repeated(R_, n), partial = repeated(P_, n);
  bool g_partial = false;
  for (int i = 0; i < n; ++i) g_partial = g_partial || s.in(at.g(i)).is_partial();
  if (sums_of(s) == Sums::partial && x.is_partial() != g_partial && !x.is_sharded() && !g.is_sharded())
    return s.add(joined(x.is_partial() ? P_ : R_, {g_partial ? partial : replicated}), partial);
  s.all_replicated(n);
  if (g.is_sharded(last)) {
    Placements of_g, out;
    for (int i = 0; i < n; ++i) {
      const Placement p = s.in(at.g(i)).is_sharded(last) ? s.in(at.g(i)) : g;
      of_g.push_back(p);
      out.push_back(Placement::sharded(0, p.unit));
    }
    s.add(joined(R_, {of_g}), out);
  }
  if (x.is_sharded(last)) s.add(joined(x, {replicated}), repeated(Placement::sharded(1, x.unit), n));
  for (const Placement& p : {g, x})
    if (p.is_sharded() && p.dim < last) s.add(joined(p, {repeated(p, n)}), partial);
  if (g_partial) s.add(joined(R_, {partial}), partial);
  if (x.is_partial()) s.add(joined(P_, {replicated}), partial);
}

}  // namespace redco
