// Weights that differ from task to task: shared parameters, and what steps of gradient descent on each task's
// own loss have made of them (the inner loop of MAML, Finn et al. 2017). Tasks are a hidden dim (vmap,
// autograd/grad.h): the model is applied to inputs [tasks, ...] with_hidden(1), once for all tasks.
//
// A step on a linear layer is a matrix of low rank: the gradient of its weight is g^T x, g and x as many rows
// as the task has. Where that is the smaller part it is never multiplied out. It stands beside the shared
// weight as an adapter does (nn/lora.h), and all tasks' rows meet the shared weight in one product. Other
// parameters get a value of their own for each task.
#pragma once

#include <functional>
#include <vector>

#include "nn/param_tree.h"
#include "tensor/node.h"

namespace redco {

class FastWeights {
 public:
  enum class Order : std::uint8_t {
    none,    // nothing will be differentiated (evaluation)
    first,   // gradients of the steps are constants
    second,  // exact
  };
  // Every parameter that is trained is adapted. `shared` has values of `params`, on the tape or not; linear
  // layers are applied by dense(). `tasks`: dim 0 of the inputs, cut as batch_layout() says.
  FastWeights(const ModelParams& params, const ParamTree& shared, i64 tasks, Order order);

  // One step for every task. `loss` gives the sum of the tasks' own losses, one element, for parameters that
  // it gives on to the model.
  void descend(const std::function<Tensor(const ParamTree&)>& loss, double learning_rate);

  // What the model is to be given now.
  ParamTree params() const;

 private:
  struct Weight {
    Tensor value;  // shared, or [tasks, ...] with one hidden dim
    bool shared = true;
    bool factors = false;      // a linear weight that may stay shared
    std::vector<Tensor> x, g;  // its steps: value - sum of g^T x, [tasks, rows, in] and [tasks, rows, out]
  };
  ParamTree tree(const std::vector<Tensor>& values) const;
  Tensor own(const Tensor& shared) const;  // a copy for every task
  void step_by_factors(Weight& w, const std::vector<RowFactors>& steps, double learning_rate) const;

  const ModelParams* params_;
  ParamTree shared_;
  i64 tasks_;
  Order order_;
  std::vector<Weight> weights_;
};

}  // namespace redco
