// A job's pipeline, its settings and its data.
#pragma once

#include <memory>
#include <string>

#include "job/job_config.h"
#include "tokenizers/tokenizer.h"
#include "train/pipeline.h"

namespace redco {

// The pipeline with model, tokenizer (either may be null) and settings set. `generation`: settings of its
// answers. `folder`: the model's.
std::unique_ptr<Pipeline> make_job_pipeline(const JobConfig& job, const Model* model,
                                            const Tokenizer* tokenizer, const TextGeneration& generation = {},
                                            const std::string& folder = "");

// The job with the keys of the model's config that its training data decide and the job leaves open: the
// number of classes and their names. Collective.
JobConfig with_data_config(JobConfig job);

// The data that the pipeline's open() makes from data.train or data.eval; null if it makes none, or the job
// gives no files. Collective.
std::shared_ptr<const Dataset> open_job_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                             const std::string& folder, const std::string& cache);
// The same, or else texts as pipeline lm reads them; null if the job gives no files. Logs a description.
// `folder`: the model's. `cache`: the folder of token indices. Collective.
std::shared_ptr<const Dataset> make_job_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                             const std::string& folder, const std::string& cache);

}  // namespace redco
