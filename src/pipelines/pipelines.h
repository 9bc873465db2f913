// The built-in pipelines, by name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "train/pipeline.h"

namespace redco {

// A model that is to be trained, before the data have said what they know of it.
struct ConfigRequest {
  const DataSettings& data;
  std::string cache;  // folder for built-in data
  // The weights come with a head for this pipeline: its outputs are what they are.
  bool has_head = false;
  std::function<bool(const std::string& key)> given;  // whether the job sets this key of the config
};

// A built-in pipeline, and what it needs of a job.
struct PipelineInfo {
  const char* name;
  std::unique_ptr<Pipeline> (*make)();
  bool needs_model = true;      // false: it may bring parameters of its own
  bool needs_data = true;       // data.train
  const char* unit = "tokens";  // what the first term's weight counts, for people
  bool reads_lines = false;     // data as pipeline lm reads them (train/lm_dataset.h)
  // What its evaluations say beside "loss": what eval.metrics may name, each with the metrics it stands for.
  std::vector<std::pair<std::string, std::vector<std::string>>> metrics;
  // transformers' class of a family's model for this pipeline ("BertForSequenceClassification"), for
  // model.arch; "": the family has none.
  std::string (*architecture)(const std::string& family);
  // The metrics are those of texts that it generates: measured where eval.generation is given.
  bool generates = false;
  // Weights of another class of the family (BertForMaskedLM) get a new head for this pipeline's.
  bool new_head = false;
  // Keys of the model's config that the training data decide (the classes' names), as JSON texts; null: none.
  // On one rank only.
  std::map<std::string, std::string> (*config)(const Model& model, const ConfigRequest& request) = nullptr;

  std::vector<std::string> metric_names() const;  // "loss", and all others
};
// Null for a user's shared object.
const PipelineInfo* pipeline_info(const std::string& name);

// A built-in name, or the path of a user's shared object (anything with a '/' or ending in .so). UsageError
// otherwise.
std::unique_ptr<Pipeline> make_pipeline(const std::string& name);
std::vector<std::string> pipeline_names();
// Of a built-in pipeline's metrics those that eval.metrics asks for.
std::map<std::string, double> wanted_metrics(const char* pipeline, const std::vector<std::string>& families,
                                             std::map<std::string, double> metrics);

std::unique_ptr<Pipeline> make_lm_pipeline();
std::unique_ptr<Pipeline> make_seq2seq_pipeline();
std::unique_ptr<Pipeline> make_captioning_pipeline();
std::unique_ptr<Pipeline> make_maml_pipeline();
std::unique_ptr<Pipeline> make_rl_pipeline();
std::unique_ptr<Pipeline> make_classification_pipeline();
std::unique_ptr<Pipeline> make_regression_pipeline();

// See PipelineInfo::config. ContentsError, UsageError: labels that the model or the job has no place for.
std::map<std::string, std::string> classification_config(const Model& model, const ConfigRequest& r);
std::map<std::string, std::string> regression_config(const Model& model, const ConfigRequest& r);

}  // namespace redco
