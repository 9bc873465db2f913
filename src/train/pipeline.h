// Pipeline: an algorithm as functions written for one device. collate, loss, predict; nothing in it mentions
// ranks.
//
// A step is one optimizer update. The Trainer collates all micro-batches of a step, sums every term's weight
// over replicas once, then differentiates (sum of a term) / (its global weight), micro-batch by micro-batch.
// So a mean over tokens is exact however tokens are spread. loss() sees one micro-batch of all replicas as
// one global batch.
//
// A pipeline of a user is a shared object with REDCO_PIPELINE(Class) at its end, named by `pipeline: ./x.so`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "tokenizers/tokenizer.h"
#include "train/pipeline_settings.h"

namespace redco {

// One example: ids and values by field. What the fields mean is between source() and collate().
struct Example {
  i64 ordinal = 0;  // its number in the data
  std::map<std::string, std::vector<i32>> ids;
  std::map<std::string, std::vector<float>> values;
  std::string text;
  std::string id;  // the name its source gives it, as JSON; "" is none
};

// The examples of an epoch or of an evaluation. Const and the same on every rank.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual i64 size() const = 0;
  // Length that decides the padding of a micro-batch (tokens); known on every rank without talking.
  virtual i64 length(i64 i) const = 0;
  // The same of what is to be written, where that is a sequence apart from what is read (encoder-decoder
  // models).
  virtual i64 target_length(i64 i) const {
    (void)i;
    return 0;
  }
  virtual Example get(i64 i) const = 0;
  // Changes when the data change: a resumed run must have the same.
  virtual std::string fingerprint() const = 0;
  // True where length() and get() may be called on a thread that is no rank: the next step's examples are
  // read while this one is computed.
  virtual bool concurrent() const { return false; }
  // True where steps take the examples as they stand: the order is the source's own and no epoch shuffles it.
  virtual bool ordered() const { return false; }
  // What there is, for people: "1437 images of 8 x 8 in 10 classes". May have several lines.
  virtual std::string describe() const { return ""; }
};

// What a job's data.train or data.eval ask for.
struct DataRequest {
  bool evaluation = false;
  std::vector<std::string> files;  // as the job gives them
  std::string model_folder;        // with files beside the weights (preprocessor_config.json); "": none
  std::string cache;               // folder for what is made of them once
  i64 max_length = 0;              // tokens of a row: data.max_length, else the model's; 0: neither is known
};

// The global shape of one micro-batch, and which of its rows this replica has.
struct BatchShape {
  i64 rows = 0;
  Range mine;             // this replica's rows
  i64 length = 0;         // the longest row's
  i64 target_length = 0;  // the same of Dataset::target_length
};

struct Batch {
  std::map<std::string, Tensor> fields;
  std::map<std::string, double> weights;  // of this replica's rows, by term
  BatchShape shape;
  const Tensor& operator[](const std::string& name) const;
};

// A named sum (not a mean) over the micro-batch: a one-element tensor.
struct LossTerm {
  std::string name;
  Tensor sum;
};
using LossTerms = std::vector<LossTerm>;

struct StepContext {
  ApplyOptions apply;  // train: dropout is on
  i64 step = 0, epoch = 0;
  // A name for repeated use of the same parameters' random draws (inner steps, PPO epochs); in force until
  // the result is destroyed.
  std::unique_ptr<Restore<std::string>> scope(const std::string& name, i64 k) const;
  // The first rank's value of a one-element tensor, the only way in which loss and predict may branch on
  // data.
  double agree(const Tensor& value) const;
  // Where somebody reads along, predict() of one example hands on its answer's text piece by piece, on the mp
  // group's first rank.
  std::function<void(std::string_view piece)> on_text;
};

// Parameters that are updated together.
struct ParamGroup {
  std::string name;
  std::function<bool(const std::string&)> has;  // by parameter name
  std::string term;                             // the loss term that it descends
  double learning_rate_factor = 1;
  i64 period = 1;  // updated in the steps 0, period, 2 period, ...
  // Not empty: no gradient; each parameter follows the one that `ema_of` names, p = tau * source + (1 - tau)
  // * p (DDPG's targets), and begins as its copy.
  std::function<std::string(const std::string&)> ema_of;
  double tau = 0;
};

class Pipeline {
 public:
  virtual ~Pipeline() = default;

  // --- the three functions ---

  // This replica's rows -> tensors of the global shape, and each term's weight. With no examples on a meta
  // context: the plan's batch.
  virtual Batch collate(std::span<const Example> mine, const BatchShape& shape) const = 0;
  // In training the parameters are on the tape, in evaluation they aren't: a loss that contains gradients
  // watches what it takes them by (Tensor::watched).
  virtual LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const = 0;
  // One JSON an example of this replica, in order. Runs on the replica's own mp group; `examples` are the
  // same on its ranks.
  virtual std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                           const StepContext& ctx) const;
  // predict() is given batch_size examples at once, or, where it deals them to batches itself, as many as
  // there are: an answer that ends early then makes room for the next.
  virtual bool predicts_any_number() const { return false; }

  // --- data ---

  // The examples of data.train or data.eval, opened on all ranks together: what the first rank alone makes
  // goes through Group::on_first. Null: tokenized texts as pipeline lm reads them (train/lm_dataset.h).
  virtual std::shared_ptr<const Dataset> open(const DataRequest& request) {
    (void)request;
    return nullptr;
  }
  // A line of predict.input, or {"prompt": text} of predict.prompt, as an example for predict(); its ordinal
  // and id are the job's. ContentsErrors begin with `where`. None: prompts for pipeline lm.
  virtual std::optional<Example> request(const std::string& json, const std::string& where) const {
    (void)json, (void)where;
    return std::nullopt;
  }

  // --- optional ---

  // The parameters: the model's, unless the algorithm has its own.
  virtual const ModelParams& params() const;
  // One group with all parameters that are trained (no buffers, no frozen ones) that descends the first term.
  // Parameters in no group stay as they are.
  virtual std::vector<ParamGroup> groups() const;
  // The examples of epoch ctx.epoch, as many in each; ctx.step is the epoch's first. Default: the training
  // data given. Called on all ranks together, at each epoch's start, and again where a run goes on inside an
  // epoch. Examples made with the current parameters (rollouts) can't be made again then: keep them in
  // state(), see examples_to_json().
  virtual std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx);
  // Numbers about the examples that source() made last (mean return of their episodes), the same on every
  // rank: they stand beside the losses in metrics.jsonl.
  virtual std::map<std::string, double> notes() const { return {}; }
  // What is evaluated. Default: the evaluation data given; null: nothing. Asked for once, on all ranks
  // together.
  virtual std::shared_ptr<const Dataset> evaluation() { return eval_data; }
  // False where an evaluation is answers alone (episodes played): collate() and loss() are not given
  // examples of evaluation().
  virtual bool evaluates_loss() const { return true; }
  // Evaluation metrics from the means of the terms. Default: loss of the first term.
  virtual std::map<std::string, double> metrics(const std::map<std::string, double>& term_means) const;
  // Where eval.generation is given, or the pipeline measures_outputs(), an evaluation also asks predict(),
  // with examples of evaluation(). What is kept of an answer, a JSON object: its id and what predict() said,
  // unless the pipeline knows more to tell (the prompt, the reference).
  virtual std::string output(const Example& example, const std::string& prediction) const;
  // Metrics from those outputs, in the examples' order: their names stand beside those of metrics(). Called
  // with the whole evaluation, and on the first rank alone, where measures_outputs(); otherwise only the few
  // outputs that are to be kept are made.
  virtual bool measures_outputs() const { return false; }
  virtual std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                                       const std::vector<std::string>& outputs) const {
    (void)examples, (void)outputs;
    return {};
  }
  // State beside parameters and optimizer, to be checkpointed (replay buffers, counters). JSON text.
  virtual std::string state() const { return "{}"; }
  virtual void restore(const std::string& json) { (void)json; }

  // Set by the job before anything else is called.
  const Model* model = nullptr;  // null: the job names none
  const Tokenizer* tokenizer = nullptr;
  std::shared_ptr<const PipelineSettings> settings = std::make_shared<PipelineSettings>();
  std::shared_ptr<const Dataset> train_data, eval_data;
};

// --- helpers for sources ---

// Examples in memory.
class ExampleList : public Dataset {
 public:
  // fingerprint: what they are made of, the same in a resumed run (settings, not values). Examples' lengths
  // are those of the longest field of ids.
  ExampleList(std::vector<Example> examples, std::string fingerprint)
      : examples_(std::move(examples)), fingerprint_(std::move(fingerprint)) {}
  i64 size() const override { return static_cast<i64>(examples_.size()); }
  i64 length(i64 i) const override;
  Example get(i64 i) const override { return examples_[i]; }
  std::string fingerprint() const override { return fingerprint_; }
  bool concurrent() const override { return true; }
  const std::vector<Example>& examples() const { return examples_; }

 private:
  std::vector<Example> examples_;
  std::string fingerprint_;
};
// Examples for state(), exactly. Values must be finite. Reading throws ContentsError.
std::string examples_to_json(const std::vector<Example>& examples);
std::vector<Example> examples_from_json(const std::string& json);

// --- helpers for collate ---

// [rows, length] ids of a field, short rows filled up; [rows, ...] values. Cut along rows over dp.
Tensor id_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field, i32 fill);
Tensor value_rows(std::span<const Example> mine, const BatchShape& s, const std::string& field,
                  const Shape& row_shape);

// --- users' shared objects ---

// Raised when this header changes incompatibly: a .so of another version is refused.
constexpr int kPipelineAbi = 3;
// Loads `path` and makes its pipeline. UsageError: no such file, not a pipeline, of another version.
std::unique_ptr<Pipeline> load_pipeline(const std::string& path);

// Runs what a pipeline's author wrote: an exception that isn't redco's becomes an Error that names the
// function.
[[noreturn]] void rethrow_from_pipeline(const char* function);
template <class F>
auto in_pipeline(const char* function, F&& f) {
  try {
    return f();
  } catch (...) {
    rethrow_from_pipeline(function);
  }
}

}  // namespace redco

#define REDCO_PIPELINE(Class)                                           \
  extern "C" int redco_pipeline_abi() { return ::redco::kPipelineAbi; } \
  extern "C" ::redco::Pipeline* redco_make_pipeline() { return new Class(); }
