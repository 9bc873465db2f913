// Adafactor (Shazeer & Stern 2018): of a matrix, it keeps the mean squares of gradients by row and by column
// in place of those of all elements, so its state is small. The order of operations and the names are those
// of transformers' Adafactor with relative_step=False and without a first moment.
//
//   rate   = learning rate, times max(epsilon2, RMS(parameter)) with scale_parameter
//   kept   = 1 - t^decay_rate                               in update t, from 1
//   rows   = kept rows + (1 - kept) mean of g^2 + epsilon1 over each row; columns likewise
//   u      = g / sqrt(rows columns / mean(rows))
//   update = rate u / max(1, RMS(u) / clip_threshold) + rate weight_decay parameter
//
// Matrices are the last two dims. Each RMS is over the whole parameter. A vector keeps all of its mean
// squares.
#pragma once

#include "optim/rule_optimizer.h"

namespace redco {

struct AdafactorSettings {
  double decay_rate = -0.8;
  double epsilon1 = 1e-30, epsilon2 = 1e-3;
  double clip_threshold = 1;
  bool scale_parameter = false;
  double weight_decay = 0;
  bool decay_norms_and_biases = false;
};

// Sharded state stays sharded: the shards add up the columns, and at most three numbers per parameter.
RuleSettings adafactor_rule(const AdafactorSettings& settings);

}  // namespace redco
