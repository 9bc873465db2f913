#include "check/step.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "assembly/assembly.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "assembly/training_parts.h"
#include "base/error.h"
#include "base/file.h"
#include "check/record.h"
#include "ckpt/params_save.h"
#include "comm/group.h"
#include "data/index/epoch_order.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "train/prefetch.h"
#include "train/step.h"
#include "train/step_checks.h"
#include "train/step_order.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;
constexpr i64 kMostRecordBytes = i64{8} << 30;

// All ranks make the same fields, of the same global shapes. (The step compares the names of weights.)
void check_batches(const Pipeline& pipeline, const std::vector<Batch>& batches) {
  std::string text;
  for (const Batch& b : batches) {
    text += text.empty() ? "fields" : "; fields";
    for (const auto& [name, t] : b.fields) text += fmt::format(" {} {}", name, describe(t));
  }
  Group& world = Context::current().world();
  const std::vector<std::string> all = world.gather(text);
  world.together([&] {
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r] != all[0])
        throw UsageError(
            "[pipeline] collate() made another batch on rank {} than on rank 0 ({}; expected {}). All replicas "
            "must make the same fields, of the global shape{}",
            r, all[r], all[0],
            pipeline.origin.empty() ? "" : fmt::format(". The pipeline is {}", pipeline.origin));
  });
}

// The parameters, each number one or two units of its last place larger.
ParamTree nudged(const ParamTree& params) {
  Context& c = Context::current();
  std::vector<Tensor> values = params.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor& p = params.values()[i];
    if (!p.defined() || p.dtype() != DType::f32 || !params.specs()[i].trained()) continue;
    Tensor t(p.shape(), p.dtype(), p.layout(), p.hidden());
    c.run(&Kernels::affine, p, t, 1 + std::exp2(-23), 0);
    values[i] = p.is_gathered_on_use() ? t.gathered_on_use() : t;
  }
  return params.with_values(values);
}

// The largest difference of each gradient, by its name.
Json differences(const ParamTree& params, const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  const NoGrad off;
  Json out = Json::object();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined() || !b[i].defined()) continue;
    const Tensor d = abs(a[i] - b[i]);
    const ParamSpec& s = params.specs()[i];
    const std::vector<double> largest = to_values(max_last(reshape(d, {1, d.numel()})));
    for (i64 k = 0; k < s.stored.tensors(); ++k) out[s.stored.tensor(k)] = largest[0];
  }
  return out;
}

// The parameter group of each stored tensor, whose gradients are compared on the same scale.
Json groups_of(const Pipeline& pipeline, const ParamTree& tree) {
  Json out = Json::object();
  const auto groups = pipeline.checked_groups();
  for (const ParamSpec& s : tree.specs())
    for (const ParamGroup& g : groups)
      if (g.has(s.name))
        for (i64 k = 0; k < s.stored.tensors(); ++k) out[s.stored.tensor(k)] = g.name;
  return out;
}

// The step of one combination, in the order of its functions.
class CheckedStep {
 public:
  CheckedStep(Run& run, const std::string& folder)
      : run_(run), record_path_(join_path(folder, kCheckRecord)) {}

  void run(const std::string& own) {
    make_objects();
    make_examples();
    make_batches();
    run_step();
    if (records_) repeat_step();
    if (records_ && training_storage(run_.job()).weights == DType::f32) measure_rounding();
    save(own);
  }

 private:
  Group& world() const { return run_.context().world(); }

  // As the Trainer begins its first step, without its update. The optimizer would only take memory.
  void make_objects() {
    Context& c = run_.context();
    parts_ = assemble_training(run_);
    const JobConfig& job = run_.job();
    world().together([&] {
      sizes_ = batch_sizes(job, c.mesh().dp());
      pipeline_ = make_training_pipeline(job, parts_, sizes_.per_device);
    });
    pipeline_->train_data = make_training_data(job, *pipeline_, parts_.source.folder, *cache_folder(job));
    params_ = make_job_params(job, parts_.source, parts_.model.get(), pipeline_->all_params(),
                              training_storage(job), &parts_.named);
    options_ = step_options(job.train, job.parallel, training_storage(job).weights);
    options_.optimizer = SgdSettings{};
    options_.updates = false;
    options_.on_gradients = [this](const std::vector<Tensor>& g) { gradients_ = g; };
    step_.emplace(*pipeline_, params_, options_);
    c.random.seed = static_cast<u64>(job.train.seed);
    c.compute_dtype = job.train.compute_dtype;
    step_->start_averages();
  }

  // The examples of the step: the first combination records them, the others read the record.
  void make_examples() {
    Context& c = run_.context();
    std::string text;
    world().on_first([&] {
      if (exists(record_path_)) text = read_file(record_path_, kMostRecordBytes);
    });
    records_ = !take_record(text);
    if (!records_) in_pipeline(*pipeline_, "restore()", [&] { pipeline_->restore(record_.state); });
    c.phase = "source";
    data_ = in_pipeline(*pipeline_, "source()", [&] { return pipeline_->source(params_, {}); });
    if (!data_ || data_->size() == 0) throw ContentsError("[data] the training data have no examples");
    const StepOrder order(*data_, c.random.seed, 0, run_.job().data.group_by_length, sizes_.global);
    const StepPlan::Place place = StepPlan(data_->size(), sizes_.global).place(0);
    for (i64 at = place.begin; at < place.end; ++at) numbers_.push_back(order.at(at));
    if (!records_) return;
    const std::string state = in_pipeline(*pipeline_, "state()", [&] { return pipeline_->state(); });
    world().on_first([&] {
      text = to_json(record_examples(*data_, numbers_, state));
      write_file_durable(record_path_, text);
    });
    take_record(text);
  }

  // The first rank's text as the record of all ranks. False if it is empty.
  bool take_record(const std::string& first) {
    const std::string text = world().agree(first);
    world().together([&] {
      if (!text.empty()) record_ = check_record_of(text);
    });
    return !text.empty();
  }

  void make_batches() {
    micro_ = micro_batches(rows(), sizes_.per_device, run_.context().mesh().dp());
    const RecordedExamples recorded(record_);
    const StepRequest request = request_step(micro_, [](i64 row) { return row; });
    std::vector<i64> mine;
    read_ = read_examples(recorded, request, 1);
    for (const MicroBatchExamples& e : read_) {
      offsets_.push_back(micro_[batches_.size()].first);
      for (i64 row = e.shape.mine.begin; row < e.shape.mine.end; ++row) mine.push_back(offsets_.back() + row);
      length_ = std::max(length_, e.shape.length + e.shape.target_length);
      batches_.push_back(collate_examples(*pipeline_, e.mine, e.shape));
    }
    check_batches(*pipeline_, batches_);
    for (const std::string& other : world().gather(examples_difference(*data_, numbers_, record_, mine)))
      if (examples_.empty()) examples_ = other;
  }

  void run_step() {
    outcome_ = step_->run(batches_, offsets_, 0, 0, 0);
    if (outcome_.finite) return;
    std::string terms;
    for (const auto& [name, value] : outcome_.terms)
      terms += fmt::format("{}{} {}", terms.empty() ? "" : ", ", name, value);
    throw Error(ExitCode::non_finite,
                fmt::format("[check] the loss or gradient is not finite ({}; gradient norm {})", terms,
                            outcome_.grad_norm));
  }

  // The same step again: collate() and loss() must give the same bits, or comparing meshes shows nothing.
  void repeat_step() {
    std::string field;
    for (std::size_t m = 0; m < batches_.size() && field.empty(); ++m)
      field = field_difference(batches_[m], collate_examples(*pipeline_, read_[m].mine, read_[m].shape));
    refuse_repeat("collate()", field,
                  "Random numbers must depend on Example::ordinal or Context::key(), not on earlier calls");
    const std::vector<Tensor> expected = gradients_;
    const StepOutcome other = step_->run(batches_, offsets_, 0, 0, 0);
    std::string number;
    const auto compare = [&](const std::string& name, double a, double b) {
      if (number.empty() && std::bit_cast<u64>(a) != std::bit_cast<u64>(b))
        number = fmt::format("another {} ({:.9g} instead of {:.9g})", name, b, a);
    };
    for (const auto& [name, value] : outcome_.terms) {
      const auto again = other.terms.find(name);
      compare(name, value, again == other.terms.end() ? NAN : again->second);
    }
    compare("gradient norm", outcome_.grad_norm, other.grad_norm);
    for (std::size_t i = 0; i < expected.size() && number.empty(); ++i)
      if (expected[i].defined() && local_hash(expected[i]) != local_hash(gradients_[i]))
        number = fmt::format("another gradient of {}", params_.specs()[i].name);
    refuse_repeat(
        "loss()", number,
        "Random numbers must come from redco's operators with Context::key(), and loss() must keep no "
        "values from call to call");
    gradients_ = expected;
  }

  // `what`: how this rank's repeated call differed; "": it did not.
  void refuse_repeat(const char* function, const std::string& what, const char* remedy) const {
    for (const std::string& found : world().gather(what))
      if (!found.empty())
        throw Error(
            ExitCode::check_failed,
            fmt::format("[check] {} gave {} when the same step was repeated. {}. Until a repeated step has "
                        "equal bits, no comparison of meshes can find a mistake{}",
                        function, found, remedy,
                        pipeline_->origin.empty() ? "" : ". The pipeline is " + pipeline_->origin));
  }

  // The differences of a step whose parameters differ in their last places.
  void measure_rounding() {
    const std::vector<Tensor> expected = gradients_;
    ParamTree changed = nudged(params_);
    TrainStep again(*pipeline_, changed, options_);
    again.start_averages();
    const StepOutcome other = again.run(batches_, offsets_, 0, 0, 0);
    for (const auto& [name, value] : outcome_.terms)
      rounding_["terms"][name] = std::abs(other.terms.at(name) - value);
    rounding_["grad_norm"] = std::abs(other.grad_norm - outcome_.grad_norm);
    rounding_["gradients"] = differences(params_, gradients_, expected);
    gradients_ = expected;
  }

  void save(const std::string& own) {
    std::vector<bool> has;
    i64 widest = 0;
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      has.push_back(gradients_[i].defined());
      for (const i64 n : params_.specs()[i].shape) widest = std::max(widest, n);
    }
    const ParamTree tree = params_.with_values(gradients_).subset(has);
    world().on_first([&] { make_dirs(own); });
    const auto plan = ckpt::plan_params({{"", &tree}}, ckpt::StoredType::f32, kCheckGradients,
                                        std::numeric_limits<i64>::max());
    ckpt::save_params({{"", &tree}}, plan, own);
    const Json groups = groups_of(*pipeline_, tree);
    world().on_first([&] {
      Json j = {{"terms", outcome_.terms},
                {"first_term", outcome_.first_term},
                {"weights", outcome_.weights},
                {"grad_norm", outcome_.grad_norm},
                {"rows", rows()},
                {"length", length_},
                {"micro_batches", micro_.size()},
                {"rows_of_micro_batch", micro_[0].rows},
                {"longest_sum", std::max(rows() * std::max<i64>(1, length_), widest)},
                {"examples", examples_},
                {"groups", groups},
                {"rounding", rounding_}};
      write_file_durable(join_path(own, kCheckResult), j.dump());
    });
  }

  i64 rows() const { return static_cast<i64>(record_.examples.size()); }

  Run& run_;
  const std::string record_path_;
  Assembly parts_;
  BatchSizes sizes_;
  std::unique_ptr<Pipeline> pipeline_;
  ParamTree params_;
  StepOptions options_;
  std::optional<TrainStep> step_;
  std::vector<Tensor> gradients_;
  CheckRecord record_;
  bool records_ = false;  // this combination makes the record
  std::shared_ptr<const Dataset> data_;
  std::vector<i64> numbers_;  // the step's examples in data_
  std::vector<MicroBatch> micro_;
  std::vector<MicroBatchExamples> read_;
  std::vector<Batch> batches_;
  std::vector<i64> offsets_;
  i64 length_ = 0;        // of the longest example
  std::string examples_;  // how the examples differ from the record
  StepOutcome outcome_;
  Json rounding_ = Json::object();
};

}  // namespace

int run_check_step(const RunRequest& request, const std::string& folder, const std::string& own) {
  return run(request, [&](Run& run) {
    CheckedStep(run, folder).run(own);
    return static_cast<int>(ExitCode::ok);
  });
}

}  // namespace redco
