// Pipeline: an algorithm as three functions written for one device: collate, loss, predict. They know nothing
// of ranks.
//
// A step is one optimizer update. The Trainer collates all micro-batches of a step and sums every term's
// weight over the replicas once. Then it differentiates (sum of a term) / (its global weight) for each
// micro-batch. So a mean over tokens is exact for any distribution of the tokens. loss() sees one micro-batch
// of all replicas as one global batch.
//
// A user's pipeline is a shared object that includes redco.h and ends with REDCO_PIPELINE(Class); `pipeline:
// ./x.so` selects it.
#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/user_code.h"
#include "models/model.h"
#include "optim/make_optimizer.h"
#include "pipeline/example.h"
#include "pipeline/pipeline_settings.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// One source of a job's training or evaluation data.
struct DataRequest {
  bool evaluation = false;
  std::vector<std::string> files;  // as in the job
  std::string weights_folder;      // see PipelineSettings
  std::string cache;               // folder for indexes and other derived files
  bool skip_bad = false;           // data.skip_bad
  i64 max_length = 0;              // tokens per row: data.max_length, else the model's; 0: both unknown
  // Of all that an example may depend on besides the files: pipeline, settings, tokenizer.
  std::string fingerprint;
};

// The global shape of one micro-batch, and this replica's rows of it.
struct BatchShape {
  i64 rows = 0;
  Range mine;             // this replica's rows
  i64 length = 0;         // of the longest row
  i64 target_length = 0;  // the longest Dataset::target_length
};

struct Batch {
  std::map<std::string, Tensor> fields;
  std::map<std::string, double> weights;  // of this replica's rows, for each term
  BatchShape shape;
  const Tensor& operator[](const std::string& name) const;
};

// Answers that the model gives between the steps of a training. A row is a prompt and its answer.
struct PlannedRollouts {
  i64 answers = 0;  // in an epoch, of all replicas
  i64 max_new_tokens = 0;
};

// A named sum (not a mean) over the micro-batch: a one-element tensor.
struct LossTerm {
  std::string name;
  Tensor sum;
};
using LossTerms = std::vector<LossTerm>;

struct StepContext {
  ApplyOptions apply;  // in training, dropout is on
  i64 step = 0, epoch = 0;
  i64 total_steps = 0;  // of the whole run; 0: no training, or the first source(), whose size determines it
  bool logged = false;  // in after_step(): metrics.jsonl has a line of this step
  // Sets a name for repeated use of the same parameters' random draws (inner steps, PPO epochs), until the
  // result is destroyed.
  std::unique_ptr<Restore<SharedText>> scope(const std::string& name, i64 k) const;
  // The first rank's value of a one-element tensor. loss() and predict() may branch on data only through
  // this.
  double agree(const Tensor& value) const;
  // If set, predict() of one example passes the answer's text on piece by piece, on the first rank of the mp
  // group.
  std::function<void(std::string_view piece)> on_text;
  // Adds `part`, without derivative, to a sum over all micro-batches of the step, which after_update() reads
  // in `sums`: how often each code of a codebook is used, statistics of a batch norm. For loss() and embed()
  // in training; elsewhere it has no effect. Not for a function that runs again (recompute).
  void add_sum(const std::string& name, const Tensor& part) const;
  std::shared_ptr<std::map<std::string, Tensor>> sums{};  // null: nothing is summed
};

// A part of the job that a job may lack. The use of an absent one is a UsageError that names the setting.
[[noreturn]] void missing_part(const Model* model);
[[noreturn]] void missing_part(const Tokenizer* tokenizer);
[[noreturn]] void missing_part(const Dataset* data);
template <class T, class Pointer = const T*>
class JobPart {
 public:
  JobPart() = default;
  template <std::convertible_to<Pointer> P>
  JobPart(P part) : part_(std::move(part)) {}  // NOLINT: as a pointer
  operator Pointer() const { return part_; }   // NOLINT
  explicit operator bool() const { return part_ != nullptr; }
  const T& operator*() const {
    if (!part_) missing_part(static_cast<const T*>(nullptr));
    return *part_;
  }
  const T* operator->() const { return &**this; }

 private:
  Pointer part_{};
};
// The job's training data: absent without data.train.
using JobData = JobPart<Dataset, std::shared_ptr<const Dataset>>;

// A model of the job's section `models:`. Its parameters are params.part(name) of the tree that loss() and
// predict() get; those of a frozen one are constants.
struct NamedModel {
  JobPart<Model> model;
  JobPart<Tokenizer> tokenizer;
  bool frozen = true;
  DType weights = DType::f32;  // the type of its matrices in memory, as model.weight_dtype
};

// Parameters that are updated together.
struct ParamGroup {
  std::string name;
  std::function<bool(const std::string&)> has;  // by parameter name
  std::string term;                             // the loss term that the group minimizes; "": the first
  // Further terms and their factors: the group minimizes mean(term) + sum of factor x mean of each. A mean is
  // the sum of a term over all ranks and micro-batches, divided by the sum of its weights.
  std::vector<std::pair<std::string, double>> plus = {};
  double learning_rate_factor = 1;
  // If set, the group's learning rate in a step (counted from 0), from that of the job's schedule.
  std::function<double(i64 step, double of_job)> learning_rate;
  // If set, the largest norm of this group's gradient. The other groups are clipped together, by
  // train.clip_grad_norm.
  std::optional<double> clip_grad_norm;
  // If set, the optimizer of this group; otherwise that of the job.
  std::optional<OptimizerSettings> optimizer;
  i64 period = 1;  // updated in steps 0, period, 2 period, ...
  // If set, the group has no gradient: each parameter follows the one that `ema_of` names, p = tau * source +
  // (1 - tau) * p (target networks of DDPG), and starts as its copy.
  std::function<std::string(const std::string&)> ema_of;
  double tau = 0;
  std::function<double(i64 step)> tau_of{};  // if set, in place of tau: of a step, counted from 0
};

// What a step reports besides its loss terms: numbers for metrics.jsonl and TensorBoard, and arrays whose
// histograms TensorBoard shows.
struct StepLog {
  std::map<std::string, double> values;
  std::map<std::string, std::vector<float>> histograms;
};

class Pipeline {
 public:
  virtual ~Pipeline() = default;

  // --- the three functions ---

  // This replica's rows -> tensors of the global shape, and each term's weight. Without examples on a meta
  // context: the plan's batch.
  virtual Batch collate(std::span<const Example> mine, const BatchShape& shape) const = 0;
  // In training, the parameters are on the tape; in evaluation, they aren't. A loss that contains gradients
  // watches their inputs itself (Tensor::watched).
  virtual LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const = 0;
  // One JSON text per example of this replica, in order. Runs on the replica's mp group, whose ranks all have
  // the same `examples`.
  virtual std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                           const StepContext& ctx) const;
  // If false, predict() gets batch_size examples per call. If true, it gets all examples and forms batches
  // itself, so a new example replaces one whose answer ended early.
  virtual bool predicts_any_number() const { return false; }
  // The settings, besides those of predict:, that change the answers of predict(): a JSON object. With
  // others, `redco predict` does not continue a predictions file. Default: the job's `settings:`.
  virtual std::string prediction_settings() const;

  // --- data ---

  // Opens a source of the training or evaluation data, on all ranks together: with read_jsonl() or
  // read_records() (pipeline/records.h), or with open_indexed() (pipeline/indexed_data.h), which runs the
  // work of the first rank. Null: tokenized texts as pipeline lm reads them (pipeline/lm_dataset.h).
  virtual std::shared_ptr<const Dataset> open(const DataRequest& request) {
    (void)request;
    return nullptr;
  }
  // True if open() may have other data: without data.train or data.eval it is then called with no files,
  // and null means that there are none.
  virtual bool opens_own_data() const { return false; }
  // Converts a line of predict.input, or {"prompt": text} of predict.prompt, to an example for predict(); the
  // job sets its ordinal and id. ContentsErrors begin with `where`. nullopt: prompts as in pipeline lm.
  virtual std::optional<Example> request(const std::string& json, const std::string& where) const {
    (void)json, (void)where;
    return std::nullopt;
  }

  // True if request() may be called on several threads at the same time, none a rank. Asked on the rank's
  // thread, before the first request.
  virtual bool concurrent_requests() const { return false; }

  // --- optional ---

  // Small files that a checkpoint has besides the model's, by their paths in its folder: how the model is
  // used (modules.json of sentence-transformers).
  virtual std::map<std::string, std::string> model_files() const { return {}; }

  // The parameters of the model, or of the algorithm alone if the job has no model.
  virtual const ModelParams& params() const;
  // Parameters besides the model's: value heads, projections. They begin with ParamSpec::init where the
  // weights' folder has none, and are saved in models/extra/ of a checkpoint, so that transformers reads the
  // model's files unchanged. UsageError if the model has a parameter of the same name.
  virtual ModelParams extra_params() const { return {}; }
  // Parameters of a frozen model of `models:` that its training declared in extra_params(): the value head
  // of a reward model. They are read from models/extra/ of its folder, which
  // must have them all, and are in params.part(name).
  virtual ModelParams extra_params_of(const std::string& name) const {
    (void)name;
    return {};
  }
  // The models of `models:` that predict() uses; the command predict loads no others.
  virtual std::vector<std::string> predicts_with() const { return {}; }
  // Default: one group that minimizes the first term, with all trained parameters (no buffers, no frozen
  // ones). Parameters in no group don't change.
  virtual std::vector<ParamGroup> groups() const;
  // New values of trained parameters and of buffers after an update, by name: a clamp, a projection, running
  // statistics (of ctx.sums). `params` are the updated parameters in fp32, off the tape; moving averages
  // follow the new values. The optimizer's state stays. The values have the parameters' shapes. Called after
  // each step that updates; default: none.
  virtual std::map<std::string, Tensor> after_update(const ParamTree& params, const StepContext& ctx) const {
    (void)params, (void)ctx;
    return {};
  }
  // Called after each step whose update was made, on all ranks together, off the tape. `means` are those of
  // the step's terms. Steps that metrics.jsonl shows (ctx.logged) write the result, the same on all ranks;
  // that of others is ignored. Default: nothing.
  virtual StepLog after_step(const ParamTree& params, const std::map<std::string, double>& means,
                             const StepContext& ctx) {
    (void)params, (void)means, (void)ctx;
    return {};
  }
  // The examples of epoch ctx.epoch; every epoch has the same number. ctx.step is the epoch's first step.
  // Default: the training data, of that epoch. Called on all ranks together, at the start of each epoch and
  // again when a run resumes inside an epoch. Examples that depend on the current parameters (rollouts) can't
  // be repeated then: keep them in state(), see examples_to_json().
  virtual std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx);
  // What source() samples from the model in an epoch (sample() of pipeline/rollouts.h), for the memory in a
  // plan. Default: nothing.
  virtual PlannedRollouts planned_rollouts() const { return {}; }
  // Values about the examples of the last source() (mean return of the episodes), the same on every rank.
  // metrics.jsonl has them next to the losses.
  virtual std::map<std::string, double> notes() const { return {}; }
  // The evaluation data; empty: none. Default: the job's. Called once, on all ranks together.
  virtual std::vector<EvalSet> evaluation() { return eval_sets; }
  // What the weight of the first term counts, for the log and metrics.jsonl ("tokens" per second).
  virtual std::string unit() const { return "examples"; }
  // False if an evaluation consists of predict() only (episodes): collate() and loss() then get no examples
  // of evaluation().
  virtual bool evaluates_loss() const { return true; }
  // Evaluation metrics from the means of the terms. Default: the loss of the first term.
  virtual std::map<std::string, double> metrics(const std::map<std::string, double>& term_means) const;
  // With eval.generation or measures_outputs(), an evaluation also calls predict() with examples of each
  // set. output() is the JSON object to save for an answer: the id and the prediction, unless the
  // pipeline adds more (the prompt, the reference).
  virtual std::string output(const Example& example, const std::string& prediction) const;
  // Metrics from these outputs, in the order of the examples; reported together with metrics(). Called on the
  // first rank, with a whole set, if measures_outputs(). Otherwise only the outputs to save are
  // generated.
  virtual bool measures_outputs() const { return false; }
  virtual std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                                       const std::vector<std::string>& outputs) const {
    (void)examples, (void)outputs;
    return {};
  }
  // Results of such an evaluation besides numbers: a JSON object, saved as eval_outputs/step-N.details.json.
  // `redco report` shows "confusion_matrix": {"classes": [name, ...], "counts": [[n, ...], ...]}, a row for
  // each true class. Called after output_metrics(), with the same arguments; "": nothing.
  virtual std::string output_details(std::span<const Example> examples,
                                     const std::vector<std::string>& outputs) const {
    (void)examples, (void)outputs;
    return "";
  }
  // State besides parameters and optimizer, saved in checkpoints (replay buffers, counters). JSON text.
  virtual std::string state() const { return "{}"; }
  virtual void restore(const std::string& json) { (void)json; }

  // All parameters of the job: params(), extra_params(), and those of `models`, with their owners set. Every
  // parameter that params() adds to the model's counts as an extra one.
  ModelParams all_params() const;
  // groups(), checked: UsageError if a name is missing or used twice, or a number is out of range.
  std::vector<ParamGroup> checked_groups() const;
  // evaluation(), checked: UsageError if a set has no data.
  std::vector<EvalSet> checked_evaluation();
  // UsageError if the job has no model of that name.
  const NamedModel& named_model(const std::string& name) const;

  // Set by the job before any call.
  JobPart<Model> model;  // null: the job has no model
  JobPart<Tokenizer> tokenizer;
  std::map<std::string, NamedModel> models;
  // The shared object and the place of its setting, "./mine.so (job.yaml:1:11)"; "": a built-in pipeline.
  std::string origin;
  // Of a Python script and of the modules in its folder that it imports; "": `origin` is all of the code.
  std::string code_hash;
  std::shared_ptr<const PipelineSettings> settings = std::make_shared<PipelineSettings>();
  JobData train_data;
  std::vector<EvalSet> eval_sets;
};

// --- helpers for sources ---

// Examples in memory.
class ExampleList : public Dataset {
 public:
  // fingerprint: of the settings that produce the examples, the same in a resumed run. The length of an
  // example is that of its longest field of ids.
  // order: if given, the steps take the examples in this order, which may repeat them; no epoch shuffles it.
  ExampleList(std::vector<Example> examples, std::string fingerprint, std::vector<i64> order = {})
      : examples_(std::move(examples)), fingerprint_(std::move(fingerprint)), order_(std::move(order)) {
    for (const i64 i : order_)
      REDCO_CHECK(i >= 0 && i < static_cast<i64>(examples_.size()),
                  "the order of an ExampleList has the number {}; "
                  "expected 0 to {}",
                  i, static_cast<i64>(examples_.size()) - 1);
  }
  i64 size() const override { return static_cast<i64>(order_.empty() ? examples_.size() : order_.size()); }
  i64 length(i64 i) const override;
  Example get(i64 i) const override { return examples_[place(i)]; }
  bool ordered() const override { return !order_.empty(); }
  std::string fingerprint() const override { return fingerprint_; }
  Reading reading() const override { return Reading::threads; }
  const std::vector<Example>& examples() const { return examples_; }

 private:
  i64 place(i64 i) const { return order_.empty() ? i : order_[i]; }
  std::vector<Example> examples_;
  std::string fingerprint_;
  std::vector<i64> order_;
};
// An ExampleList whose steps take the examples in their order: lots that were sampled, rounds of clients.
std::shared_ptr<const Dataset> ordered_examples(std::vector<Example> examples, std::string fingerprint);
// Examples as JSON for state(), without loss. Values must be finite. Reading throws ContentsError.
std::string examples_to_json(const std::vector<Example>& examples);
std::vector<Example> examples_from_json(const std::string& json);

// --- helpers for collate ---

// Tensors of a field, sharded along rows over dp: [rows, length] ids, padded with `fill`; [rows, ...] ids or
// values, of which every example has numel(row_shape). A row_shape {} gives [rows].
Tensor id_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field, i32 fill);
Tensor fixed_id_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field,
                     const Shape& row_shape);
Tensor value_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field,
                  const Shape& row_shape);

// --- users' shared objects ---

// Loads `path`, a shared object or a Python script (pipeline/load_python.h), and creates its pipeline.
// UsageError: no such file, not a pipeline, built against other
// headers than this library (pipeline/abi.h).
std::unique_ptr<Pipeline> load_pipeline(const std::string& path);

// Calls a function of the pipeline's author. Errors of a user's pipeline name the function and the shared
// object, as rethrow_from_user() makes them; those of redco's pipelines are unchanged.
UserCode pipeline_code(const std::string& origin, const char* function);
template <class F>
auto in_pipeline(const Pipeline& pipeline, const char* function, F&& f) {
  return in_user_code(pipeline_code(pipeline.origin, function), std::forward<F>(f));
}

}  // namespace redco
