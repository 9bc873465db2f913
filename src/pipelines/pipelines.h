// The built-in pipelines, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "train/pipeline.h"

namespace redco {

// A built-in pipeline, and what it needs of a job.
struct PipelineInfo {
  const char* name;
  std::unique_ptr<Pipeline> (*make)();
  bool needs_model = true;   // false: it may bring parameters of its own
  bool needs_data = true;    // data.train
  bool reads_lines = false;  // data as pipeline lm reads them (train/lm_dataset.h)
  // What its evaluations say beside "loss": what eval.metrics may name, each with the metrics it stands for.
  std::vector<std::pair<std::string, std::vector<std::string>>> metrics;
  // transformers' class of a family's model for this pipeline ("BertForSequenceClassification"), for
  // model.arch; "": the family has none.
  std::string (*architecture)(const std::string& family);

  std::vector<std::string> metric_names() const;  // "loss", and all others
};
// Null for a user's shared object.
const PipelineInfo* pipeline_info(const std::string& name);

// A built-in name, or the path of a user's shared object (anything with a '/' or ending in .so). UsageError
// otherwise.
std::unique_ptr<Pipeline> make_pipeline(const std::string& name);
std::vector<std::string> pipeline_names();

std::unique_ptr<Pipeline> make_lm_pipeline();
std::unique_ptr<Pipeline> make_seq2seq_pipeline();
std::unique_ptr<Pipeline> make_rl_pipeline();

}  // namespace redco
