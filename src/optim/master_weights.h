// Trained weights in a smaller type than fp32. The optimizer updates an fp32 copy of each, its master weight;
// the weight is rounded from it after each update (Micikevicius et al. 2018, "Mixed Precision Training").
#pragma once

#include <vector>

#include "nn/param_tree.h"

namespace redco {

// The type in which a trained parameter is used, if matrices are stored as `weights`: that of a grouped type
// is fp32, since it is quantized when it is loaded only.
DType trained_type(const ParamSpec& spec, DType weights);

class MasterWeights {
 public:
  // `params` is fp32. Trained parameters of a smaller type become masters, with the placement of the
  // optimizer's state; rounded weights take their places in `params`.
  MasterWeights(ParamTree& params, DType weights, StateSharding sharding);

  // The trained parameters in fp32: `params` with the masters in place of the rounded weights. This is what
  // optimizers update and checkpoints store.
  ParamTree of(const ParamTree& params) const;

  // Rounds the masters of the selected parameters (all if empty) to the weights. Collective on the data axes
  // with sharded state.
  void round(ParamTree& params, const std::vector<bool>& selected = {}) const;

 private:
  std::vector<Tensor> masters_;  // undefined: the parameter is fp32
};

}  // namespace redco
