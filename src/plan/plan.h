// redco plan: the memory, collectives and FLOPs of a job on a mesh, before it runs; whether the job fits, and
// which setting would fit. The numbers come from a trace of the Trainer's own step (plan/trace.h), not from
// formulas about a model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generate/generation_settings.h"
#include "plan/devices.h"
#include "plan/trace.h"
#include "shard/rules.h"

namespace redco {

struct PlanRequest {
  Pipeline* pipeline = nullptr;  // with its model set; outlives the call
  std::string title;             // "preset gpt-j-6b", for people
  Machines machines;
  // The mesh, if the job sets it.
  std::optional<i64> n_ranks, n_model_shards;
  // Rows of a step and of a replica; nullopt: 1 per replica, or found by the search.
  std::optional<i64> global_batch, per_device;
  bool per_device_assumed = false;    // per_device follows from other settings of the job
  i64 length = 1, target_length = 1;  // of the longest rows; see BatchShape
  std::optional<bool> recompute;
  bool search = false;  // finds the best setting for open values that fits the machines
  std::vector<CustomRule> rules;
  bool strict = false;
  StepOptions step;  // with the sharding of its state
  CheckpointSettings checkpoint{};
  bool buddy = false;  // fault.buddy
  // Answers that a replica generates together; nullopt: as many as rows of a micro-batch.
  std::optional<i64> answer_batch;
  std::optional<GenerationSettings> evaluation;  // of the answers that evaluations generate; nullopt: none
  ComputeDType compute = ComputeDType::fp32;
  std::vector<std::string> assumed;        // sentences about what was assumed
  std::shared_ptr<const CostModel> model;  // of the machines' speed; null: no time is predicted
};

constexpr i64 kMostDevices = 4096;

// Bytes of one rank.
struct RankMemory {
  i64 parameters = 0, gradients = 0, optimizer = 0;
  i64 activations = 0;  // the arena's high-water mark minus the three above
  i64 buffers = 0;      // staging of collectives
  i64 checkpoint = 0;   // the copy of a background save
  i64 buddy = 0;        // buddy checkpoints that it keeps, in shared memory
  i64 rollouts = 0;     // what generating answers between the steps needs beyond a step
  i64 base = 0;         // the process itself: program, libraries, their tables
  i64 total() const {
    return parameters + gradients + optimizer + activations + rollouts + buffers + checkpoint + buddy + base;
  }
};

struct PlanCollective {
  std::string kind, axis, where;
  i64 count = 0;
  i64 bytes = 0;  // tensor bytes that one rank passes in all calls
};

// One configuration of a run.
struct PlanSetting {
  Mesh mesh;
  i64 global_batch = 1, per_device = 1;
  bool recompute = false;
  StateSharding sharding = StateSharding::none;
};
struct PlanCandidate {
  PlanSetting setting;
  RankMemory memory;  // of the fullest rank
  i64 limit = 0;      // bytes that a rank may use
  bool fits() const { return memory.total() <= limit; }
  bool crosses = false;  // mp groups span hosts
  i64 crossing_bytes = 0;
};

struct PlanReport {
  std::string title, machines;
  PlanSetting setting;
  i64 n_parameters = 0, n_trained = 0, length = 0, accumulation = 1;
  Sharding sharding;
  RankMemory memory;           // of the fullest rank
  i64 smallest_total = 0;      // of the emptiest rank
  i64 memory_limit = 0;        // bytes that one rank may use
  Machines::Share tightest;    // the host that sets this limit
  i64 ranks_per_host = 1;      // of the fullest host
  bool shared_memory = false;  // the ranks of a host share its memory
  bool fits = false;
  std::optional<i64> smallest_n_model_shards;
  // If the job doesn't fit: how many devices like these (hosts, where the ranks of a host share its memory)
  // hold one copy of the model. None: not even kMostDevices.
  std::optional<i64> devices_needed;
  std::string why_batch;                    // why per_device has its value
  std::string learning_rate{};              // its schedule
  std::vector<PlanCollective> collectives;  // of the fullest rank
  std::vector<LedgerLine> lines;            // its ledger
  double flops = 0;                         // of a step, all ranks; may exceed i64
  double flops_of_rank = 0;                 // of the busiest rank
  i64 crossing_bytes = 0;                   // of mp groups, from host to host, all ranks
  std::optional<PredictedTime> time;        // of a step, on the slowest rank
  std::string speeds;                       // where the machine's speeds come from, or how to get them
  double tokens_per_s() const {             // of a step's rows; 0 without a time
    return time && time->total > 0 ? static_cast<double>(setting.global_batch * length) / time->total : 0;
  }
  std::vector<std::string> warnings, notes;
  // If the memory is short on several model shards: the same setting with sequence parallelism.
  std::optional<PlanCandidate> with_sequence_parallel;
  // After a search: the first larger setting that does not fit, and one with sharded state that fits inside
  // the hosts.
  std::optional<PlanCandidate> next, alternative;
};

// UsageError if the ranks are not divisible into a mesh, or if custom rules add collectives and `strict` is
// set.
PlanReport make_plan(const PlanRequest& request);

}  // namespace redco
