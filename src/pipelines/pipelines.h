// The built-in pipelines, by name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "metrics/text_metrics.h"
#include "pipeline/pipeline.h"

namespace redco {

// The inputs for the parts of a new model's config that depend on the training data.
struct ConfigRequest {
  const DataSettings& data;
  std::string cache;  // folder for built-in data
  // The weights include a head for this pipeline, so its outputs are fixed.
  bool has_head = false;
  std::function<bool(const std::string& key)> given;  // whether the job sets this key of the config
};

// A built-in pipeline and its requirements.
struct PipelineInfo {
  const char* name;
  std::unique_ptr<Pipeline> (*make)();
  bool needs_model = true;        // false: it may have its own parameters
  bool needs_data = true;         // data.train
  bool reads_lines = false;       // data in the formats of pipeline lm (pipeline/lm_dataset.h)
  bool reads_files_only = false;  // false: a folder may be one of images
  // Values of eval.metrics besides "loss", each with the metrics that it selects.
  MetricFamilies metrics;
  bool scores_texts = false;  // those of plugins are for it too (metrics/text_metrics.h)
  // The transformers class of a family for this pipeline ("BertForSequenceClassification"), for model.arch;
  // "": the family is not supported.
  std::string (*architecture)(const std::string& family);
  // Its metrics need generated texts: evaluated only with eval.generation.
  bool generates = false;
  // What redco predict gives: generation settings are for texts, predict.images is for images.
  enum class Answers : std::uint8_t { values, texts, images } answers = Answers::values;
  // Weights of another class of the family (BertForMaskedLM) get a new head.
  bool new_head = false;
  // With new_head: the pipeline uses no head, so weights with any head serve unchanged.
  bool headless = false;
  // Compares with the model that the training begins with, a frozen model `reference` (job/named_models.h).
  // Losses of dpo without reference have none: DpoSettings::has_reference().
  bool reference = false;
  bool renders_chats = false;    // it gets the job's chat template
  bool needs_tokenizer = false;  // also for a plan
  // Keys of the model's config that depend on the training data (class names), as JSON texts; null: none. On
  // one rank only.
  std::map<std::string, std::string> (*config)(const Model& model, const ConfigRequest& request) = nullptr;

  // `metrics`, and those of plugins.
  MetricFamilies all_metrics() const;
  // "loss" and all others. Of sets with names "NAME_loss" and so on.
  std::vector<std::string> metric_names(const std::vector<EvalSetSettings>& sets) const;
};
// Null for a user's shared object.
const PipelineInfo* pipeline_info(const std::string& name);

// Creates a pipeline from a built-in name or the path of a user's shared object (anything with a '/' or
// ending in .so). UsageError otherwise.
std::unique_ptr<Pipeline> make_pipeline(const std::string& name);
std::vector<std::string> pipeline_names();
// The metrics of a built-in pipeline that eval.metrics selects.
std::map<std::string, double> wanted_metrics(const char* pipeline, const std::vector<std::string>& families,
                                             std::map<std::string, double> metrics);

std::unique_ptr<Pipeline> make_lm_pipeline();
std::unique_ptr<Pipeline> make_seq2seq_pipeline();
std::unique_ptr<Pipeline> make_captioning_pipeline();
std::unique_ptr<Pipeline> make_transcription_pipeline();
std::unique_ptr<Pipeline> make_maml_pipeline();
std::unique_ptr<Pipeline> make_rl_pipeline();
std::unique_ptr<Pipeline> make_classification_pipeline();
std::unique_ptr<Pipeline> make_regression_pipeline();
std::unique_ptr<Pipeline> make_dpo_pipeline();
std::unique_ptr<Pipeline> make_reward_pipeline();
std::unique_ptr<Pipeline> make_distillation_pipeline();
std::unique_ptr<Pipeline> make_contrastive_pipeline();
std::unique_ptr<Pipeline> make_grpo_pipeline();
std::unique_ptr<Pipeline> make_embedding_pipeline();
std::unique_ptr<Pipeline> make_reranking_pipeline();
std::unique_ptr<Pipeline> make_token_classification_pipeline();
std::unique_ptr<Pipeline> make_question_answering_pipeline();
std::unique_ptr<Pipeline> make_multiple_choice_pipeline();
std::unique_ptr<Pipeline> make_text_to_image_pipeline();

// See PipelineInfo::config. ContentsError, UsageError: labels that contradict the model or the job.
std::map<std::string, std::string> classification_config(const Model& model, const ConfigRequest& r);
std::map<std::string, std::string> regression_config(const Model& model, const ConfigRequest& r);
std::map<std::string, std::string> token_classification_config(const Model& model, const ConfigRequest& r);
std::map<std::string, std::string> reranking_config(const Model& model, const ConfigRequest& r);

}  // namespace redco
