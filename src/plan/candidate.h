// One way to run a job, weighed: bytes of the fullest rank against what a rank may use.
#pragma once

#include <map>

#include "nn/param_tree.h"
#include "plan/plan.h"

namespace redco {

class Weigher {
 public:
  explicit Weigher(const PlanRequest& request) : request_(request) {}

  // Layouts and table of the parameters on n_model_shards; kept.
  const ShardedSpecs& specs(int n_model_shards);
  TraceRequest trace_request(const PlanSetting& s, int rank);
  // Traces `rank` and adds its parts up. The trace, if asked for, is that of the step without sharded state.
  PlanCandidate weigh(const PlanSetting& s, int rank = 0, Trace* trace = nullptr);
  // False where parameters, gradients and moments alone are more than a rank may use; costs nothing.
  bool may_fit(const PlanSetting& s);
  i64 n_parameters();
  i64 n_trained();     // of them, those that have gradients
  i64 n_with_state();  // and those that have moments

 private:
  // Bytes of this rank's rows of every (trained) parameter, dim 0 of the mp-local tensor cut over dp.
  i64 sharded_bytes(const PlanSetting& s, int rank, bool trained_only);
  // The largest set of parameters that is gathered at a time: a block of the model, or one tensor outside of
  // the blocks.
  i64 largest_block(const PlanSetting& s, int rank, i64* blocks);
  void shard_state(const PlanSetting& s, int rank, RankMemory& memory, Trace& trace);

  const PlanRequest& request_;
  std::map<int, ShardedSpecs> specs_;
  i64 n_parameters_ = -1, n_trained_ = -1;
};

// The rows of a step on dp replicas; nothing where a replica would get no row.
std::optional<PlanSetting> with_batches(const PlanRequest& request, const Mesh& mesh,
                                        std::optional<i64> per_device);

// What the job leaves open, chosen: mp inside a host before mp across hosts, no recompute before recompute,
// the least n_model_shards, the largest micro-batch. `next`: the first larger setting that does not fit.
// Nothing fits: the setting that lacks least.
PlanCandidate search_setting(const PlanRequest& request, Weigher& weigher, StateSharding sharding,
                             bool inside_hosts_only, std::optional<PlanCandidate>* next);

// The least n_model_shards on these machines; nothing where none fits.
std::optional<i64> smallest_shards(const PlanRequest& request, Weigher& weigher, const PlanSetting& like,
                                   i64 devices);

}  // namespace redco
