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
// Of an encoder-decoder: data.max_source_length tokens of the source (default: data.max_length, else 512 or
// all positions), and predict.max_new_tokens, at most as many as the decoder has positions. UsageError:
// the source is longer than the model's positions.
GenerationShape pair_shape(const JobConfig& job, i64 positions);

}  // namespace redco
