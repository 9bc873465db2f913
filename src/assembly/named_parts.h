// The models of `models:` as objects.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assembly/job_model.h"
#include "job/named_models.h"
#include "train/checkpoint.h"

namespace redco {

struct NamedParts {
  NamedModelSettings settings;
  JobConfig job;  // job_of_model()
  ModelSource source;
  std::unique_ptr<Tokenizer> tokenizer;  // null if there is none
  std::unique_ptr<Model> model;
};

// Reads configs and tokenizers; no weights. `only`: these names; null: all of the job. UsageError if the job
// lacks one of them.
std::vector<NamedParts> make_named_parts(const JobConfig& job,
                                         const std::vector<std::string>* only = nullptr);
// Sets the pipeline's `models`. The parts must outlive it.
void give_models(Pipeline& pipeline, const std::vector<NamedParts>& parts);
// verify_source() of each.
[[nodiscard]] std::vector<std::shared_ptr<Lease>> verify_named(const std::vector<NamedParts>& parts,
                                                               Group& world);
// Of the frozen ones: where they come from, and the fingerprints of config and weights. `params`: of the job.
// The first rank reads the files. Collective.
std::map<std::string, FrozenModel> frozen_models(const std::vector<NamedParts>& parts,
                                                 const ParamTree& params, i64 seed, Group& world);
// The same of the model that LoRA adapters are trained on; nullopt: there is none, or it is not in files.
std::optional<FrozenModel> base_of_adapter(const Model* model, const ModelSource& source, Group& world);
// Which parameters of a named model's part of the tree are the model's; others are those of
// Pipeline::extra_params_of().
std::vector<bool> own_parameters(const ParamTree& part, const Model& model);

}  // namespace redco
