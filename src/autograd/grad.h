// Gradients by an eager tape, which records only ops whose inputs descend from a watched tensor.
#pragma once

#include <functional>

#include "tensor/node.h"
#include "tensor/tensor.h"

namespace redco {

struct GradOptions {
  bool create_graph = false;  // the gradients can be differentiated again
  bool retain = false;        // another grad() will use the same ops
  // If set, it gets each gradient when it is complete, and grad() returns none. REQUIRES: the inputs are
  // leaves (watched tensors).
  GradientSink* sink = nullptr;
};

// d(loss)/d(inputs) of a loss with one element. Inputs are watched tensors or descend from them. Zeros for
// inputs that the loss does not depend on. Placements: that of the input if Sharded; if the input is
// Replicated, the gradient may be Partial (see optim/gradients.h).
std::vector<Tensor> grad(const Tensor& loss, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});
// The same for several outputs with given cotangents.
std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                        const std::vector<Tensor>& inputs, const GradOptions& options = {});

// The same, but gradients of inputs with `by_factors` are returned as factors. For each use of such a weight
// in linear() (ops/linear.h) these are its input x [..., I] and the gradient of its output g [..., O]. Their
// product over all rows is the gradient; over the rows of one example or task, the gradient of that one.
struct FactoredGradients {
  std::vector<Tensor> whole;  // as from grad(); undefined if the factors are complete
  std::vector<std::vector<RowFactors>> factors;
};
FactoredGradients factored_grad(const Tensor& loss, const std::vector<Tensor>& inputs,
                                const std::vector<bool>& by_factors, const GradOptions& options = {});

// Runs f now without keeping the tensors that its backward reads, and again in the backward; f must capture
// by value all that it reads. Differentiable to any order. Random draws repeat because they have keys;
// sums over ranks are kept and not repeated.
Tensor recompute(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
// The same for a function with several results; in the backward, f must return the same number.
Tensors recompute(const std::function<Tensors(const Tensor&)>& f, const Tensor& x);

// Applies f to all slices along dim 0 of every tensor in xs together. Inside f this dim is hidden (a batch
// dim of every op), also in the result; it is visible again in what vmap returns. Ops need no separate rules
// for it.
std::vector<Tensor> vmap(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                         const std::vector<Tensor>& xs);

}  // namespace redco
