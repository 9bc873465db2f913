// The shapes of a generation that is timed or planned without prompts.
#pragma once

#include "job/job_config.h"

namespace redco {

struct GenerationShape {
  i64 length = 1, new_tokens = 1;  // tokens of the prompt and of the answer
};
// data.max_length positions, at most the model's: new tokens take at most half of them, the prompt the
// others. UsageError: there are fewer than 2.
GenerationShape generation_shape(const JobConfig& job, i64 positions_of_model);

}  // namespace redco
