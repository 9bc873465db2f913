// A job's pipeline with what it is told and the data it reads.
#pragma once

#include <memory>
#include <string>

#include "job/job_config.h"
#include "tokenizers/tokenizer.h"
#include "train/pipeline.h"

namespace redco {

// With model, tokenizer (either may be null) and settings set; `generation` is how it answers, `folder` the
// model's.
std::unique_ptr<Pipeline> make_job_pipeline(const JobConfig& job, const Model* model,
                                            const Tokenizer* tokenizer, const TextGeneration& generation = {},
                                            const std::string& folder = "");

// The job with what its training data decide of the model's config, where it doesn't say so itself: how many
// classes there are, and their names. Collective.
JobConfig with_data_config(JobConfig job);

// What the pipeline's open() makes of data.train or data.eval; null where it makes nothing, or the job gives
// none. Collective.
std::shared_ptr<const Dataset> open_job_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                             const std::string& folder, const std::string& cache);
// The same, or texts as pipeline lm reads them; null where the job gives none. Says what there is.
// `folder` is the model's, `cache` a folder for what is made once. Collective.
std::shared_ptr<const Dataset> make_job_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                             const std::string& folder, const std::string& cache);

}  // namespace redco
