// Memory and communication cost of one candidate configuration.
#pragma once

#include <map>

#include "nn/param_tree.h"
#include "plan/plan.h"

namespace redco {

// What a step needs without activations, on all ranks of one replica together, without sharded state.
struct LeastBytes {
  double parameters = 0, gradients = 0, state = 0;
};

class Weigher {
 public:
  explicit Weigher(const PlanRequest& request) : request_(request) {}

  // Layouts and table of the parameters for n_model_shards; cached.
  const ShardedSpecs& specs(int n_model_shards);
  TraceRequest trace_request(const PlanSetting& s, int rank);
  // Traces `rank` and sums its memory. `trace`, if not null, gets the trace, with its time if the request has
  // a model of the machine.
  PlanCandidate weigh(const PlanSetting& s, int rank = 0, Trace* trace = nullptr);
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

// The batch sizes of a step on dp replicas; nullopt if a replica would get no row.
std::optional<PlanSetting> with_batches(const PlanRequest& request, const Mesh& mesh,
                                        std::optional<i64> per_device);

// Chooses the settings that the job leaves open: mp inside a host before mp across hosts, no recompute before
// recompute, the smallest n_model_shards, the largest micro-batch. `next` gets the first larger setting that
// does not fit. If nothing fits, returns the setting that exceeds its limit the least.
PlanCandidate search_setting(const PlanRequest& request, Weigher& weigher, StateSharding sharding,
                             bool inside_hosts_only, std::optional<PlanCandidate>* next);

// The smallest n_model_shards that fits on these machines; nullopt if none fits.
std::optional<i64> smallest_shards(const PlanRequest& request, Weigher& weigher, const PlanSetting& like,
                                   i64 devices);

// See PlanReport::devices_needed. At most an eighth more than the least number.
std::optional<i64> devices_needed(const PlanRequest& request, const PlanSetting& like);

}  // namespace redco
