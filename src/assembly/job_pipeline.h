// A job's pipeline, its settings and its data.
#pragma once

#include <memory>
#include <string>

#include "assembly/named_parts.h"
#include "job/job_config.h"
#include "pipeline/pipeline.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// The pipeline with model, tokenizer (either may be null), named models and settings set. `generation`:
// settings of its answers. `folder`: that of the weights in use. The parts must outlive it.
std::unique_ptr<Pipeline> make_job_pipeline(const JobConfig& job, const Model* model,
                                            const Tokenizer* tokenizer, const TextGeneration& generation = {},
                                            const std::string& folder = "",
                                            const std::vector<NamedParts>& named = {});

// UsageError: eval.metrics names metrics, and a user's pipeline has none to select from.
void check_metrics(const JobConfig& job, const Pipeline& pipeline);

// The job with the keys of the model's config that its training data decide and the job leaves open: the
// number of classes and their names. Collective.
JobConfig with_data_config(JobConfig job);

// The data that the pipeline's open() makes from one source; null if it makes none. `folder`: the model's.
// `cache`: the folder of indexes. Collective.
std::shared_ptr<const Dataset> open_source(const JobConfig& job, const DataSource& source, bool evaluation,
                                           Pipeline& pipeline, const std::string& folder,
                                           const std::string& cache);
// The job's training data: made by the pipeline's open(), or else texts as pipeline lm reads them. Several
// sources are mixed. Null if the job gives no files. Logs a description. Collective.
std::shared_ptr<const Dataset> make_training_data(const JobConfig& job, Pipeline& pipeline,
                                                  const std::string& folder, const std::string& cache);
// The job's evaluation data; empty if it gives no files.
std::vector<EvalSet> make_eval_sets(const JobConfig& job, Pipeline& pipeline, const std::string& folder,
                                    const std::string& cache);

}  // namespace redco
