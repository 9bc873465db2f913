// The engine of the backward pass.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ops/dispatch.h"
#include "ops/elementwise.h"

namespace redco {

namespace {

// Restores the context's names, also if a vjp throws.
class Names {
 public:
  explicit Names(Context& c) : c_(c), phase_(c.phase()), scope_(c.scope()), random_scope_(c.random_scope) {}
  ~Names() {
    c_.set_phase(std::move(phase_));
    c_.set_scope(std::move(scope_));
    c_.random_scope = std::move(random_scope_);
  }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

 private:
  Context& c_;
  std::string phase_, scope_, random_scope_;
};

struct Pending {
  std::vector<std::vector<Tensor>> parts;  // contributions per output
  bool needed = false;
};

// Sums all cotangents of a node's output. If the output was created Sharded, the sum is then redistributed
// once to that placement; if it was Replicated or Partial, the placement is not changed.
Tensor collect(std::vector<Tensor>& parts, const Node::Output& born) {
  if (parts.empty()) return {};
  for (Tensor& p : parts) {
    REDCO_CHECK(p.shape() == born.shape, "cotangent {} does not match the output {}", describe(p),
                to_string(born.shape));
    p = p.with_hidden(born.hidden);
  }
  Tensor sum;
  if (parts.size() == 1) {
    sum = parts[0];
  } else {
    // Partial terms first, so that they are reduced at most once.
    std::vector<Tensor> partial, rest;
    for (const Tensor& p : parts) (p.layout()[Axis::mp].is_partial() ? partial : rest).push_back(p);
    if (partial.size() > 1) {
      rest.insert(rest.begin(), add(partial));
    } else if (!partial.empty()) {
      rest.insert(rest.begin(), partial[0]);
    }
    sum = rest.size() == 1 ? rest[0] : add(rest);
  }
  parts.clear();
  for (Axis a : kAxes)
    if (born.layout[a].is_sharded()) sum = redistribute(sum, a, born.layout[a]);
  return sum;
}

}  // namespace

std::vector<Tensor> backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                             const std::vector<Tensor>& inputs, const BackwardOptions& options) {
  REDCO_CHECK(outputs.size() == cotangents.size(), "{} outputs, {} cotangents", outputs.size(),
              cotangents.size());
  Context& c = Context::current();
  std::unordered_set<const Node*> wanted;
  for (const Tensor& t : inputs)
    if (t.node()) wanted.insert(t.node().get());

  // All nodes below the outputs. Marks are local to this call, so nested backward passes have separate ones.
  std::unordered_map<const Node*, Pending> pending;
  std::vector<std::shared_ptr<Node>> nodes, stack;
  for (const Tensor& t : outputs)
    if (t.node()) stack.push_back(t.node());
  while (!stack.empty()) {
    auto node = std::move(stack.back());
    stack.pop_back();
    if (!pending.try_emplace(node.get()).second) continue;
    nodes.push_back(node);
    if (options.stop_at_inputs && wanted.count(node.get())) continue;
    for (const Edge& e : node->inputs)
      if (e.node && !pending.count(e.node.get())) stack.push_back(e.node);
  }
  // The recording order is equal on every rank.
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a->sequence < b->sequence; });
  for (const auto& node : nodes) {
    Pending& p = pending[node.get()];
    p.parts.resize(node->outputs.size());
    p.needed = wanted.count(node.get()) > 0;
    if (p.needed && options.stop_at_inputs) continue;
    for (const Edge& e : node->inputs)
      if (e.node) p.needed |= pending[e.node.get()].needed;
  }

  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].node())
      pending[outputs[i].node().get()].parts[outputs[i].node_output()].push_back(cotangents[i]);

  Restore<bool> recording(c.recording, options.create_graph);
  std::unordered_map<const Node*, std::vector<Tensor>> found;
  const Names names(c);
  c.set_phase("backward");
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node& node = **it;
    Pending& p = pending[&node];
    if (!p.needed) continue;
    bool reached = false;
    for (const auto& parts : p.parts) reached |= !parts.empty();
    if (!reached) continue;
    c.set_scope(node.scope);
    c.random_scope = node.random_scope;
    std::vector<Tensor> g(node.outputs.size());
    for (size_t o = 0; o < g.size(); ++o) g[o] = collect(p.parts[o], node.outputs[o]);
    const bool is_input = wanted.count(&node) > 0;
    if (is_input) found[&node] = g;
    if ((!node.vjp && !node.freed) || (is_input && options.stop_at_inputs)) continue;
    std::vector<bool> needs(node.inputs.size());
    bool any = false;
    for (size_t i = 0; i < needs.size(); ++i) {
      const Edge& e = node.inputs[i];
      needs[i] = e.node && pending[e.node.get()].needed;
      any = any || needs[i];
    }
    if (!any) continue;
    REDCO_CHECK(!node.freed, "[{}] second backward through a freed graph; set retain in the first one",
                node.name);
    std::vector<Tensor> dx;
    {
      const Vjp v(*it, std::move(g), options.create_graph, needs, options.factors);
      dx = node.vjp(v);
    }
    REDCO_CHECK(dx.size() == needs.size(), "[{}] vjp returned {} gradients; expected {}", node.name,
                dx.size(), needs.size());
    for (size_t i = 0; i < dx.size(); ++i)
      if (needs[i] && dx[i].defined())
        pending[node.inputs[i].node.get()].parts[node.inputs[i].output].push_back(std::move(dx[i]));
    if (!options.create_graph && !options.retain) {
      node.saved.clear();
      node.vjp = nullptr;
      node.freed = true;
    }
    it->reset();  // frees the tape while the backward proceeds
  }

  std::vector<Tensor> result;
  for (const Tensor& t : inputs) {
    auto it = t.node() ? found.find(t.node().get()) : found.end();
    result.push_back(it == found.end() ? Tensor() : it->second[t.node_output()]);
  }
  return result;
}

}  // namespace redco
