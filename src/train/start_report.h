// The lines that training prints before its first step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/types.h"
#include "models/model.h"
#include "nn/param_tree.h"
#include "optim/schedule.h"
#include "train/train_settings.h"

namespace redco {

struct TrainingStart {
  i64 examples = 0, steps_per_epoch = 0;
  i64 step = 0;  // steps that the resumed checkpoint has; 0 for a new run
  i64 global_batch_size = 0, per_device_batch_size = 0, dp = 1;
  Schedule schedule;  // its total_steps is the end of this run
  CheckpointSettings checkpoint{};
  std::string workdir;
};

// "4000 examples, 125 steps per epoch; 250 steps in total, 25 of them warm-up", the batch, when checkpoints
// are saved, the output folder.
std::vector<std::string> start_lines(const TrainingStart& start);

// Settings that are valid but probably mistakes: a batch larger than the data, fewer than 10 steps, a run
// that ends in its warm-up, no step left to train. Each line names a remedy. No number changes.
std::vector<std::string> start_warnings(const TrainingStart& start);

// "no loss term depends on 2 of 40 trained parameters (a, b); their gradients are 0". Biases of keys are not
// counted: they cancel in the softmax. "": there is nothing to say.
std::string unreached_line(const ParamTree& params, const std::vector<size_t>& unreached);

// A model whose config asks for a load-balancing loss, which the terms of the step lack. "": nothing to say.
std::string router_loss_line(const Model* model, const std::map<std::string, double>& terms);

// What it means that two draws of the first loss have one key; repeated: StepOutcome::repeated_key. "": none.
std::string repeated_key_line(const std::string& repeated);

}  // namespace redco
