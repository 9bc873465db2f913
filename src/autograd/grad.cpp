#include "autograd/grad.h"

#include <set>

#include "base/pooled.h"
#include "base/user_code.h"
#include "ops/create.h"
#include "ops/dispatch.h"

namespace redco {

namespace {

Tensor zero_gradient(const Tensor& input) {
  return zeros(input.shape(), input.dtype(), input.layout().reduced()).with_hidden(input.hidden());
}

}  // namespace

std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                        const std::vector<Tensor>& inputs, const GradOptions& o) {
  auto out = backward(outputs, cotangents, inputs,
                      {.create_graph = o.create_graph, .retain = o.retain, .sink = o.sink});
  for (size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zero_gradient(inputs[i]);
  return out;
}

FactoredGradients factored_grad(const Tensor& loss, const std::vector<Tensor>& inputs,
                                const std::vector<bool>& by_factors, const GradOptions& o) {
  REDCO_CHECK(loss.numel() == 1 && inputs.size() == by_factors.size(),
              "[grad] the loss must have one element, and each input one flag: {}, {} inputs, {} flags",
              describe(loss), inputs.size(), by_factors.size());
  FactorsOf wanted;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (by_factors[i]) {
      REDCO_CHECK(inputs[i].node(), "[grad] input {} is not on the tape", i);
      wanted[inputs[i].node().get()];
    }
  FactoredGradients out;
  out.whole = backward({loss}, {ones_like(loss)}, inputs,
                       {.create_graph = o.create_graph, .retain = o.retain, .factors = &wanted});
  for (size_t i = 0; i < inputs.size(); ++i) {
    out.factors.emplace_back();
    if (by_factors[i]) {
      out.factors[i] = std::move(wanted[inputs[i].node().get()]);
    } else if (!out.whole[i].defined()) {
      out.whole[i] = zero_gradient(inputs[i]);
    }
  }
  return out;
}

std::vector<Tensor> grad(const Tensor& loss, const std::vector<Tensor>& inputs, const GradOptions& o) {
  REDCO_CHECK(loss.numel() == 1, "[grad] the loss must have one element, not {}", describe(loss));
  // The cotangent of the global loss is 1.
  return vjp({loss}, {ones_like(loss)}, inputs, o);
}

Tensor recompute(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  return recompute([f](const Tensor& y) { return Tensors{f(y)}; }, x)[0];
}

Tensors recompute(const std::function<Tensors(const Tensor&)>& f, const Tensor& x) {
  Context& c = Context::current();
  if (!c.recording) return f(x);

  auto log = std::make_shared<CollectiveLog>();
  Captures used;
  const RandomState random = c.random;
  // A Partial x is reduced now; otherwise f would reduce it in place, and the second run would not see the
  // same x.
  without_partials(x);  // in place
  Tensors all;
  {
    NoGrad off;
    log->outer = c.collective_log;
    Restore<Captures*> captures(c.captures, &used);
    Restore<CollectiveLog*> logging(c.collective_log, log.get());
    all = f(x);
  }
  log->outer = nullptr;
  if (used.partial) log = nullptr;
  // A result on the tape is x or a captured tensor, which f did not compute.
  SmallVector<size_t, 8> computed;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].node()) continue;
    all[i] = all[i].detached();
    computed.push_back(i);
  }
  // The distinct tensors of the tape that f read: x and captured parameters.
  std::vector<Tensor> inputs;
  std::set<std::pair<const Node*, int>> known;
  for (const Tensor& t : used.tensors)
    if (known.insert({t.node().get(), t.node_output()}).second) inputs.push_back(t);
  if (computed.empty() || inputs.empty()) return all;

  auto node = make_pooled<Node>();
  node->name = "recompute";
  node->sequence = c.next_sequence();
  node->scope = c.scope;
  node->random_scope = c.random_scope;
  for (const size_t i : computed)
    node->outputs.push_back({all[i].shape(), all[i].layout(), all[i].dtype(), all[i].hidden()});
  for (const Tensor& t : inputs) {
    node->inputs.push_back({t.node(), t.node_output()});
    node->saved.push_back({t, -1});
  }
  node->saved.push_back({x, -1});
  node->vjp = [f, log, random, computed, results = all.size(), n = inputs.size(),
               code = running_user_code()](const Vjp& v) {
    Context& c = Context::current();
    std::vector<Tensor> ins;
    std::vector<size_t> index;
    for (size_t i = 0; i < n; ++i)
      if (v.needs(static_cast<int>(i))) {
        ins.push_back(v.saved(static_cast<int>(i)));
        index.push_back(i);
      }
    const Tensor x = v.saved(static_cast<int>(n));
    Tensors again;
    {
      Restore<bool> recording(c.recording, true);
      Restore<RandomState> draws(c.random, random);
      Restore<KeyUses*> uses(c.key_uses, nullptr);
      CollectiveLog replay;
      if (log) replay = {log->results, true, nullptr};
      Restore<CollectiveLog*> logging(c.collective_log, log ? &replay : nullptr);
      Restore<const char*> phase(c.phase, "recompute");
      again = in_user_code(code, [&] {
        Tensors y = f(x);
        REDCO_CHECK(replay.results.empty(),
                    "a repeated computation runs {} collectives fewer than the first run",
                    replay.results.size());
        REDCO_CHECK(y.size() == results, "a repeated computation returns {} tensors, and the first run {}",
                    y.size(), results);
        return y;
      });
    }
    // Results without gradient (counts) are not on the tape of the second run.
    std::vector<Tensor> outputs, cotangents;
    for (size_t k = 0; k < computed.size(); ++k) {
      if (!v.g(static_cast<int>(k)).defined() || !again[computed[k]].node()) continue;
      outputs.push_back(again[computed[k]]);
      cotangents.push_back(v.g(static_cast<int>(k)));
    }
    Tensors result(n);
    if (outputs.empty()) return result;
    again.clear();
    const auto found = backward(outputs, cotangents, ins,
                                {.create_graph = v.create_graph(),
                                 .stop_at_inputs = true,
                                 .factors = v.all_factors(),
                                 .sink = v.sink(),
                                 .nested = true});
    for (size_t k = 0; k < index.size(); ++k) result[index[k]] = found[k];
    return result;
  };
  for (size_t k = 0; k < computed.size(); ++k) all[computed[k]].set_node(node, static_cast<int>(k));
  return all;
}

std::vector<Tensor> vmap(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                         const std::vector<Tensor>& xs) {
  REDCO_CHECK(!xs.empty(), "[vmap] has no inputs to map");
  const int hidden = xs[0].hidden() + 1;
  std::vector<Tensor> in;
  for (const Tensor& x : xs) {
    REDCO_CHECK(
        x.hidden() + 1 == hidden && x.visible() > 0 && x.shape()[hidden - 1] == xs[0].shape()[hidden - 1],
        "[vmap] the sizes of dim 0 must be equal: {} and {}", describe(x), describe(xs[0]));
    in.push_back(x.with_hidden(hidden));
  }
  std::vector<Tensor> out = f(in);
  for (Tensor& y : out) {
    REDCO_CHECK(y.hidden() == hidden, "[vmap] the result {} does not depend on the mapped inputs",
                describe(y));
    y = y.with_hidden(y.hidden() - 1);
  }
  return out;
}

}  // namespace redco
