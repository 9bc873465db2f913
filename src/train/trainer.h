// Trainer: epochs, steps, evaluation, checkpoints, logs. The only training loop; pipelines have none.
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "pipeline/pipeline.h"
#include "train/checkpoint.h"
#include "train/eval_outputs.h"
#include "train/step.h"
#include "train/train_settings.h"

namespace redco {

// Input of train().
struct TrainJob {
  Pipeline* pipeline = nullptr;  // with model, tokenizer and data set
  ParamTree* params = nullptr;   // initialized or loaded; trained in place
  TrainSettings train;
  EvalSettings eval;
  CheckpointSettings checkpoint;
  ParallelSettings parallel;   // with shard_parameters, `params` are sharded too
  DType weights = DType::f32;  // StepOptions
  i64 global_batch_size = 1, per_device_batch_size = 1;
  bool group_by_length = false;  // see StepOrder
  std::string pipeline_name, workdir;
  std::string slurm_job;            // RunRecord::slurm_job
  std::string generation_config;    // saved with each checkpoint
  std::string chat_template;        // likewise, if the data use another template than the tokenizer's
  std::string adapter_config;       // if adapters are trained, see CheckpointContents
  std::string job_yaml;             // the resolved job, saved with each checkpoint; "": none
  std::optional<FrozenModel> base;  // see TrainState
  std::map<std::string, FrozenModel> frozen_models;  // of `models:`, see TrainState
  std::vector<PluginRecord> plugins;                 // see TrainState
  // Called on the first rank with the checkpoint that the run resumes from; throws if the job changed too
  // much.
  std::function<void(const std::string& checkpoint)> on_resume;
  // Called on the first rank before the first step, when the workdir belongs to this run. The run trains from
  // `step` to `total`.
  std::function<void(i64 step, i64 total, i64 start)> on_begin;
  i64 check_replicas_every = 0;  // steps between two checks of the replicas; 0: no checks
  std::string kept_memory;  // the key of the job's keepers (base/kept_memory.h); "": no buddy checkpoints
  i64 buddy_steps = 50;     // steps between them
  i64 threads_per_rank = 1;
  std::string isa;
  bool progress = true;
};

struct TrainResult {
  i64 steps = 0;                             // total updates of the parameters
  double last_loss = NAN;                    // NaN if no step was left
  std::map<std::string, double> evaluation;  // metrics of the last evaluation; empty without evaluation data
  bool interrupted = false;                  // a signal requested a save and the end
  bool saved = false;                        // ... and a checkpoint was saved since the run began
  bool evaluation_pending = false;           // ... and the last step's evaluation is pending
  bool stopped_early = false;                // train.early_stopping ended the run
};

// The ranks vote on a request to end (base/signals.h) at the end of each step and poll it between the batches
// of evaluations; then the run saves and ends. The resumed run makes an evaluation that was due or running.
// Collective. Throws Error(non_finite) if a loss or gradient isn't finite and the policy is stop.
TrainResult train(const TrainJob& job);

}  // namespace redco
