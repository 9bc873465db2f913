// Node: one recorded op. It keeps only what its vjp reads, as a plain list; its own outputs without itself
// (else a cycle); it frees them after the vjp; it is released by a worklist, so that long chains don't
// overflow the stack.
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

// A linear weight's gradient before it is multiplied out: the sum over rows of g^T x, g [..., O], x [..., I].
struct RowFactors {
  Tensor g, x;
};
// Who wants their gradient so: leaves of the tape, each with a pair for every use.
using FactorsOf = std::unordered_map<const Node*, std::vector<RowFactors>>;

// What a vjp is given.
class Vjp {
 public:
  Vjp(std::shared_ptr<Node> node, std::vector<Tensor> cotangents, bool create_graph, std::vector<bool> needs,
      FactorsOf* factors = nullptr)
      : node_(std::move(node)),
        g_(std::move(cotangents)),
        create_graph_(create_graph),
        needs_(std::move(needs)),
        factors_(factors) {}
  // The i-th saved tensor; outputs of the op come back with their node.
  Tensor saved(int i) const;
  // Cotangent of output i; undefined if nothing depends on that output.
  const Tensor& g(int i = 0) const { return g_[i]; }
  const std::vector<Tensor>& all() const { return g_; }
  bool needs(int input) const { return needs_[input]; }
  // The gradient will itself be differentiated: fused backward ops must not be used.
  bool create_graph() const { return create_graph_; }
  // Where this input's gradient goes as a pair of factors, in place of a tensor; null: it is a tensor.
  std::vector<RowFactors>* factors(int input) const;
  // All of them (null: none), for a vjp that runs a backward of its own.
  FactorsOf* all_factors() const { return factors_; }

 private:
  std::shared_ptr<Node> node_;
  std::vector<Tensor> g_;
  bool create_graph_;
  std::vector<bool> needs_;
  FactorsOf* factors_;
};
// Returns one tensor per input; undefined where there is no gradient or it isn't needed. Captures attributes
// only, never tensors (those are in Node::saved).
using VjpFn = std::function<std::vector<Tensor>(const Vjp&)>;

struct Node {
  const char* name = "";
  u64 sequence = 0;
  std::string scope;         // ledger scope in which it was recorded
  std::string random_scope;  // for repeated draws
  std::vector<Edge> inputs;
  struct Saved {
    Tensor tensor;
    int own_output = -1;  // >= 0: this op's output, kept without its node
  };
  std::vector<Saved> saved;
  struct Output {
    Shape shape;
    Layout layout;  // placement it was born with: cotangents are aligned to it once
    DType dtype;
    int hidden;
  };
  std::vector<Output> outputs;
  VjpFn vjp;  // none: a leaf
  bool freed = false;

  Node() = default;
  ~Node();
};

}  // namespace redco
