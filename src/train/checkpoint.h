// A training run's checkpoint: parameters, optimizer, state, tokenizer, in one published folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ckpt/publish.h"
#include "ckpt/stored_type.h"
#include "optim/optimizer.h"
#include "train/pipeline.h"

namespace redco {

// What a resumed run must know beside tensors: training/state.json.
struct TrainState {
  i64 step = 0;  // updates made
  i64 optimizer_steps = 0;
  std::map<std::string, i64>
      group_steps;                       // updates of each parameter group: fewer where its period is longer
  std::map<std::string, double> best;    // metric -> its best value so far, finite
  std::map<std::string, i64> best_step;  // and after which step that was
  // What train.early_stopping waits for: its metric, the best value that counted, the step of that, and the
  // evaluations since.
  struct Waiting {
    std::string metric;
    std::optional<double> best;
    i64 best_step = 0, evaluations = 0;
  };
  std::optional<Waiting> waiting;
  // The step's evaluation was due and has not been made: a resumed run makes it first.
  bool pending_evaluation = false;
  // What must be the same when the run goes on, for the resumed run to be the run that never stopped.
  i64 seed = 0, global_batch_size = 0, n_examples = 0;
  std::string optimizer = "adamw";
  bool stateless = false;  // the optimizer keeps nothing beside parameters; not in the file
  std::string data_fingerprint, tokenizer_fingerprint, pipeline;
  // The folder that relative paths of training/job.yaml begin in; "" in checkpoints of older versions.
  std::string started_in;
  // What may differ with a word: bits can change.
  i64 threads_per_rank = 0, dp = 0, mp = 0;
  std::string compute_dtype, isa;
  std::string pipeline_state = "{}";
};
std::string to_json(const TrainState& s);
bool is_json(const std::string& text);
TrainState parse_state(const std::string& text, const std::string& where);

struct CheckpointContents {
  const Model* model = nullptr;                // may be null: a pipeline with parameters of its own
  std::map<std::string, std::string> aliases;  // of the parameters
  const Tokenizer* tokenizer = nullptr;
  const ParamTree* params = nullptr;
  Optimizer* optimizer = nullptr;  // null: not saved
  std::string generation_config;   // "" is none
  std::string chat_template;       // in place of the tokenizer's own; "" is that
  std::string job_yaml;            // training/job.yaml, the resolved job; "" is none
  std::string model_folder;        // whose preprocessor_config.json goes along; "" is none
  // adapter_config.json: what is trained is saved alone, as PEFT's adapter. "": the whole model is.
  std::string adapter_config;
  ckpt::RunIdentity run;  // that saves it; on the first rank
  ckpt::StoredType dtype = ckpt::StoredType::f32;
};

// Writes and publishes workdir/checkpoints/step-N; moves `last`, and best-METRIC for each metric named;
// removes old ones. Collective: an error is thrown on all ranks, and then the older checkpoints are still
// there. Once the checkpoint is published, failures (pointers, removals) are warnings. IoError, too, where
// the workdir was moved or removed.
void save_checkpoint(const std::string& folder, const CheckpointContents& what, const TrainState& state,
                     const std::vector<std::string>& best_of, i64 keep_last);

// Loads what save_checkpoint wrote, onto any mesh. Collective.
void load_checkpoint_tensors(const std::string& checkpoint, const CheckpointContents& what,
                             ParamTree& params);

// The model's config.json with the type of the weights as they are saved.
std::string saved_config(const Model& model, ckpt::StoredType dtype);

// Algorithm versions a run depends on: rng, shuffle, packing, init.
std::map<std::string, i64> algorithm_versions();

}  // namespace redco
