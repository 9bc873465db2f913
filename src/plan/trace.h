// One optimizer step on meta tensors: the Trainer's code and allocations, without storage.
#pragma once

#include <vector>

#include "nn/cache_dtype.h"
#include "plan/timeline.h"
#include "tensor/ledger.h"
#include "train/step.h"
#include "train/train_settings.h"

namespace redco {

// Answers that a replica generates together in an evaluation.
struct PlannedAnswers {
  i64 rows = 0;                // with beams; 0: no evaluation generates answers
  i64 encoded = 0;             // tokens of a row in the encoder; 0: no such encoder
  i64 prompt = 1, length = 2;  // tokens of a row in the decoder, without and with its answer
  CacheDType cache = CacheDType::fp32;
};

// One rank of a mesh and the shapes of a step.
struct TraceRequest {
  Pipeline* pipeline = nullptr;
  Mesh mesh;
  int rank = 0;
  std::vector<Layout> layouts;  // of pipeline->params()
  i64 global_batch = 1, per_device = 1;
  i64 length = 1, target_length = 1;
  StepOptions step;
  i64 rollout_rows = 0;  // answers that this replica samples together between the steps
  PlannedAnswers evaluation{};
  CheckpointSettings checkpoint{};
  std::vector<int> buddy_hosts{};  // the host of each rank, with buddy checkpoints; empty: without
  ComputeDType compute = ComputeDType::fp32;
  // Predicts the time of the step on these machines; null: no prediction.
  const CostModel* model = nullptr;
  const Machines* machines = nullptr;
};

struct Trace {
  std::vector<LedgerLine> lines, collectives;  // of one step
  double flops = 0;                            // exceeds i64 for large models and batches
  // Bytes of tensors on this rank.
  i64 parameters = 0, gradients = 0, optimizer = 0;
  i64 high_water = 0;          // of the whole arena, in a step
  i64 answers_high_water = 0;  // of the whole arena, while answers are generated; 0: none are
  // Of a background save, on the rank that writes the most.
  i64 checkpoint = 0;
  i64 buddy = 0;       // of the buddy checkpoints that this rank keeps
  PredictedTime time;  // of a step after many others; 0 without a model
};

// Runs TrainStep. For steps of more than four micro-batches it traces one and two of them, and extrapolates.
Trace trace_step(const TraceRequest& request);

}  // namespace redco
