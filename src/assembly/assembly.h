// Assembly: the parts of a training job, each built once. The plan and the run use the same ones.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "assembly/job_model.h"
#include "job/job_config.h"

namespace redco {

struct Assembly {
  std::unique_ptr<Tokenizer> tokenizer;  // null: the job has none
  ModelSource source;                    // origin only, where the pipeline has parameters of its own
  std::unique_ptr<Model> model;          // null: the same
};

// Reads the tokenizer and the model's config; no weights and no data. with_tokenizer = false leaves the
// tokenizer null where the model's config doesn't follow from it (`redco plan` needs no tokenizer's files).
Assembly assemble(const JobConfig& job, bool with_tokenizer = true);

// What the training data decide of the model's config where the job doesn't say it (how many classes there
// are, and their names): key -> JSON text. The first rank reads the data. Collective.
std::map<std::string, std::string> model_config_of_data(const JobConfig& job, const Assembly& parts);

}  // namespace redco
