#include "commands/generation_shape.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

GenerationShape generation_shape(const JobConfig& job, i64 positions_of_model) {
  const i64 positions = std::min(job.data.max_length.value_or(positions_of_model), positions_of_model);
  if (positions < 2)
    throw UsageError("[bench] {} positions are too few for generation. Set data.max_length to 2 or more",
                     positions);
  GenerationShape s;
  s.new_tokens = std::max<i64>(2, std::min(job.predict.max_new_tokens, positions / 2));
  s.length = std::max<i64>(1, positions - s.new_tokens);
  return s;
}

GenerationShape pair_shape(const JobConfig& job, i64 positions) {
  if (job.data.max_source_length.value_or(1) > positions)
    throw UsageError("[data] data.max_source_length={} ({}) is more than the model's {} positions",
                     *job.data.max_source_length, job.origins.where("data.max_source_length"), positions);
  GenerationShape s;
  s.length = job.data.max_source_length.value_or(std::min<i64>(positions, job.data.max_length.value_or(512)));
  s.new_tokens = std::max<i64>(2, std::min(job.predict.max_new_tokens, positions - 1));
  return s;
}

}  // namespace redco
