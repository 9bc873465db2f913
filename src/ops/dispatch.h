// How every op runs: shape check, choice of a strategy per mesh axis, redistribution of the inputs, outputs
// with the chosen placements, a line in the ledger, a node on the tape.
//
// A strategy says: on these placements of the inputs the local kernel is right without talking, and these
// placements come out. That list is the only place where distribution can be wrong. Strategies hold per axis.
//
// The choice. On mp: cost = bytes moved to reach the inputs, plus an all-reduce for each Partial output; a
// Sharded output is free; stationary inputs (a linear's weight) are never moved except for a free slice; ties
// go to fewer FLOPs, then to the first listed. On dp nothing is chosen by cost of outputs: whatever runs
// where the data is. Only global shapes and placements enter, so all ranks choose alike.
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

  // --- strategies: called for each axis with the current placements of the inputs
  // ---------------------------
  class Strategies {
   public:
    Strategies(const std::vector<Tensor>& inputs, Axis axis) : inputs_(inputs), axis_(axis) {}
    Axis axis() const { return axis_; }
    // Placement that input i arrives with on this axis (Replicated if absent).
    Placement in(int i) const;
    int ranks() const;
    // work: share of the FLOPs each rank does (1: all of them; else 1 / ranks).
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
  // output_numel: global elements of each output (a Partial one will cost its all-reduce). `stationary`:
  // inputs that may not be moved, only sliced (and reduced if Partial).
  void choose(const std::vector<i64>& output_numel, const Generator& generate,
              const std::vector<int>& stationary = {});

  // --- running ---

  // The inputs as the strategy wants them.
  const Tensor& in(int i) const { return inputs_[i]; }
  // Output i with the chosen placements (each output is asked for once, in order).
  Tensor output(Shape shape, DType dtype, int hidden = 0);
  // An output that shares the input's bytes.
  Tensor view_of(const Tensor& input, Shape shape, int hidden = 0);
  // False on a meta context: no kernel runs.
  bool runs() const { return !meta_; }
  // Room for `elements`, for as long as the tensor lives: what a kernel needs beside inputs and outputs comes
  // from the arena, so that a plan counts it.
  static Tensor workspace(i64 elements, DType dtype) { return {{elements}, dtype, {}}; }
  void flops(double local_flops) { flops_ += local_flops; }

  // Puts the op on the tape if an input is on it. `saved`: inputs (as given, with their nodes) and outputs.
  void record(std::vector<Tensor> saved, VjpFn vjp);
  // Same for ops without a derivative (comparisons, argmax).
  void no_gradient();

 private:
  void account();
  const char* name_;
  std::vector<Tensor> given_, inputs_, outputs_;
  std::vector<Layout> out_layouts_;
  bool meta_, done_ = false;
  double flops_ = 0;
};

// The vjp of a fused op whose gradient is itself differentiated: runs the composed form `f` on the original
// inputs and differentiates that. Inputs that are not floating are passed through.
std::vector<Tensor> composed_vjp(const Vjp& v, const std::vector<Tensor>& inputs,
                                 const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f);
// How often that happened in this process, for tests.
i64 composed_vjp_count();

struct BackwardOptions {
  bool create_graph = false;     // the result is on the tape, can be differentiated again
  bool stop_at_inputs = false;   // paths through an input are not followed further
  bool retain = false;           // keep what nodes saved: there will be another backward through them
  FactorsOf* factors = nullptr;  // linear weights among the inputs whose gradients are wanted as factors
};
// The engine behind grad(): cotangents of `outputs` carried back to `inputs`. Result i is undefined where no
// path leads to inputs[i]; its placement is the input's where that is Sharded, else any (a Partial is not
// reduced).
std::vector<Tensor> backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                             const std::vector<Tensor>& inputs, const BackwardOptions& options = {});

// The same value as an op of its own, so that a path can be cut there.
Tensor alias(const Tensor& x);

}  // namespace redco
