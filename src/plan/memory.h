// The memory of a rank in one candidate configuration, and its communication.
#pragma once

#include <map>

#include "nn/param_tree.h"
#include "plan/plan.h"

namespace redco {

// Memory of a rank besides its tensors: the program and its libraries, tables of OpenBLAS and MPI, the
// collated ids.
// Measured as VmHWM of `redco train` minus the arena's high-water mark, on 2 cores with Open MPI 4.1, for
// models of 124M to 223M parameters: 46 MiB for a single rank; with several ranks 28 to 31 MiB, but 60 to 63
// MiB on the first rank, which builds the token index and writes most of a checkpoint.
constexpr i64 kBaseAlone = i64{46} << 20;
constexpr i64 kBaseUnderMpi = i64{48} << 20;

constexpr i64 base_memory(i64 n_ranks) { return n_ranks > 1 ? kBaseUnderMpi : kBaseAlone; }

// What a step needs without activations, on all ranks of one replica together, without sharded state.
struct LeastBytes {
  double parameters = 0, gradients = 0, state = 0;
};

class CandidateMemory {
 public:
  explicit CandidateMemory(const PlanRequest& request) : request_(request) {}

  // Layouts and table of the parameters for n_model_shards; cached.
  const ShardedSpecs& specs(int n_model_shards);
  TraceRequest trace_request(const PlanSetting& s, int rank);
  // Traces `rank` and sums its memory. `trace`, if not null, gets the trace, with its time if the request has
  // a model of the machine.
  PlanCandidate of(const PlanSetting& s, int rank = 0, Trace* trace = nullptr);
  // False if parameters, gradients and moments alone exceed a rank's limit. Needs no trace.
  bool may_fit(const PlanSetting& s);
  i64 n_parameters();
  i64 n_trained();  // parameters with gradients

 private:
  const PlanRequest& request_;
  std::map<int, ShardedSpecs> specs_;
  const LeastBytes& least_bytes();

  i64 n_parameters_ = -1, n_trained_ = -1;
  std::optional<LeastBytes> least_bytes_;
};

}  // namespace redco
