// What a pipeline is told of its job.
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
  // How predict() generates: as predict: says, or, in evaluations, eval.generation.
  TextGeneration generation;
  // The job's `settings:`, a JSON object that means what the pipeline makes of it.
  std::string own = "{}";
  std::string
      model_folder;  // of the weights, with what lies beside them (preprocessor_config.json); "": none
};

}  // namespace redco
