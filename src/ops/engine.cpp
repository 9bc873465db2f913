// The engine of the backward pass.
#include <algorithm>

#include "base/error.h"
#include "ops/dispatch.h"
#include "ops/elementwise.h"

namespace redco {

namespace {

// Restores the context's names, also if a vjp throws.
class Names {
 public:
  explicit Names(Context& c)
      : phase_(c.phase, "backward"), scope_(c.scope, ""), random_(c.random_scope, SharedText()) {}

 private:
  Restore<const char*> phase_, scope_;
  Restore<SharedText> random_;
};

// A node, and its marks before this pass: a vjp may run a nested pass, which may visit the same nodes.
struct Mark {
  std::shared_ptr<Node> node;
  u64 pass_before = 0;
  u32 place_before = 0;
};

// A node that a backward pass visits.
struct Visit : Mark {
  bool wanted = false;                             // it is one of the inputs
  bool needed = false;                             // a path leads from it to an input
  bool to_sink = false;                            // its gradient goes to the sink
  int pending = 0;                                 // then: uses of it that may still give a part of it
  SmallVector<SmallVector<Tensor, 2>, 3> parts{};  // contributions to the cotangent of each output
  Tensors found{};                                 // the cotangents, if wanted
};

// All nodes below the outputs, in the order of recording, which is equal on every rank. Each node knows its
// place in this order.
class Visits {
 public:
  Visits(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
         const BackwardOptions& options)
      : pass_(Context::current().next_pass()) {
    std::vector<const Node*> wanted;
    for (const Tensor& t : inputs)
      if (t.node()) wanted.push_back(t.node().get());
    std::sort(wanted.begin(), wanted.end());
    std::vector<Mark> marks;
    marks.reserve(256);
    const auto visit = [&](const std::shared_ptr<Node>& node) {
      if (!node || node->pass == pass_) return;
      marks.push_back({node, node->pass, node->place});
      node->pass = pass_;
    };
    for (const Tensor& t : outputs) visit(t.node());
    for (size_t i = 0; i < marks.size(); ++i) {
      const std::shared_ptr<Node> node = marks[i].node;
      if (options.stop_at_inputs && std::binary_search(wanted.begin(), wanted.end(), node.get())) continue;
      for (const Edge& e : node->inputs) visit(e.node);
    }
    std::sort(marks.begin(), marks.end(),
              [](const Mark& a, const Mark& b) { return a.node->sequence < b.node->sequence; });
    all_.reserve(marks.size());
    for (Mark& m : marks) {
      m.node->place = static_cast<u32>(all_.size());
      all_.push_back({std::move(m)});
    }
    for (const Tensor& t : inputs)
      if (Visit* const v = of(t.node().get())) {
        v->wanted = true;
        v->to_sink = options.fills_sink() && v->node->inputs.empty();
      }
    for (Visit& v : all_) {
      v.parts.resize(v.node->outputs.size());
      v.needed = v.wanted;
      if (v.wanted && options.stop_at_inputs) continue;
      for (const Edge& e : v.node->inputs)
        if (e.node) v.needed = v.needed || of(e.node.get())->needed;
      if (v.needed && options.fills_sink())
        for (const Edge& e : v.node->inputs)
          if (e.node) ++of(e.node.get())->pending;
    }
  }
  ~Visits() {
    for (const Visit& v : all_)
      if (v.node) restore(v);
  }
  Visits(const Visits&) = delete;
  Visits& operator=(const Visits&) = delete;

  // The visit of a node; null if the pass does not visit it.
  Visit* of(const Node* node) { return node && node->pass == pass_ ? &all_[node->place] : nullptr; }
  std::vector<Visit>& all() { return all_; }
  // Lets go of the node, so that the tape is freed while the backward proceeds.
  void leave(Visit& v) {
    restore(v);
    v.node.reset();
  }

 private:
  void restore(const Visit& v) {
    v.node->pass = v.pass_before;
    v.node->place = v.place_before;
  }
  u64 pass_;
  std::vector<Visit> all_;
};

Tensor as_born(const Tensor& part, const Node::Output& born) {
  REDCO_CHECK(part.shape() == born.shape, "cotangent {} does not match the output {}", describe(part),
              to_string(born.shape));
  return part.with_hidden(born.hidden);
}

// Adds a part to the cotangent of an output. Parts of one placement become one sum immediately, so that an
// output with many uses holds one tensor, not one for each use. The order of the uses is that of the tape,
// equal on every rank. bf16 parts are kept, because sum_of_parts() rounds their sum once. With create_graph,
// sums are on the tape, which would keep every part anyway.
void add_part(SmallVector<Tensor, 2>& parts, Tensor part, const Node& node, const Node::Output& born) {
  if (!Context::current().recording)
    for (Tensor& p : parts)
      if (p.dtype() == DType::f32 && part.dtype() == DType::f32 && same_bytes_in(p.layout(), part.layout())) {
        const Restore<const char*> scope(Context::current().scope, node.scope);
        p = add({as_born(p, born), as_born(part, born)});
        return;
      }
  parts.push_back(std::move(part));
}

}  // namespace

Tensor sum_of_parts(SmallVector<Tensor, 2>& parts, const Node::Output& born) {
  if (parts.empty()) return {};
  for (Tensor& p : parts) p = as_born(p, born);
  const Mesh& mesh = Context::current().mesh();
  Tensor sum;
  if (parts.size() == 1) {
    sum = std::move(parts[0]);
  } else {
    // Partial terms first, so that they are reduced at most once.
    Tensors partial, rest;
    for (const Tensor& p : parts) (is_partial_on(AxisRole::model, p) ? partial : rest).push_back(p);
    if (partial.size() > 1) {
      rest.insert(rest.begin(), add(partial));
    } else if (!partial.empty()) {
      rest.insert(rest.begin(), partial[0]);
    }
    sum = rest.size() == 1 ? rest[0] : add(rest);
  }
  parts.clear();
  for (Axis a : mesh.axes())
    if (born.layout[a].is_sharded()) sum = redistribute(sum, a, born.layout[a]);
  return sum;
}

std::vector<Tensor> backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                             const std::vector<Tensor>& inputs, const BackwardOptions& options) {
  REDCO_CHECK(outputs.size() == cotangents.size(), "{} outputs, {} cotangents", outputs.size(),
              cotangents.size());
  Context& c = Context::current();
  Visits visits(outputs, inputs, options);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (Visit* const v = visits.of(outputs[i].node().get()))
      v->parts[outputs[i].node_output()].push_back(cotangents[i]);

  Restore<bool> recording(c.recording, options.create_graph);
  const Names names(c);
  // Calls the node's vjp, and hands its gradients on.
  const auto propagate = [&](Visit& visit) {
    Node& node = *visit.node;
    bool reached = false;
    for (const auto& parts : visit.parts) reached |= !parts.empty();
    if (!reached) return;
    c.scope = node.scope;
    c.random_scope = node.random_scope;
    Tensors g(node.outputs.size());
    for (size_t o = 0; o < g.size(); ++o) g[o] = sum_of_parts(visit.parts[o], node.outputs[o]);
    if (visit.wanted) visit.found = g;
    if ((!node.vjp && !node.freed) || (visit.wanted && options.stop_at_inputs)) return;
    SmallVector<bool, 8> needs(node.inputs.size());
    bool any = false;
    for (size_t i = 0; i < needs.size(); ++i) {
      const Visit* const from = visits.of(node.inputs[i].node.get());
      needs[i] = from && from->needed;
      any = any || needs[i];
    }
    if (!any) return;
    if (node.freed)
      throw UsageError(
          "[{}] is differentiated twice, and the first grad() freed what the second one needs. Set retain=True "
          "in the first one, or create_graph=True if the loss depends on its result",
          node.name);
    Tensors dx;
    {
      const Vjp v(visit.node, std::move(g), options.create_graph, needs, options.factors, options.sink);
      dx = node.vjp(v);
    }
    REDCO_CHECK(dx.size() == needs.size(), "[{}] vjp returned {} gradients; expected {}", node.name,
                dx.size(), needs.size());
    for (size_t i = 0; i < dx.size(); ++i) {
      if (!needs[i] || !dx[i].defined()) continue;
      Visit& to = *visits.of(node.inputs[i].node.get());
      if (to.to_sink && options.sink->add(to.node.get(), dx[i])) continue;
      const int output = node.inputs[i].output;
      add_part(to.parts[output], std::move(dx[i]), *to.node, to.node->outputs[output]);
    }
    if (!options.create_graph && !options.retain) {
      node.saved.clear();
      node.vjp = nullptr;
      node.freed = true;
    }
    if (!visit.wanted) visits.leave(visit);
  };
  const auto complete = [&](Visit& leaf) {
    c.scope = leaf.node->scope;
    options.sink->complete(leaf.node.get(), leaf.parts[0]);
    leaf.to_sink = false;
  };
  for (auto visit = visits.all().rbegin(); visit != visits.all().rend(); ++visit) {
    if (!visit->needed || visit->node->inputs.empty()) {
      if (visit->needed && !visit->to_sink) propagate(*visit);
      continue;
    }
    if (!options.fills_sink()) {
      propagate(*visit);
      continue;
    }
    const std::shared_ptr<Node> node = visit->node;
    propagate(*visit);
    for (const Edge& e : node->inputs) {
      Visit* const from = visits.of(e.node.get());
      if (from && --from->pending == 0 && from->to_sink) complete(*from);
    }
  }

  if (options.fills_sink()) {
    // Leaves that are outputs themselves, and those on which nothing depends.
    SmallVector<Tensor, 2> none;
    for (const Tensor& t : inputs) {
      Visit* const v = visits.of(t.node().get());
      if (!v) options.sink->complete(t.node().get(), none);
      if (v && v->to_sink) complete(*v);
    }
    return {};
  }
  std::vector<Tensor> result;
  for (const Tensor& t : inputs) {
    const Visit* const v = visits.of(t.node().get());
    result.push_back(v && !v->found.empty() ? v->found[t.node_output()] : Tensor());
  }
  return result;
}

}  // namespace redco
