// Trainer: epochs, steps, evaluation, checkpoints, logs. The one training loop; pipelines have none.
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "train/checkpoint.h"
#include "train/eval_outputs.h"
#include "train/pipeline.h"
#include "train/step.h"
#include "train/train_settings.h"

namespace redco {

// What the job hands to training.
struct TrainJob {
  Pipeline* pipeline = nullptr;  // with model, tokenizer and data set
  ParamTree* params = nullptr;   // initialized or loaded; trained in place
  TrainSettings train;
  EvalSettings eval;
  CheckpointSettings checkpoint;
  i64 global_batch_size = 1, per_device_batch_size = 1;
  bool group_by_length = false;  // see StepOrder
  std::string pipeline_name, workdir;
  std::string unit = "tokens";    // what the first term's weight counts
  std::string generation_config;  // saved with each checkpoint
  std::string chat_template;      // the same, where the data have another than the tokenizer
  std::string adapter_config;     // adapters are trained: what CheckpointContents wants of it
  std::string job_yaml;           // the resolved job, saved with each checkpoint; "": none
  // Called on the first rank with the checkpoint that the run resumes; throws where the job has changed too
  // much.
  std::function<void(const std::string& checkpoint)> on_resume;
  std::function<void()> on_begin;  // called on the first rank when the workdir is this run's, before step 1
  i64 check_replicas_every = 0;    // steps between two checks that replicas are equal; 0: none
  i64 threads_per_rank = 1;
  std::string isa;
  bool progress = true;
};

struct TrainResult {
  i64 steps = 0;                             // updates the parameters have seen
  double last_loss = NAN;                    // NaN where no step was left to make
  std::map<std::string, double> evaluation;  // the last one's metrics; empty without evaluation data
  bool interrupted = false;                  // a signal asked for a save and an end
  bool saved = false;                        // ... and a checkpoint was saved since the run began
  bool evaluation_pending = false;           // ... and the last step's evaluation is still to be made
  bool stopped_early = false;                // train.early_stopping did
};

// A request to end (base/signals.h) is voted on at each step's end, and polled between the batches of
// evaluations; it saves and ends. An evaluation that is due or running then is left to the resumed run.
// Collective. Throws Error(non_finite) where a loss or gradient isn't finite and the policy says stop.
TrainResult train(const TrainJob& job);

// Metrics over all of `data`, exactly: no row is dropped or counted twice. None where the pipeline evaluates
// no loss. Throws Error(interrupted) on all ranks where one was asked to end.
std::map<std::string, double> evaluate(Pipeline& pipeline, const ParamTree& params, const Dataset& data,
                                       i64 per_device_batch_size, i64 max_batches = -1);

struct Evaluation {
  std::map<std::string, double> metrics;
  EvalOutputs outputs;
};
// The same with metrics of the pipeline's answers, where it measures them or n_outputs of them are to be
// kept. little: as few examples as show that it works.
Evaluation evaluate_with_outputs(Pipeline& pipeline, const ParamTree& params, const Dataset& data,
                                 i64 per_device_batch_size, i64 n_outputs, bool little = false);

}  // namespace redco
