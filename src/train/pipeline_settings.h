// Job settings visible to a pipeline.
#pragma once

#include <string>

#include "data/data_settings.h"
#include "generate/generation_settings.h"
#include "train/algorithm_settings.h"
#include "train/train_settings.h"

namespace redco {

struct PipelineSettings {
  DataSettings data;
  TrainSettings train;
  EvalSettings eval;
  MamlSettings maml;
  RlSettings rl;
  // Generation settings of predict(): those of predict:, or in evaluations those of eval.generation.
  TextGeneration generation;
  // The job's `settings:`, a JSON object; the pipeline defines its keys.
  std::string own = "{}";
  std::string model_folder;  // folder of the weights and preprocessor_config.json; "": none
};

}  // namespace redco
