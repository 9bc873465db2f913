// Gradients. An eager tape that records only what descends from a watched tensor.
#pragma once

#include <functional>

#include "tensor/node.h"
#include "tensor/tensor.h"

namespace redco {

struct GradOptions {
  bool create_graph = false;  // the gradients can be differentiated again
  bool retain = false;        // another grad() will pass through the same ops
};

// d(loss)/d(inputs) of a one-element loss. Inputs are watched tensors or descend from them. Zeros where the
// loss does not depend on an input. Placements: the input's where that is Sharded; where it is Replicated the
// gradient may be Partial: reduce_gradients.
std::vector<Tensor> grad(const Tensor& loss, const std::vector<Tensor>& inputs,
                         const GradOptions& options = {});
// The same with given cotangents of several outputs.
std::vector<Tensor> vjp(const std::vector<Tensor>& outputs, const std::vector<Tensor>& cotangents,
                        const std::vector<Tensor>& inputs, const GradOptions& options = {});

// The same where the gradients of inputs with `by_factors` aren't multiplied out: for each use of such a
// weight in linear() (ops/linear.h), what came in, x [..., I], and the gradient of what went out, g [..., O].
// Their product over all rows is the gradient; over the rows of one example or task, that one's own.
struct FactoredGradients {
  std::vector<Tensor> whole;  // as from grad(); undefined where the factors say it all
  std::vector<std::vector<RowFactors>> factors;
};
FactoredGradients factored_grad(const Tensor& loss, const std::vector<Tensor>& inputs,
                                const std::vector<bool>& by_factors, const GradOptions& options = {});

// f is run now without keeping what its backward reads, and again when the backward comes to it: f must hold
// by value what it reads then. Differentiable to any order; random draws repeat because they have keys;
// results of collectives are kept, not repeated.
Tensor recompute(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

// f over dim 0 of every tensor of xs at once: f sees them without that dim (it is hidden, a batch dim of
// every op), and so does the result until it comes back. Costs no rules of its own.
std::vector<Tensor> vmap(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                         const std::vector<Tensor>& xs);

}  // namespace redco
