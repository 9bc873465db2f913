// Weights that differ between tasks: shared parameters, updated by steps of gradient descent on each task's
// loss (the inner loop of MAML, Finn et al. 2017). Tasks are a hidden dim (vmap, autograd/grad.h): the model
// is applied once for all tasks, to inputs [tasks, ...] with_hidden(1).
//
// A step on a linear layer is a matrix of low rank: the gradient of its weight is g^T x, where g and x have
// one row per row of the task. If these factors are smaller than the weight, they are not multiplied; they
// act as an adapter of the shared weight (nn/lora.h), and the rows of all tasks use the shared weight in one
// product. All other parameters get a separate value for each task.
#pragma once

#include <functional>
#include <vector>

#include "nn/param_tree.h"
#include "tensor/node.h"

namespace redco {

class FastWeights {
 public:
  enum class Order : std::uint8_t {
    none,    // the steps are not differentiated (evaluation)
    first,   // first order: gradients of the steps are constants
    second,  // second order: exact
  };
  // Adapts every trained parameter. `shared` has the values of `params`, on the tape or not; linear layers
  // must use dense(). `tasks`: size of dim 0 of the inputs, which are cut like batch_layout().
  FastWeights(const ModelParams& params, const ParamTree& shared, i64 tasks, Order order);

  // One step for every task. `loss` returns the sum of the losses of all tasks (one element), given
  // parameters for the model.
  void descend(const std::function<Tensor(const ParamTree&)>& loss, double learning_rate);

  // The current parameters, for the model.
  ParamTree params() const;

 private:
  struct Weight {
    Tensor value;  // shared, or [tasks, ...] with one hidden dim
    bool shared = true;
    bool factors = false;      // a linear weight whose steps may stay factors
    std::vector<Tensor> x, g;  // its steps: value - sum of g^T x; x [tasks, rows, in], g [tasks, rows, out]
  };
  ParamTree tree(const std::vector<Tensor>& values) const;
  Tensor own(const Tensor& shared) const;  // a separate copy for every task
  void step_by_factors(Weight& w, const std::vector<RowFactors>& steps, double learning_rate) const;

  const ModelParams* params_;
  ParamTree shared_;
  i64 tasks_;
  Order order_;
  std::vector<Weight> weights_;
};

}  // namespace redco
