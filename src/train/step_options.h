// The options of a training step, and how they follow from the settings of a job.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "optim/make_optimizer.h"
#include "shard/parallel_settings.h"
#include "train/train_settings.h"

namespace redco {

struct StepOptions {
  std::optional<double> clip_grad_norm;
  bool recompute_blocks = false;
  bool sequence_parallel = false;  // nn/layers.h
  OptimizerSettings optimizer;
  StateSharding sharding = StateSharding::none;
  DType weights = DType::f32;  // of matrices; trained ones have fp32 masters
  bool updates = true;         // false: a step ends with the gradients and changes no parameter
  // If set, each finite step calls it before the update, with the reduced gradient of each parameter
  // (undefined: it has none in this step).
  std::function<void(const std::vector<Tensor>&)> on_gradients{};
};
StepOptions step_options(const TrainSettings& settings, const ParallelSettings& parallel = {},
                         DType weights = DType::f32);

}  // namespace redco
