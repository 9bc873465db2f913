// From a JobConfig to the objects that run: tokenizer, model, sharded parameters, data, pipeline.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/lease.h"
#include "comm/group.h"
#include "job/job_config.h"
#include "models/model.h"
#include "nn/lora.h"
#include "tokenizers/tokenizer.h"
#include "train/pipeline.h"

namespace redco {

// Where the model comes from: a folder with weights, or a config alone.
struct ModelSource {
  std::string folder;  // with weights; "" is random initialization
  std::string config_json, origin;
  std::string adapter;             // a PEFT adapter's folder; "": none
  std::optional<LoraConfig> lora;  // train.lora: what is trained instead of the weights
  // The folder's weights are for another task, or have another number of outputs: the job's pipeline gets a
  // new head, and config_json says so.
  bool new_head = false;
};

// path, preset or arch as the job says; `folder` overrides the job's path (a checkpoint). With arch, what the
// config leaves open and the tokenizer knows (vocab_size, ids of special tokens) comes from there. Where the
// folder is an adapter's, the model is its base: model.path, else the one that its config names.
ModelSource model_source(const JobConfig& job, const Tokenizer* tokenizer, const std::string& folder = "");
// The same for training: with train.lora.
ModelSource training_source(const JobConfig& job, const Tokenizer* tokenizer);
// Checks every byte of those of its folders that are checkpoints of redco; others aren't checked. `setting`
// names `folder` in messages. Collective; an error is thrown on all ranks (ckpt/verify_checkpoint.h).
// Returns, on the first rank, the leases on the folders beside `folder`: they are to live until the weights
// are read.
[[nodiscard]] std::vector<std::shared_ptr<Lease>> verify_source(const JobConfig& job,
                                                                const std::string& folder,
                                                                const std::string& setting, Group& world);
// With the source's adapters beside its layers.
std::unique_ptr<Model> make_job_model(const JobConfig& job, const ModelSource& source);
// The adapter_config.json of checkpoints; "" where the whole model is trained.
std::string job_adapter_config(const ModelSource& source, const Model& model);
// model.tokenizer, else the folder's (an adapter's base's where it has none); null if there is none.
std::unique_ptr<Tokenizer> job_tokenizer(const JobConfig& job, const std::string& folder);
std::vector<CustomRule> custom_rules(const JobConfig& job);

// Parameters on the current context: loaded from the source's folder and adapter, or random by train.seed.
// Collective.
ParamTree make_job_params(const JobConfig& job, const ModelSource& source, const Model* model,
                          const ModelParams& params);

}  // namespace redco
