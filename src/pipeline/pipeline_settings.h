// Job settings visible to a pipeline.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "chat/chat_template.h"
#include "data/data_settings.h"
#include "generate/generation_settings.h"
#include "pipeline/algorithm_sections.h"

namespace redco {

// The keys of `train:` that a pipeline may depend on.
struct PipelineTrainSettings {
  i64 seed = 42;
  double label_smoothing = 0;
  std::optional<i64> global_batch_size, n_epochs, max_steps;
};

// The keys of `eval:` that a pipeline may depend on.
struct PipelineEvalSettings {
  std::vector<std::string> metrics;  // empty: all metrics of the pipeline
  std::optional<i64> n_outputs;      // nullopt: the default of eval.n_outputs
};

struct PipelineSettings : AlgorithmSections {
  DataSettings data;
  PipelineTrainSettings train;
  PipelineEvalSettings eval;
  // Generation settings of predict(): those of predict:, or in evaluations those of eval.generation.
  TextGeneration generation;
  // The job's `settings:`, a JSON object; the pipeline defines its keys.
  SectionText own;
  // The folder that the training's model comes from, model.path of the job that is trained: the same in
  // train, evaluate and predict, also where it no longer exists. "": none.
  std::string model_folder;
  // The folder of the weights that are in use, and of preprocessor_config.json: in train the same, in
  // evaluate and predict that of the checkpoint. "": none.
  std::string weights_folder;
  // The job's chat template; null: the job has none.
  std::shared_ptr<const ChatTemplate> chat_template;
};

}  // namespace redco
