// `redco bench`: times the job's training step, or its generation, and compares it with the machine's
// measured peak. Pipeline lm gets random tokens of its shapes, others the job's training data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/kernel_times.h"
#include "run/run.h"

namespace redco {

struct BenchOptions {
  std::optional<i64> steps;  // timed steps, after a warm-up step; nullopt: 5, or 3 generations
  bool predict = false, json = false;
  bool kernels = false;  // also the time of each kind of kernel, in one more step or generation
};

// Medians over the timed steps. Rates are sums over all ranks.
struct BenchReport {
  bool predict = false;
  i64 n_ranks = 1, dp = 1, mp = 1, threads = 1, parameters = 0;
  i64 rows = 0, length = 0;  // training: global batch; generation: prompts and their tokens
  i64 new_tokens = 0;        // generation: per row
  i64 steps = 0;             // timed steps
  double step_s = 0;         // one update; generation: one token of every row
  double waiting_s = 0;      // training: of step_s, a rank's time in collectives; mean of the ranks
  double tokens_per_s = 0;   // training: trained tokens; generation: new tokens, prefill time included
  // A step's FLOPs, as the ledger counts them, and peak matmul speed, of all ranks.
  double step_flops = 0, peak_flops = 0;
  bool bf16_products = false;  // the peak is that of products of bf16, not of sgemm
  bool has_roofline = false;   // generation of a decoder
  // Then: the bytes that a step in the middle of the answers reads, weights and KV cache, and the
  // streaming read, bytes/s, of all ranks.
  double step_bytes = 0, peak_bytes = 0;
  // Training: the step's FLOP/s divided by peak_flops. Generation: the time of reading the step's bytes or of
  // computing its products at their peaks, the longer one, divided by step_s (roofline). At most 1, because a
  // faster step raises the peak.
  double peak_share = 0;
  double prefill_peak_share = 0;  // generation: the prefill's FLOP/s divided by peak_flops
  double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;
  i64 peak_memory_bytes = 0;  // of the rank that used most
  // With BenchOptions::kernels: on the first rank; predicted if this machine was measured.
  std::map<std::string, KernelTimes::Kind> kernels;
  bool predicted = false;
};
std::string to_text(const BenchReport& r);
std::string to_json(const BenchReport& r);  // null for fields that don't apply

// REQUIRES check_job(job, JobUse::bench). Pipeline lm needs no data. Weights are read if the job's folder
// holds some, else they are random. Prints the report; returns the exit code.
int run_bench(const RunRequest& request, const BenchOptions& o);

}  // namespace redco
