#include "commands/check_step.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "assembly/assembly.h"
#include "assembly/job_pipeline.h"
#include "assembly/predict_model.h"
#include "base/error.h"
#include "base/file.h"
#include "ckpt/params_io.h"
#include "comm/group.h"
#include "data/epoch_order.h"
#include "train/prefetch.h"
#include "train/step.h"
#include "train/step_order.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;
constexpr i64 kMostRecordBytes = i64{8} << 30;

// Reads the step's examples. First rank only.
CheckRecord recorded(const Dataset& data, const std::vector<i64>& numbers, std::string state) {
  CheckRecord r;
  r.state = std::move(state);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    r.examples.push_back(data.get(numbers[i]));
    r.lengths.emplace_back(data.length(numbers[i]), data.target_length(numbers[i]));
    for (const auto& [name, values] : r.examples.back().values)
      if (std::ranges::any_of(values, [](float v) { return !std::isfinite(v); }))
        throw ContentsError(
            "[check] example {} of the step: the field '{}' has a value that is not finite. redco check records "
            "the examples and needs finite values",
            i, name);
  }
  return r;
}

// How this rank's examples differ from the record; "" if they don't.
std::string examples_difference(const Dataset& data, const std::vector<i64>& numbers, const CheckRecord& r,
                                const std::vector<i64>& mine) {
  if (numbers.size() != r.examples.size())
    return fmt::format("the step has {} examples instead of {}", numbers.size(), r.examples.size());
  for (const i64 row : mine) {
    const i64 number = numbers[row];
    std::string what = example_difference(data.get(number), r.examples[row]);
    if (what.empty() && r.lengths[row] != std::pair(data.length(number), data.target_length(number)))
      what = fmt::format("its length is {} instead of {}", data.length(number), r.lengths[row].first);
    if (!what.empty()) return fmt::format("example {} of the step: {}", row, what);
  }
  return "";
}

// All ranks make the same fields, of the same global shapes, and the same weights' names.
void check_batches(const Pipeline& pipeline, const std::vector<Batch>& batches) {
  std::string text;
  for (const Batch& b : batches) {
    text += text.empty() ? "fields" : "; fields";
    for (const auto& [name, t] : b.fields) text += fmt::format(" {} {}", name, describe(t));
    text += ", weights";
    for (const auto& [name, w] : b.weights) text += " " + name;
  }
  Group& world = Context::current().world();
  const std::vector<std::string> all = world.gather(text);
  world.together([&] {
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r] != all[0])
        throw UsageError(
            "[pipeline] collate() made another batch on rank {} than on rank 0 ({}; expected {}). All replicas "
            "must make the same fields, of the global shape, and give the same terms a weight{}",
            r, all[r], all[0],
            pipeline.origin.empty() ? "" : fmt::format(". The pipeline is {}", pipeline.origin));
  });
}

// The parameter group of each stored tensor, whose gradients are compared on the same scale.
Json groups_of(const Pipeline& pipeline, const ParamTree& tree) {
  Json out = Json::object();
  const auto groups = in_pipeline(pipeline, "groups()", [&] { return pipeline.groups(); });
  for (const ParamSpec& s : tree.specs())
    for (const ParamGroup& g : groups)
      if (g.has(s.name))
        for (i64 k = 0; k < s.stored.tensors(); ++k) out[s.stored.tensor(k)] = g.name;
  return out;
}

int step_on_ranks(Run& run, const std::string& folder, const std::string& own) {
  Context& c = run.context();
  Group& world = c.world();
  Assembly parts;
  world.together([&] { parts = assemble(run.job()); });
  if (const auto keys = model_config_of_data(run.job(), parts); !keys.empty()) {
    run.decide_model_config(keys);
    world.together([&] { parts = assemble(run.job()); });
  }
  const JobConfig& job = run.job();
  const Model* const model = parts.model.get();
  const Tokenizer* const tokenizer = parts.tokenizer.get();
  BatchSizes sizes;
  std::unique_ptr<Pipeline> pipeline;
  world.together([&] {
    sizes = batch_sizes(job, c.mesh().dp());
    TextGeneration generation;
    if (tokenizer && model)
      generation = eval_generation(job, parts.source, *model, *tokenizer,
                                   job.eval.per_device_batch_size.value_or(sizes.per_device));
    pipeline = make_job_pipeline(job, model, tokenizer, generation, parts.source.folder, parts.named);
  });
  pipeline->train_data = make_training_data(job, *pipeline, parts.source.folder, *cache_folder(job));
  ParamTree params =
      make_job_params(job, parts.source, model, pipeline->all_params(), training_storage(job), &parts.named);

  // As the Trainer begins its first step. The optimizer would only take memory: the check ends before the
  // update.
  StepOptions options = step_options(job.train, job.parallel, training_storage(job).weights);
  options.optimizer = SgdSettings{};
  std::vector<Tensor> gradients;
  options.on_gradients = [&](const std::vector<Tensor>& g) { gradients = g; };
  TrainStep step(*pipeline, params, options);
  c.random.seed = static_cast<u64>(job.train.seed);
  c.compute_dtype = job.train.compute_dtype == "bf16" ? ComputeDType::bf16 : ComputeDType::fp32;
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
  if (!text.empty()) in_pipeline(*pipeline, "restore()", [&] { pipeline->restore(record.state); });
  c.phase = "source";
  const auto data = in_pipeline(*pipeline, "source()", [&] { return pipeline->source(params, {}); });
  if (!data || data->size() == 0) throw ContentsError("[data] the training data have no examples");
  const StepOrder order(*data, c.random.seed, 0, job.data.group_by_length, sizes.global);
  const StepPlan::Place place = StepPlan(data->size(), sizes.global).place(0);
  std::vector<i64> numbers;
  for (i64 at = place.begin; at < place.end; ++at) numbers.push_back(order.at(at));
  if (text.empty()) {
    const std::string state = in_pipeline(*pipeline, "state()", [&] { return pipeline->state(); });
    world.on_first([&] {
      text = to_json(recorded(*data, numbers, state));
      write_file_durable(path, text);
    });
    text = world.agree(text);
    world.together([&] { record = check_record_of(text); });
  }

  const i64 rows = static_cast<i64>(record.examples.size());
  const auto micro = micro_batches(rows, sizes.per_device, c.mesh().dp());
  std::vector<Batch> batches;
  std::vector<i64> offsets, mine;
  i64 length = 0;
  for (const MicroBatch& m : micro) {
    MicroBatchExamples e;
    e.shape.rows = m.rows;
    e.shape.mine = shard_range(m.rows, 1, c.mesh().dp(), c.coord().dp());
    for (i64 row = m.first; row < m.first + m.rows; ++row) {
      e.shape.length = std::max(e.shape.length, record.lengths[row].first);
      e.shape.target_length = std::max(e.shape.target_length, record.lengths[row].second);
    }
    for (i64 row = e.shape.mine.begin; row < e.shape.mine.end; ++row) {
      mine.push_back(m.first + row);
      e.mine.push_back(record.examples[mine.back()]);
    }
    length = std::max(length, e.shape.length + e.shape.target_length);
    batches.push_back(collate_examples(*pipeline, e));
    offsets.push_back(m.first);
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
              {"groups", groups}};
    write_file_durable(join_path(own, kCheckResult), j.dump());
  });
  return static_cast<int>(ExitCode::ok);
}

}  // namespace

std::string to_json(const CheckRecord& r) {
  return Json{
      {"state", r.state}, {"examples", Json::parse(examples_to_json(r.examples))}, {"lengths", r.lengths}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

CheckRecord check_record_of(const std::string& json) {
  const Json j = Json::parse(json);
  return {.state = j.at("state"),
          .examples = examples_from_json(j.at("examples").dump()),
          .lengths = j.at("lengths").get<std::vector<std::pair<i64, i64>>>()};
}

std::string example_difference(const Example& e, const Example& r) {
  if (e.ordinal != r.ordinal) return fmt::format("its ordinal is {} instead of {}", e.ordinal, r.ordinal);
  if (e.text != r.text || e.id != r.id) return "its text or id differs";
  const auto names = [](const Example& x) {
    std::vector<std::string> all = x.ids.names();
    for (const std::string& n : x.values.names()) all.push_back(n);
    return all;
  };
  if (names(e) != names(r))
    return fmt::format("its fields are {} instead of {}", fmt::join(names(e), ", "),
                       fmt::join(names(r), ", "));
  for (const auto& [name, ids] : e.ids)
    if (ids != r.ids.at(name)) return fmt::format("its field '{}' differs", name);
  constexpr float kRounding = 1e-4F;
  for (const auto& [name, values] : e.values) {
    const std::vector<float>& expected = r.values.at(name);
    if (values.size() != expected.size())
      return fmt::format("its field '{}' has {} values instead of {}", name, values.size(), expected.size());
    float largest = 0;
    for (const float v : expected) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!(std::abs(values[i] - expected[i]) <= kRounding * largest))
        return fmt::format("value {} of its field '{}' is {} instead of {}", i, name, values[i], expected[i]);
  }
  return "";
}

int run_check_step(const RunRequest& request, const std::string& folder, const std::string& own) {
  return run(request, [&](Run& run) { return step_on_ranks(run, folder, own); });
}

}  // namespace redco
