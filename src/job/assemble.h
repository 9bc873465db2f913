// From a JobConfig to the objects that run: tokenizer, model, sharded parameters, data, pipeline.
#pragma once

#include <memory>
#include <string>

#include "job/job_config.h"
#include "models/model.h"
#include "nn/param_tree.h"
#include "text/tokenizer.h"
#include "train/pipeline.h"

namespace redco {

// Where the model comes from: a folder with weights, or a config alone.
struct ModelSource {
  std::string folder;  // with weights; "" is random initialization
  std::string config_json, origin;
};

// path, preset or arch as the job says; `folder` overrides the job's path (a checkpoint). With arch, what the
// config leaves open and the tokenizer knows (vocab_size, ids of special tokens) comes from there.
ModelSource model_source(const JobConfig& job, const Tokenizer* tokenizer, const std::string& folder = "");
std::unique_ptr<Model> make_job_model(const JobConfig& job, const ModelSource& source);
// model.tokenizer, else the folder's; null if there is none.
std::unique_ptr<Tokenizer> job_tokenizer(const JobConfig& job, const std::string& folder);
std::vector<CustomRule> custom_rules(const JobConfig& job);

// Parameters on the current context: loaded from the source's folder, or random by train.seed. Collective.
ParamTree make_job_params(const JobConfig& job, const ModelSource& source, const Model* model,
                          const ModelParams& params);

// Token windows of text files; the first rank makes the index, all open it. Collective.
std::shared_ptr<const Dataset> make_lm_data(const JobConfig& job, const std::vector<std::string>& files,
                                            const Tokenizer& tokenizer, const Model& model,
                                            const std::string& what);

// Ids that end a text, and the padding id: of generation_config.json, the config, or the tokenizer.
struct EndIds {
  std::vector<i32> eos;
  i32 pad = 0;
};
EndIds end_ids(const ModelSource& source, const Tokenizer* tokenizer);

}  // namespace redco
