// `redco bench`: times the job's training step, or its generation, on random tokens of its shapes, and compares
// it with the machine's measured peak.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/run.h"

namespace redco {

struct BenchOptions {
  std::optional<i64> steps;  // timed ones, after one that isn't; none: 5, or 3 generations
  bool predict = false, json = false;
};

// Medians over the timed steps. Rates are of all ranks together.
struct BenchReport {
  bool predict = false;
  i64 n_ranks = 1, dp = 1, mp = 1, threads = 1, parameters = 0;
  i64 rows = 0, length = 0;  // of a step: its global batch; of a generation: prompts and their tokens
  i64 new_tokens = 0;        // of a generation, each row
  i64 steps = 0;             // timed
  double step_s = 0;         // one update; with predict: one token of every row
  double tokens_per_s = 0;   // trained on; with predict: tokens made, the prompt's pass included in the time
  double peak = 0;           // FLOP/s of sgemm, the sum of all ranks; with predict: bytes/s they read
  // The step's FLOP/s, counted by the ledger, divided by the peak; with predict: the bytes of weights read per
  // token. At most 1: a step that is faster than the measured peak raises it.
  double peak_share = 0;
  double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;
  i64 peak_memory_bytes = 0;  // of the rank that took most
};
std::string to_text(const BenchReport& r);
std::string to_json(const BenchReport& r);  // fields that don't apply are null

// REQUIRES check_job(job, JobUse::bench). Needs no data; weights are read where the job names a folder with
// some, and random otherwise. Prints the report; returns the exit code.
int run_bench(const RunRequest& request, const BenchOptions& o);

}  // namespace redco
