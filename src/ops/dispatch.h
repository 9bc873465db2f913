// How every op runs: check shapes, choose a strategy per mesh axis, redistribute the inputs, create outputs
// with the chosen placements, add a line to the ledger and a node to the tape.
//
// A strategy lists placements of the inputs on which the local kernel is correct without communication, and
// the placements of its outputs. Only these lists can make distributed results wrong. A strategy holds for
// one axis.
//
// The choice on mp: the cost is the number of bytes moved to redistribute the inputs, plus an all-reduce for
// each Partial output. A Sharded output costs nothing. Stationary inputs (a linear's weight) are never moved,
// only sliced, which is free. Ties are decided by fewer FLOPs, then by order. On dp the placements of the
// inputs decide, and outputs have no cost. The choice depends only on global shapes and placements, so it is
// equal on all ranks.
#pragma once

#include <vector>

#include "base/error.h"
#include "ops/redistribute.h"
#include "tensor/node.h"
#include "tensor/tensor.h"

namespace redco {

class OpCall {
 public:
  // Undefined tensors among `inputs` are optional inputs that are absent.
  OpCall(const char* name, std::vector<Tensor> inputs);

  // --- Strategies: the generator is called for each axis ---
  class Strategies {
   public:
    Strategies(const std::vector<Tensor>& inputs, Axis axis) : inputs_(inputs), axis_(axis) {}
    Axis axis() const { return axis_; }
    // Placement of input i on this axis before redistribution (Replicated if absent).
    Placement in(int i) const;
    int ranks() const;
    // whole_work: each rank does all FLOPs, not 1 / ranks of them.
    void add(std::vector<Placement> in, std::vector<Placement> out, bool whole_work = false);
    void all_replicated(int outputs = 1);

   private:
    friend class OpCall;
    struct Entry {
      std::vector<Placement> in, out;
      bool whole_work;
    };
    const std::vector<Tensor>& inputs_;
    Axis axis_;
    std::vector<Entry> entries_;
  };
  using Generator = std::function<void(Strategies&)>;
  // output_numel: number of global elements of each output, which determines the cost of reducing a Partial
  // one. `stationary`: inputs that may only be sliced (or reduced if Partial).
  void choose(const std::vector<i64>& output_numel, const Generator& generate,
              const std::vector<int>& stationary = {});

  // --- Running ---

  // Input i with the placements of the chosen strategy.
  const Tensor& in(int i) const { return inputs_[i]; }
  // Output i with the chosen placements. Call once per output, in order.
  Tensor output(Shape shape, DType dtype, int hidden = 0);
  // An output that shares the bytes of `input`.
  Tensor view_of(const Tensor& input, Shape shape, int hidden = 0);
  // False on a meta context: no kernel runs.
  bool runs() const { return !meta_; }
  // Scratch memory for `elements`, allocated from the arena, so that a plan counts it. It is released with
  // the tensor.
  static Tensor workspace(i64 elements, DType dtype) { return {{elements}, dtype, {}}; }
  void flops(double local_flops) { flops_ += local_flops; }

  // Adds the op to the tape if one of its inputs is on it. `saved`: inputs (as given, with their nodes) and
  // outputs.
  void record(std::vector<Tensor> saved, VjpFn vjp);
  // The same for ops without a derivative (comparisons, argmax).
  void no_gradient();

 private:
  void account();
  const char* name_;
  std::vector<Tensor> given_, inputs_, outputs_;
  std::vector<Layout> out_layouts_;
  bool meta_, done_ = false;
  double flops_ = 0;
};

// The vjp of a fused op whose gradient is differentiated again: runs the composed form `f` on the original
// inputs and differentiates it. Inputs of integer type are passed through.
std::vector<Tensor> composed_vjp(const Vjp& v, const std::vector<Tensor>& inputs,
                                 const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f);
// Number of calls of composed_vjp() in this process; for tests.
i64 composed_vjp_count();

struct BackwardOptions {
  bool create_graph = false;     // the result is on the tape and can be differentiated again
  bool stop_at_inputs = false;   // do not follow paths through an input
  bool retain = false;           // keep the saved tensors of nodes for another backward
  FactorsOf* factors = nullptr;  // linear weights among the inputs whose gradients are wanted as factors
};
// The engine of grad(): propagates cotangents of `outputs` back to `inputs`. Result i is undefined if no path
// leads to inputs[i]. Its placement is that of the input if Sharded, otherwise any (a Partial is not
// reduced).
std::vector<Tensor> backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                             const std::vector<Tensor>& inputs, const BackwardOptions& options = {});

// The same value as a separate op, so that paths can be cut at it.
Tensor alias(const Tensor& x);

}  // namespace redco
