// Node: one recorded op. It stores only the tensors that its vjp reads. Own outputs are stored without the
// node, which would create a cycle. It frees the tensors after the vjp. A worklist releases nodes, so that
// long chains do not overflow the stack.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace redco {

struct Edge {
  std::shared_ptr<Node> node;  // null: the input is not on the tape
  int output = 0;
};

// A linear weight's gradient as factors: the sum over rows of g^T x, with g [..., O], x [..., I].
struct RowFactors {
  Tensor g, x;
};
// The leaves of the tape whose gradients are wanted as factors, one pair for every use.
using FactorsOf = std::unordered_map<const Node*, std::vector<RowFactors>>;

// Takes the gradients of leaves of the tape as they arise (optim/gradients.h).
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  // Memory that an op may write a leaf's gradient to, with this placement; undefined: the op makes its own.
  virtual Tensor room(const Node* leaf, const Shape& shape, DType dtype, const Layout& layout) = 0;
  // Adds a part of a leaf's gradient; false if it can't yet, because placements differ.
  virtual bool add(const Node* leaf, const Tensor& part) = 0;
  // No more parts arise in this pass. `rest`: the parts that were not added.
  virtual void complete(const Node* leaf, SmallVector<Tensor, 2>& rest) = 0;
};
// Where an op may write the gradient of a leaf.
struct GradientRoom {
  GradientSink* sink = nullptr;
  const Node* leaf = nullptr;
};

// The arguments of a vjp.
class Vjp {
 public:
  Vjp(std::shared_ptr<Node> node, Tensors cotangents, bool create_graph, SmallVector<bool, 8> needs,
      FactorsOf* factors = nullptr, GradientSink* sink = nullptr)
      : node_(std::move(node)),
        g_(std::move(cotangents)),
        create_graph_(create_graph),
        needs_(std::move(needs)),
        factors_(factors),
        sink_(sink) {}
  // Saved tensor i; outputs of the op are returned with their node.
  Tensor saved(int i) const;
  // Cotangent of output i; undefined if nothing depends on that output.
  const Tensor& g(int i = 0) const { return g_[i]; }
  const Tensors& all() const { return g_; }
  bool needs(int input) const { return needs_[input]; }
  // Whether the gradient will be differentiated; then fused backward ops must not be used.
  bool create_graph() const { return create_graph_; }
  // Where to store this input's gradient as factors; null: return it as a tensor.
  std::vector<RowFactors>* factors(int input) const;
  // Where to write this input's gradient, if it is a whole part of a leaf's (OpCall::output).
  GradientRoom room(int input) const;
  // For a vjp that runs a nested backward (null: none).
  FactorsOf* all_factors() const { return factors_; }
  GradientSink* sink() const { return sink_; }

 private:
  std::shared_ptr<Node> node_;
  Tensors g_;
  bool create_graph_;
  SmallVector<bool, 8> needs_;
  FactorsOf* factors_;
  GradientSink* sink_;
};
// Returns one tensor per input; undefined if there is no gradient or it is not needed. Captures only
// attributes, never tensors (Node::saved holds these).
using VjpFn = std::function<Tensors(const Vjp&)>;

struct Node {
  const char* name = "";
  u64 sequence = 0;
  const char* scope = "";   // ledger scope in which it was recorded
  SharedText random_scope;  // for repeated draws
  SmallVector<Edge, 8> inputs;
  struct Saved {
    Tensor tensor;
    int own_output = -1;  // >= 0: output of this op with this index, stored without its node
  };
  SmallVector<Saved, 8> saved;
  struct Output {
    Shape shape;
    Layout layout;  // placement of the output when it was created; its cotangent is redistributed to it once
    DType dtype;
    int hidden;
  };
  SmallVector<Output, 1> outputs;
  VjpFn vjp;  // empty for a leaf
  bool freed = false;
  // The backward pass that visits the node, and its place there (ops/engine.cpp).
  u64 pass = 0;
  u32 place = 0;

  Node() {}  // NOLINT: a defaulted constructor would fill all bytes with zeros first
  ~Node();
};

}  // namespace redco
