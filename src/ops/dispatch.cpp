#include "ops/dispatch.h"

#include <atomic>

#include "base/activity.h"

namespace redco {

OpCall::OpCall(const char* name, std::vector<Tensor> inputs)
    : name_(name), given_(std::move(inputs)), inputs_(given_), meta_(Context::current().is_meta()) {
  activity::tick();
  Context& c = Context::current();
  const Tensor* first = nullptr;
  for (const Tensor& t : given_) {
    if (!t.defined() || !t.is_float()) continue;
    if (!first) first = &t;
    REDCO_CHECK(t.dtype() == first->dtype(),
                "[{}] has inputs of different types: {} and {}; cast one of them", name, describe(*first),
                describe(t));
  }
  if (c.captures)
    for (const Tensor& t : given_)
      if (t.defined() && t.node()) {
        c.captures->tensors.push_back(t);
        for (Axis a : kAxes) c.captures->partial |= t.layout()[a].is_partial();
      }
}

Placement OpCall::Strategies::in(int i) const {
  return inputs_[i].defined() ? inputs_[i].layout()[axis_] : Placement::replicated();
}
int OpCall::Strategies::ranks() const { return Context::current().mesh().size(axis_); }

void OpCall::Strategies::add(std::vector<Placement> in, std::vector<Placement> out, bool whole_work) {
  entries_.push_back({std::move(in), std::move(out), whole_work});
}
void OpCall::Strategies::all_replicated(int outputs) {
  add(std::vector<Placement>(inputs_.size()), std::vector<Placement>(outputs), true);
}

void OpCall::choose(const std::vector<i64>& output_numel, const Generator& generate,
                    const std::vector<int>& stationary) {
  const size_t outputs = output_numel.size();
  double elem = 4;
  for (const Tensor& t : inputs_)
    if (t.defined() && t.is_float()) elem = static_cast<double>(size_of(t.dtype()));
  out_layouts_.assign(outputs, Layout{});
  std::array<std::vector<Placement>, 2> targets;
  for (Axis axis : kAxes) {
    Strategies s(inputs_, axis);
    generate(s);
    REDCO_CHECK(!s.entries_.empty(), "[{}] no strategy", name_);
    const int n = s.ranks();
    const Strategies::Entry* best = nullptr;
    double best_cost = 0, best_work = 0;
    for (const auto& e : s.entries_) {
      double cost = 0;
      bool legal = true;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (!inputs_[i].defined()) continue;
        const double moved = move_cost(inputs_[i], axis, e.in[i]);
        cost += moved;
        for (int w : stationary)
          if (w == static_cast<int>(i) && moved > 0 && !s.in(i).is_partial()) legal = false;
      }
      if (!legal) continue;
      if (axis == Axis::mp && n > 1)
        for (size_t o = 0; o < outputs; ++o)
          if (e.out[o].is_partial()) cost += 2 * elem * static_cast<double>(output_numel[o]);
      const double work = e.whole_work ? 1.0 : 1.0 / n;
      if (!best || cost < best_cost || (cost == best_cost && work < best_work)) {
        best = &e;
        best_cost = cost;
        best_work = work;
      }
    }
    REDCO_CHECK(best, "[{}] no legal strategy on {} for {}", name_, name_of(axis), describe(inputs_[0]));
    targets[static_cast<int>(axis)] = best->in;
    for (size_t o = 0; o < outputs; ++o) out_layouts_[o][axis] = best->out[o];
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].defined()) inputs_[i] = redistribute(inputs_[i], axis, best->in[i]);
  }
  // Reducing an operand replaces it in place. If the same tensor is also another operand (x * x), that
  // operand must be moved back to the placement of the strategy (R -> P and R -> S are free).
  for (Axis axis : kAxes)
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].defined())
        inputs_[i] = redistribute(inputs_[i], axis, targets[static_cast<int>(axis)][i]);
}

Tensor OpCall::output(Shape shape, DType dtype, int hidden) {
  Tensor t(std::move(shape), dtype, out_layouts_.at(outputs_.size()), hidden);
  outputs_.push_back(t);
  return t;
}

Tensor OpCall::view_of(const Tensor& input, Shape shape, int hidden) {
  Tensor t = Tensor::view(input, std::move(shape), out_layouts_.at(outputs_.size()), hidden);
  outputs_.push_back(t);
  return t;
}

void OpCall::account() {
  REDCO_CHECK(!done_, "[{}] recorded twice", name_);
  done_ = true;
  i64 bytes = 0;
  for (const Tensor& o : outputs_) bytes += o.local_bytes();
  Context& c = Context::current();
  c.ledger().op(name_, c.where(), static_cast<i64>(flops_), bytes);
}

void OpCall::record(std::vector<Tensor> saved, VjpFn vjp) {
  account();
  Context& c = Context::current();
  if (!c.recording) return;
  bool on_tape = false;
  for (const Tensor& t : given_) on_tape |= t.defined() && t.node();
  if (!on_tape) return;
  auto node = std::make_shared<Node>();
  node->name = name_;
  node->sequence = c.next_sequence();
  node->scope = c.scope();
  node->random_scope = c.random_scope;
  for (const Tensor& t : given_)
    node->inputs.push_back(t.defined() ? Edge{t.node(), t.node_output()} : Edge{});
  for (const Tensor& o : outputs_) node->outputs.push_back({o.shape(), o.layout(), o.dtype(), o.hidden()});
  for (const Tensor& t : saved) {
    int own = -1;
    for (size_t o = 0; o < outputs_.size(); ++o)
      if (t.defined() && t.identity() == outputs_[o].identity()) own = static_cast<int>(o);
    node->saved.push_back({own >= 0 ? t.detached() : t, own});
  }
  node->vjp = std::move(vjp);
  for (size_t o = 0; o < outputs_.size(); ++o) outputs_[o].set_node(node, static_cast<int>(o));
}

void OpCall::no_gradient() { account(); }

Tensor alias(const Tensor& x) {
  OpCall op("alias", {x});
  op.choose({x.numel()}, [](OpCall::Strategies& s) { s.add({s.in(0)}, {s.in(0)}, s.in(0).is_replicated()); });
  Tensor y = op.view_of(op.in(0), x.shape(), x.hidden());
  op.record({}, [](const Vjp& v) { return std::vector<Tensor>{v.g()}; });
  return y;
}

namespace {
std::atomic<i64> g_composed{0};
}
i64 composed_vjp_count() { return g_composed; }

std::vector<Tensor> composed_vjp(const Vjp& v, const std::vector<Tensor>& inputs,
                                 const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f) {
  ++g_composed;
  Context& c = Context::current();
  Restore<bool> composed(c.composed_only, true);
  // Each input gets an alias, which is a separate node (the same tensor may occur twice). The backward stops
  // at the aliases, so it returns this op's own vjp, with a graph that leads to the original inputs.
  std::vector<Tensor> cut = inputs;
  for (Tensor& t : cut)
    if (t.defined() && t.node()) t = alias(t);
  const std::vector<Tensor> outputs = f(cut);
  std::vector<Tensor> outs, gs, wanted;
  std::vector<int> index;
  for (size_t i = 0; i < outputs.size() && i < v.all().size(); ++i)
    if (v.g(i).defined()) {
      outs.push_back(outputs[i]);
      gs.push_back(v.g(i));
    }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (cut[i].defined() && cut[i].node() && v.needs(i)) {
      wanted.push_back(cut[i]);
      index.push_back(static_cast<int>(i));
    }
  const std::vector<Tensor> found =
      backward(outs, gs, wanted, {.create_graph = true, .stop_at_inputs = true});
  std::vector<Tensor> result(inputs.size());
  for (size_t k = 0; k < index.size(); ++k) result[index[k]] = found[k];
  return result;
}

}  // namespace redco
