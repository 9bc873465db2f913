// The settings of the training and of evaluations that a pipeline sees.
#pragma once

#include "pipeline/pipeline_settings.h"
#include "train/train_settings.h"

namespace redco {

inline PipelineTrainSettings for_pipeline(const TrainSettings& t) {
  return {.seed = t.seed,
          .label_smoothing = t.label_smoothing,
          .global_batch_size = t.global_batch_size,
          .n_epochs = t.n_epochs,
          .max_steps = t.max_steps};
}
inline PipelineEvalSettings for_pipeline(const EvalSettings& e) {
  return {.metrics = e.metrics, .n_outputs = e.n_outputs};
}

}  // namespace redco
