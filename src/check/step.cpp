#include "check/step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "assembly/assembly.h"
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

int step_on_ranks(Run& run, const std::string& folder, const std::string& own) {
  Context& c = run.context();
  Group& world = c.world();
  const Assembly parts = assemble_training(run);
  const JobConfig& job = run.job();
  BatchSizes sizes;
  std::unique_ptr<Pipeline> pipeline;
  world.together([&] {
    sizes = batch_sizes(job, c.mesh().dp());
    pipeline = make_training_pipeline(job, parts, sizes.per_device);
  });
  pipeline->train_data = make_training_data(job, *pipeline, parts.source.folder, *cache_folder(job));
  ParamTree params = make_job_params(job, parts.source, parts.model.get(), pipeline->all_params(),
                                     training_storage(job), &parts.named);

  // As the Trainer begins its first step. The optimizer would only take memory: the check ends before the
  // update.
  StepOptions options = step_options(job.train, job.parallel, training_storage(job).weights);
  options.optimizer = SgdSettings{};
  std::vector<Tensor> gradients;
  options.on_gradients = [&](const std::vector<Tensor>& g) { gradients = g; };
  TrainStep step(*pipeline, params, options);
  c.random.seed = static_cast<u64>(job.train.seed);
  c.compute_dtype = job.train.compute_dtype;
  step.start_averages();

  const std::string path = join_path(folder, kCheckRecord);
  std::string text;
  world.on_first([&] {
    if (exists(path)) text = read_file(path, kMostRecordBytes);
  });
  text = world.agree(text);
  CheckRecord record;
  world.together([&] {
    if (!text.empty()) record = check_record_of(text);
  });
  const bool records = text.empty();
  if (!records) in_pipeline(*pipeline, "restore()", [&] { pipeline->restore(record.state); });
  c.phase = "source";
  const auto data = in_pipeline(*pipeline, "source()", [&] { return pipeline->source(params, {}); });
  if (!data || data->size() == 0) throw ContentsError("[data] the training data have no examples");
  const StepOrder order(*data, c.random.seed, 0, job.data.group_by_length, sizes.global);
  const StepPlan::Place place = StepPlan(data->size(), sizes.global).place(0);
  std::vector<i64> numbers;
  for (i64 at = place.begin; at < place.end; ++at) numbers.push_back(order.at(at));
  if (records) {
    const std::string state = in_pipeline(*pipeline, "state()", [&] { return pipeline->state(); });
    world.on_first([&] {
      text = to_json(record_examples(*data, numbers, state));
      write_file_durable(path, text);
    });
    text = world.agree(text);
    world.together([&] { record = check_record_of(text); });
  }

  const i64 rows = static_cast<i64>(record.examples.size());
  const auto micro = micro_batches(rows, sizes.per_device, c.mesh().dp());
  const RecordedExamples recorded(record);
  const StepRequest request = request_step(micro, [](i64 row) { return row; });
  std::vector<Batch> batches;
  std::vector<i64> offsets, mine;
  i64 length = 0;
  for (const MicroBatchExamples& e : read_examples(recorded, request, 1)) {
    offsets.push_back(micro[batches.size()].first);
    for (i64 row = e.shape.mine.begin; row < e.shape.mine.end; ++row) mine.push_back(offsets.back() + row);
    length = std::max(length, e.shape.length + e.shape.target_length);
    batches.push_back(collate_examples(*pipeline, e.mine, e.shape));
  }
  check_batches(*pipeline, batches);
  std::string examples;
  for (const std::string& other : world.gather(examples_difference(*data, numbers, record, mine)))
    if (examples.empty()) examples = other;

  const StepOutcome o = step.run(batches, offsets, 0, 0, 0);
  std::string terms;
  for (const auto& [name, value] : o.terms)
    terms += fmt::format("{}{} {}", terms.empty() ? "" : ", ", name, value);
  if (!o.finite)
    throw Error(
        ExitCode::non_finite,
        fmt::format("[check] the loss or gradient is not finite ({}; gradient norm {})", terms, o.grad_norm));

  Json rounding = Json::object();
  if (records && training_storage(job).weights == DType::f32) {
    const std::vector<Tensor> expected = gradients;
    ParamTree changed = nudged(params);
    TrainStep again(*pipeline, changed, options);
    again.start_averages();
    const StepOutcome other = again.run(batches, offsets, 0, 0, 0);
    for (const auto& [name, value] : o.terms)
      rounding["terms"][name] = std::abs(other.terms.at(name) - value);
    rounding["grad_norm"] = std::abs(other.grad_norm - o.grad_norm);
    rounding["gradients"] = differences(params, gradients, expected);
    gradients = expected;
  }

  std::vector<bool> has;
  i64 widest = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    has.push_back(gradients[i].defined());
    for (const i64 n : params.specs()[i].shape) widest = std::max(widest, n);
  }
  const ParamTree tree = params.with_values(gradients).subset(has);
  world.on_first([&] { make_dirs(own); });
  const auto plan = ckpt::plan_params({{"", &tree}}, ckpt::StoredType::f32, kCheckGradients,
                                      std::numeric_limits<i64>::max());
  ckpt::save_params({{"", &tree}}, plan, own);
  const Json groups = groups_of(*pipeline, tree);
  world.on_first([&] {
    Json j = {{"terms", o.terms},
              {"weights", o.weights},
              {"grad_norm", o.grad_norm},
              {"rows", rows},
              {"length", length},
              {"micro_batches", micro.size()},
              {"rows_of_micro_batch", micro[0].rows},
              {"longest_sum", std::max(rows * std::max<i64>(1, length), widest)},
              {"examples", examples},
              {"groups", groups},
              {"rounding", rounding}};
    write_file_durable(join_path(own, kCheckResult), j.dump());
  });
  return static_cast<int>(ExitCode::ok);
}

}  // namespace

int run_check_step(const RunRequest& request, const std::string& folder, const std::string& own) {
  return run(request, [&](Run& run) { return step_on_ranks(run, folder, own); });
}

}  // namespace redco
