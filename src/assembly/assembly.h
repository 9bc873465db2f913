// Assembly: the parts of a training job. Each is built once; the plan and the run share them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "assembly/job_model.h"
#include "assembly/named_parts.h"
#include "job/job_config.h"

namespace redco {

struct Assembly {
  std::unique_ptr<Tokenizer> tokenizer;  // null if the job has none
  ModelSource source;                    // config.source() alone if the pipeline owns its parameters
  std::unique_ptr<Model> model;          // null if the pipeline owns its parameters
  std::vector<NamedParts> named;         // of `models:`
};

// Reads the tokenizer and the model's config; no weights and no data. With with_tokenizer = false the
// tokenizer is read only if the model's config depends on it, because `redco plan` works without tokenizer
// files.
Assembly assemble(const JobConfig& job, bool with_tokenizer = true);
// The same for a plan: without the tokenizer, unless the pipeline needs it or is the user's.
Assembly assemble_for_plan(const JobConfig& job);

// Keys of the model's config that the training data decide and the job leaves open (the number of classes and
// their names): key -> JSON text. The first rank reads the data. Collective.
std::map<std::string, std::string> model_config_of_data(const JobConfig& job, const Assembly& parts);

}  // namespace redco
