// A training checkpoint: parameters, optimizer, state and tokenizer in one published folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ckpt/publish.h"
#include "ckpt/stored_type.h"
#include "optim/optimizer.h"
#include "pipeline/pipeline.h"

namespace redco {

// State of train.early_stopping: the metric, the best value that counted, its step, and the number of
// evaluations since.
struct EarlyStoppingState {
  std::string metric;
  std::optional<double> best;
  i64 best_step = 0, evaluations = 0;
};

// A model whose weights are not saved: frozen in `models:`, or the base of adapters.
struct FrozenModel {
  std::string from;         // its folder, or "preset gpt2"
  std::string fingerprint;  // of config and weights
};

// A shared object that the training had: of `plugins`, or the pipeline's.
struct PluginRecord {
  std::string path;         // as in the job, relative to started_in
  std::string fingerprint;  // of its bytes
  std::vector<std::string> families;
};

// State of a run besides its tensors: training/state.json.
struct TrainState {
  i64 step = 0;  // optimizer steps
  i64 optimizer_steps = 0;
  std::map<std::string, i64>
      group_steps;  // updates of each parameter group; fewer than `step` where its period is above 1
  std::map<std::string, double> best;    // metric -> its best value so far, finite
  std::map<std::string, i64> best_step;  // and the step of that value
  std::optional<EarlyStoppingState> waiting;
  // The evaluation of this step was due but did not happen. A resumed run makes it first.
  bool pending_evaluation = false;
  // A resumed run must have the same values, otherwise it would not equal the uninterrupted run.
  i64 seed = 0, global_batch_size = 0, n_examples = 0;
  std::string optimizer = "adamw";
  bool stateless = false;  // the optimizer has no state besides the parameters; not in the file
  std::string data_fingerprint, tokenizer_fingerprint, pipeline;
  // The folder that relative paths of training/job.yaml begin in; "" in checkpoints of older versions.
  std::string started_in;
  // Values that may differ, with a note in the log: results can differ in their last bits.
  i64 threads_per_rank = 0, dp = 0, mp = 0;
  std::string compute_dtype, isa;
  // A resumed run must have models of the same fingerprints; their folders may have moved.
  std::optional<FrozenModel> base;  // of the adapters that are trained
  std::map<std::string, FrozenModel> frozen_models;
  std::vector<PluginRecord> plugins;  // changed ones are reported
  std::string pipeline_state = "{}";
};
std::string to_json(const TrainState& s);
bool is_json(const std::string& text);
// The result of Pipeline::state(). UsageError: it is no JSON.
std::string state_of(const Pipeline& pipeline);
TrainState parse_state(const std::string& text, const std::string& where);

struct CheckpointContents {
  const Model* model = nullptr;                // null: the pipeline has its own parameters
  std::map<std::string, std::string> aliases;  // of the parameters
  std::map<std::string, NamedModel> models;    // of `models:`; the trained ones are saved
  const Tokenizer* tokenizer = nullptr;
  ParamTree params;       // fp32
  bool resumable = true;  // a run can resume from it: saves `optimizer`, and what `dtype` rounds
  std::vector<Optimizer::State> optimizer;
  std::string generation_config;                   // "": none
  std::string chat_template;                       // replaces the tokenizer's own template; "": not replaced
  std::string job_yaml;                            // training/job.yaml, the resolved job; "": none
  std::string weights_folder;                      // source of preprocessor_config.json; "": none
  std::map<std::string, std::string> model_files;  // Pipeline::model_files()
  // adapter_config.json. If set, only the trained adapter is saved, in PEFT's format. "": the whole model is
  // saved.
  std::string adapter_config;
  ckpt::RunIdentity run;  // the run that saves; set on the first rank
  ckpt::StoredType dtype = ckpt::StoredType::f32;
};

// The folders in a checkpoint for what is not the job's model: models/extra holds the parameters of a
// pipeline besides the model's (without config.json), models/NAME a trained model of `models:` (a Hugging
// Face folder).
std::string part_folder(const std::string& owner);

// Writes and publishes workdir/checkpoints/step-N, updates `last` and best-METRIC for each given metric, and
// removes old checkpoints. Collective: an error is thrown on all ranks, and the older checkpoints are then
// unchanged. After the checkpoint is published, failures (pointers, removals) are warnings. IoError also if
// the workdir was moved or removed.
void save_checkpoint(const std::string& folder, const CheckpointContents& what, const TrainState& state,
                     const std::vector<std::string>& best_of, i64 keep_last);

// Whether a checkpoint has the tensors of an optimizer, or master weights.
bool has_optimizer_state(const std::string& checkpoint);

// Loads what save_checkpoint() wrote, onto any mesh. Collective.
void load_checkpoint_tensors(const std::string& checkpoint, CheckpointContents& what);

// The model's config.json with the data type of the saved weights.
std::string saved_config(const Model& model, ckpt::StoredType dtype);

// Versions of the algorithms that a run depends on: rng, shuffle, packing, init.
std::map<std::string, i64> algorithm_versions();

}  // namespace redco
