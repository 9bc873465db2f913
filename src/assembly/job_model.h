// From a JobConfig to its tokenizer and model, without weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/lease.h"
#include "ckpt/grown_rows.h"
#include "comm/group.h"
#include "job/job_config.h"
#include "models/model.h"
#include "nn/lora.h"
#include "pipeline/pipeline.h"
#include "tokenizers/tokenizer.h"
#include "train/checkpoint.h"

namespace redco {

// Where the model comes from: a folder with weights, or a config without weights.
struct ModelSource {
  std::string folder;              // with weights; "" means random initialization
  ConfigJson config;               // of the folder, the preset or model.arch
  std::string adapter;             // folder of a PEFT adapter; "" if there is none
  std::optional<LoraConfig> lora;  // train.lora: the adapters that are trained instead of the weights
  // The folder's weights are for another task, or have another number of outputs: the model gets a new head,
  // and `config` describes it.
  bool new_head = false;
  // model.resize_embeddings: rows of the vocabulary that the folder's weights have, and that the model gets.
  ckpt::MoreRows more_rows{};
  // The folder of the trained weights: the adapter's, else the model's.
  const std::string& trained_folder() const { return adapter.empty() ? folder : adapter; }
  // In it, the folder of the pipeline's own parameters; "" without a folder.
  std::string extra_folder() const {
    return trained_folder().empty() ? "" : join_path(trained_folder(), part_folder(kExtra));
  }
};

// path, preset or arch as the job says. With arch, the tokenizer supplies what the config leaves open
// (vocab_size, ids of special tokens). If model.path or model.adapter is an adapter's folder, the model is
// the adapter's base: model.path, else the folder that the adapter's config names.
ModelSource model_source(const JobConfig& job, const Tokenizer* tokenizer);
// The same for training, with train.lora.
ModelSource training_source(const JobConfig& job, const Tokenizer* tokenizer);
// Checks every byte of those folders of the model that are checkpoints of redco; others aren't checked.
// Collective; an error is thrown on all ranks (ckpt/verify_checkpoint.h). The first rank gets leases on the
// folders, which must live until the weights are read.
[[nodiscard]] std::vector<std::shared_ptr<Lease>> verify_source(const JobConfig& job, Group& world);
// The model, with the source's adapters added to its layers.
std::unique_ptr<Model> make_job_model(const JobConfig& job, const ModelSource& source);
// The problems of the keys in `model:` that don't depend on other sections (MoreProblems in
// job/job_config.h). Empty if the pipeline takes no model or is a user's.
std::vector<std::string> model_key_problems(const JobConfig& job);
// The parameters of the task's head: those without the family's name as prefix (if other parameters have it),
// and BERT's pooler, which masked language models lack.
bool is_task_head(const Model& model, const std::string& name);
// The text of adapter_config.json for checkpoints; "" if the whole model is trained.
std::string job_adapter_config(const ModelSource& source, const Model& model);
// model.tokenizer, else the one in the adapter's folder, else in the model's; null if there is none.
std::unique_ptr<Tokenizer> job_tokenizer(const JobConfig& job);

}  // namespace redco
