// How every op runs: check shapes, choose a strategy per mesh axis, redistribute the inputs, create outputs
// with the chosen placements, account for the op and add a node to the tape.
//
// A strategy lists placements of the inputs on which the local kernel is correct without communication, and
// the placements of its outputs. Only these lists can make distributed results wrong. A strategy holds for
// one axis.
//
// The choice on a model axis: the cost is the number of bytes moved to redistribute the inputs, plus an
// all-reduce for each Partial output. A Sharded output costs nothing. Stationary inputs (a linear's weight)
// are never moved, only sliced, which is free. Ties are decided by fewer FLOPs, then by order. On a data axis
// the placements of the inputs decide, and outputs have no cost. The choice depends only on global shapes and
// placements, so it is equal on all ranks. It is made once for each call site, shapes and placements.
#pragma once

#include <initializer_list>
#include <vector>

#include "base/error.h"
#include "ops/redistribute.h"
#include "tensor/node.h"
#include "tensor/tensor.h"

namespace redco {

// What an op's choice may depend on besides its inputs.
struct OpChoice {
  std::initializer_list<i64> attributes{};
  // A placement per axis that the result should get, or that it was derived from.
  Layout wish{};
  // Inputs that may only be sliced (or reduced if Partial).
  SmallVector<int, 4> stationary{};
};

// The types that an op accepts besides one of f32 and f64.
struct Accepts {
  Accepts() = default;
  // These inputs may have a storage type.
  Accepts(std::initializer_list<int> inputs) {
    for (int i : inputs) stored |= u64{1} << i;
  }
  // Activations in bf16, if the context computes in bf16 (and the device's kernels do): any input, mixed with
  // f32.
  static Accepts activations(std::initializer_list<int> stored = {}) {
    Accepts a(stored);
    a.bf16 = true;
    return a;
  }
  u64 stored = 0;
  bool bf16 = false;
};

class OpCall {
 public:
  // Undefined tensors among `inputs` are optional inputs that are absent. All have one floating type, or a
  // type that the op accepts. Inputs of other types (storage types, activations in bf16) are widened to fp32
  // in scratch memory, and then outputs are fp32 too.
  OpCall(const char* name, Tensors inputs, const Accepts& accepts = {});

  // --- Strategies ---
  class Strategies {
   public:
    // The axis that is chosen for. The axes before it have the placements that were chosen for them, those
    // after it the given ones.
    Axis axis() const { return axis_; }
    AxisRole role() const;
    int ranks() const;
    // The number of inputs, also absent ones.
    int inputs() const { return static_cast<int>(inputs_.size()); }
    // Input i before redistribution. Only its shape, type and hidden dims may be used, and in(i).
    const Tensor& input(int i) const { return inputs_[i]; }
    const Tensors& all_inputs() const { return inputs_; }
    // Placement of input i on this axis (Replicated if absent).
    Placement in(int i) const;
    i64 attribute(int i) const { return choice_.attributes.begin()[i]; }
    Placement wish() const { return choice_.wish[axis_]; }

    using Placements = SmallVector<Placement, 8>;
    // whole_work: each rank does all FLOPs, not 1 / ranks of them.
    void add(Placements in, Placements out, bool whole_work = false);
    void all_replicated(int outputs = 1);

   private:
    friend class OpCall;
    struct Entry {
      Placements in, out;
      bool whole_work;
    };
    Strategies(const Tensors& inputs, const OpChoice& choice, Axis axis)
        : inputs_(inputs), choice_(choice), axis_(axis) {}
    const Tensors& inputs_;
    const OpChoice& choice_;
    Axis axis_;
    std::vector<Entry> entries_;
  };
  // Lists the strategies on one axis. A plain function (a lambda without captures), because its result is
  // kept: all that it depends on are the inputs and the OpChoice.
  using Generator = void (*)(Strategies&);
  // output_numel: number of global elements of each output, which determines the cost of reducing a Partial
  // one.
  using Counts = SmallVector<i64, 6>;
  void choose(const Counts& output_numel, Generator generate, const OpChoice& choice = {});

  // --- Running ---

  // Input i with the placements of the chosen strategy.
  const Tensor& in(int i) const { return inputs()[i]; }
  // Output i with the chosen placements. Call once per output, in order. Sums are fp32: bf16 becomes f32
  // where the output is Partial, or an input was widened.
  Tensor output(const Shape& shape, DType dtype, int hidden = 0);
  // The same for the gradient of a leaf, which may have a place already (Vjp::room).
  Tensor output(const Shape& shape, DType dtype, const GradientRoom& room);
  // An output that shares the bytes of `input`.
  Tensor view_of(const Tensor& input, const Shape& shape, int hidden = 0);
  // Submits a kernel of the device. Tensors are passed as views of their local blocks. A planned rank runs
  // none.
  template <class... A>
  void run(Kernel<A...> Kernels::*kernel, const std::type_identity_t<A>&... arguments) {
    context_.run(kernel, arguments...);
  }
  // Sizes of workspaces.
  const Kernels& kernels() const { return context_.queue().kernels(); }
  // Scratch memory for `elements`, allocated from the arena, so that a plan counts it. It is released with
  // the tensor.
  static Tensor workspace(i64 elements, DType dtype) { return {{elements}, dtype, {}}; }
  void flops(double local_flops) { flops_ += local_flops; }

  // Adds the op to the tape if one of its inputs is on it. `saved`: inputs (as given, with their nodes) and
  // outputs.
  void record(Tensors saved, VjpFn vjp);
  // The same for ops without a derivative (comparisons, argmax).
  void no_gradient();

 private:
  struct Chosen;
  // The inputs as the kernels take them: those given until one of them has to be changed.
  const Tensors& inputs() const { return changed_ ? inputs_ : given_; }
  Tensors& own_inputs() {
    if (!changed_) inputs_ = given_;
    changed_ = true;
    return inputs_;
  }
  Chosen choose_now(const Counts& output_numel, Generator generate, const OpChoice& choice);
  bool move_inputs(const Chosen& chosen);
  const Layout& next_layout() const;
  void account();
  void check_finite() const;  // see Context::check_finite
  Context& context_;
  const char* name_;
  Tensors given_, inputs_, outputs_;
  SmallVector<Layout, 4> out_layouts_;
  bool changed_ = false, done_ = false, widened_ = false;
  double flops_ = 0;
  i64 begin_ = 0;  // ns of the profile
  friend class StrategyCache;
};

// The dims before the last one.
inline Shape without_last(const Shape& s) { return Shape(s.begin(), s.empty() ? s.end() : s.end() - 1); }

// Whether the ranks of an axis have different parts of a dim.
inline bool is_cut(const Tensor& x, int dim) {
  const Mesh& mesh = Context::current().mesh();
  for (const Axis a : mesh.axes())
    if (mesh.size(a) > 1 && x.layout()[a].is_sharded(dim)) return true;
  return false;
}

// Whether activations may be bf16: the context computes in it, and the device's kernels take it.
bool in_bf16(Context& c);
// The type of sums and statistics of activations of this type.
inline DType sum_type(DType t) { return t == DType::bf16 ? DType::f32 : t; }
// The type of an elementwise result: bf16 if all operands are.
DType joint_type(const Tensors& operands);
// The type of what a product or a norm of x computes.
inline DType computed_type(const Tensor& x) {
  return x.dtype() != DType::f64 && in_bf16(Context::current()) ? DType::bf16 : x.dtype();
}

// Whether an op may use its fused kernel: the device has it, and ops are not to be composed.
template <class... A>
bool may_fuse(Kernel<A...> Kernels::*kernel) {
  const Context& c = Context::current();
  return !c.composed_only && c.has(kernel);
}

// The vjp of a fused op whose gradient is differentiated again: runs the composed form `f` on the original
// inputs and differentiates it. Inputs of integer type are passed through.
Tensors composed_vjp(const Vjp& v, const Tensors& inputs, const std::function<Tensors(const Tensors&)>& f);
// Number of calls of composed_vjp() in this process; for tests.
i64 composed_vjp_count();

struct BackwardOptions {
  bool create_graph = false;     // the result is on the tape and can be differentiated again
  bool stop_at_inputs = false;   // do not follow paths through an input
  bool retain = false;           // keep the saved tensors of nodes for another backward
  FactorsOf* factors = nullptr;  // linear weights among the inputs whose gradients are wanted as factors
  // Takes the gradients of inputs that are leaves, as they arise; the result has none. `nested`: it only
  // gives rooms, because this pass runs in a vjp of the pass whose sink it is.
  GradientSink* sink = nullptr;
  bool nested = false;
  bool fills_sink() const { return sink && !nested; }
};
// The sum of the parts of a cotangent, which are gone afterwards. If the value was created Sharded, the sum
// gets that placement.
Tensor sum_of_parts(SmallVector<Tensor, 2>& parts, const Node::Output& born);

// The engine of grad(): propagates cotangents of `outputs` back to `inputs`. Result i is undefined if no path
// leads to inputs[i]. Its placement is that of the input if Sharded, otherwise any (a Partial is not
// reduced).
std::vector<Tensor> backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                             const std::vector<Tensor>& inputs, const BackwardOptions& options = {});

// The same value as a separate op, so that paths can be cut at it.
Tensor alias(const Tensor& x);

}  // namespace redco
