// `predict --dry-run`: prompts, memory and work of a predict job, without reading weights.
#pragma once

#include <string>

#include "job/job_config.h"

namespace redco {

struct PredictPlan {
  std::string title;                                   // where the model comes from
  i64 n_prompts = 0, skipped = 0, longest_prompt = 0;  // tokens
  i64 answers = 1;                                     // per prompt
  i64 rows = 0, length = 0;  // rows per replica and batch; most tokens per row, answer included
  int dp = 1, mp = 1;
  // Bytes of the fullest rank.
  i64 parameters = 0, cache = 0, activations = 0, base = 0, limit = 0;
  i64 prefill_flops = 0,
      step_flops = 0;  // of that rank: a batch of the longest prompts; one token of every row
  i64 total() const { return parameters + cache + activations + base; }
  bool fits() const { return total() <= limit; }
};

// Reads and checks all prompts. Traces a prefill of the longest prompts and a step at full length on meta
// tensors. Throws the errors of predict. REQUIRES: the job is one of trained_job().
PredictPlan plan_predict(const JobConfig& job);
std::string to_text(const PredictPlan& p);

}  // namespace redco
