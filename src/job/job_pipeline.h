// A job's pipeline with what it is told and the data it reads.
#pragma once

#include <memory>
#include <string>

#include "job/job_config.h"
#include "text/tokenizer.h"
#include "train/pipeline.h"

namespace redco {

// With model, tokenizer (either may be null) and settings set; `generation` is how it answers.
std::unique_ptr<Pipeline> make_job_pipeline(const JobConfig& job, const Model* model,
                                            const Tokenizer* tokenizer,
                                            const TextGeneration& generation = {});

// data.train or data.eval as the pipeline reads them; null where the job gives none. Says what there is.
// `folder` is the model's, `cache` a folder for what is made once. Collective.
std::shared_ptr<const Dataset> make_job_data(const JobConfig& job, bool evaluation, Pipeline& pipeline,
                                             const std::string& folder, const std::string& cache);

}  // namespace redco
