#include "assembly/calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "assembly/data_cache.h"
#include "assembly/job_params.h"
#include "assembly/lm_data.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/log_once.h"
#include "base/process.h"
#include "base/tolerate.h"
#include "base/user_folders.h"
#include "base/words.h"
#include "ckpt/params_io.h"
#include "ckpt/weights_hash.h"
#include "gguf/folder.h"
#include "launch/resource_limits.h"
#include "ops/create.h"
#include "ops/input_moments.h"

namespace redco {

namespace {

constexpr i64 kWindow = 512;             // tokens of a text that the model reads in one pass
constexpr i64 kMostKept = i64{1} << 30;  // bytes of a calibration in the user's cache

// The job with the calibration's files as its only data.
JobConfig with_texts(const JobConfig& job, const Model& model) {
  JobConfig j = job;
  j.data.train = job.data.calibration;
  j.data.eval.clear();
  j.data.mixture.clear();
  j.data.eval_sets.clear();
  j.data.format.reset();
  j.data.packing = true;
  j.data.max_length = std::min({job.data.max_length.value_or(kWindow), model.max_length(), kWindow});
  return j;
}

// Eight significant bits: another mesh adds squares in another order, and should quantize equally.
float rounded(float x) {
  int exponent = 0;
  const float part = std::frexp(x, &exponent);
  return std::ldexp(std::round(part * 256) / 256, exponent);
}

std::string cache_path(const ModelSource& source, const Dataset& texts, i64 tokens) {
  const std::string cache = user_cache_folder();
  if (cache.empty()) return "";
  // The folder of a GGUF file is named by the file's hash.
  const std::string weights =
      gguf::file_in(source.folder).empty() ? ckpt::weights_hash(source.folder) : source.folder;
  const std::string all =
      fmt::format("2 {} {} {} {}", weights, source.config.text(), texts.fingerprint(), tokens);
  return join_path(cache, fmt::format("calibration/{}.bin", hash128(all).hex()));
}

// Half of the memory that a rank may still use, on the host with the least of it.
i64 memory_for_moments(Group& world) {
  i64 total = 0, available = 0;
  read_memory("", total, available);
  const std::vector<std::string> hosts = world.gather(host_name());
  const auto ranks = std::ranges::count(hosts, hosts[static_cast<std::size_t>(world.rank())]);
  float least = -static_cast<float>(available / ranks / 2);
  world.all_reduce_max(&least, 1);
  return static_cast<i64>(-least);
}

// Windows of texts as one batch, whose rows the replicas share.
DecoderInputs batch_of(const Dataset& texts, const Model& model, i64 first, i64 rows, i64 length) {
  std::vector<i32> ids, positions;
  const std::vector<i32> row = model.positions(std::vector<i32>(static_cast<std::size_t>(length), 1), false);
  for (i64 r = 0; r < rows; ++r) {
    const std::vector<i32> window = texts.get((first + r) % texts.size()).ids.at("input_ids");
    for (i64 t = 0; t < length; ++t) ids.push_back(window[static_cast<std::size_t>(t % std::ssize(window))]);
    positions.insert(positions.end(), row.begin(), row.end());
  }
  return {
      from_ids({rows, length}, ids, batch_layout()), from_ids({rows, length}, positions, batch_layout()), {}};
}

}  // namespace

bool calibrates(const JobConfig& job, const ParamTree& tree) {
  if (job.data.calibration.empty()) return false;
  const bool quantizes =
      std::ranges::any_of(tree.values(), [](const Tensor& t) { return t.dtype() == DType::q4; });
  if (!quantizes)
    log_once(LogLevel::warn, fmt::format("data.calibration ({}) has no effect: set model.weight_dtype=int4",
                                         job.origins.where("data.calibration")));
  return quantizes;
}

ckpt::Importances importance(const JobConfig& job, const ModelSource& source, const Model& model,
                             const ParamTree& tree, const std::function<void()>& load) {
  Group& world = Context::current().world();
  const std::string where = fmt::format("data.calibration ({})", job.origins.where("data.calibration"));
  if (model.task() != ModelTask::causal_lm)
    throw UsageError("[calibration] {}: the model is {}, expected a decoder language model. Remove the key",
                     where, name_of(model.task()));
  const auto tokenizer = job_tokenizer(job);
  if (!tokenizer)
    throw UsageError("[calibration] {}: the model has no tokenizer. Set model.tokenizer", where);
  const JobConfig of_texts = with_texts(job, model);
  std::optional<DataCache> own;  // on the first rank
  std::string cache;
  const bool several_hosts = are_on_several_hosts(world);
  world.on_first([&] { cache = own.emplace(job, several_hosts).path(); });
  const DataSource files{.name = "calibration", .files = job.data.calibration};
  const auto texts = make_lm_data(
      lm_data_request(of_texts, files, false, *tokenizer, &model, source.folder, world.agree(cache)));
  if (texts->size() == 0) throw UsageError("[calibration] {}: the files have no tokens", where);

  const i64 length = *of_texts.data.max_length, tokens = job.data.calibration_tokens;
  std::string kept, path;
  world.on_first([&] {
    path = cache_path(source, *texts, tokens);
    if (!path.empty() && exists(path)) kept = read_file(path, kMostKept);
  });
  if (auto found = ckpt::importances_of_bytes(world.agree(kept))) {
    world.on_first(
        [&] { info("[calibration] the importance of {} matrices is that of {}", found->size(), path); });
    return *found;
  }

  const auto begin = std::chrono::steady_clock::now();
  load();
  const i64 rows = Context::current().mesh().dp();
  const i64 windows = std::min(texts->size(), std::max<i64>(1, tokens / length));
  const i64 memory = memory_for_moments(world);
  ckpt::Importances out;
  i64 n_squares = 0;
  {
    NoGrad off;
    Tensors weights;
    for (const Tensor& t : tree.values())
      if (t.dtype() == DType::q4) weights.push_back(t);
    InputMoments moments(weights, memory);
    for (i64 w = 0; w < windows; w += rows) model.apply(tree, batch_of(*texts, model, w, rows, length), {});
    moments.take([&](const InputMoments::Product& p) {
      ckpt::Importance importance{.squares = p.squares};
      std::ranges::transform(importance.squares, importance.squares.begin(), rounded);
      for (std::size_t i = 0; i < tree.size(); ++i) {
        const Tensor& t = tree.values()[i];
        const auto same = [&](const Tensor& w) { return w.same_bytes(t); };
        if (t.dtype() != DType::q4 || std::ranges::none_of(p.weights, same)) continue;
        if (!importance.feedback && !p.products.empty())
          importance.feedback =
              std::make_shared<const gguf::ErrorFeedback>(p.products, std::ssize(p.squares));
        if (out.emplace(tree.specs()[i].name, importance).second && !importance.feedback) ++n_squares;
      }
    });
  }
  world.on_first([&] {
    const auto all =
        std::ranges::count_if(tree.values(), [](const Tensor& t) { return t.dtype() == DType::q4; });
    const std::string bytes = ckpt::to_bytes(out);
    info("[calibration] importance of {} of {} int4 matrices from {} tokens, in {:.1f} s; {}", out.size(),
         all, windows * length,
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
         human_bytes(bytes.size()));
    if (n_squares > 0)
      info(
          "[calibration] {} of them have mean squares only: products of all inputs exceed {}, half of a rank's "
          "free memory",
          n_squares, human_bytes(static_cast<u64>(memory)));
    if (path.empty()) return;
    if (std::ssize(bytes) > kMostKept)
      return info("[calibration] not kept for the next job, because it exceeds {}", human_bytes(kMostKept));
    tolerate("[calibration] the importance is not kept", [&] {
      make_dirs(parent_path(path));
      write_file_durable(path, bytes);
    });
  });
  return out;
}

ckpt::Importances importance_of(const JobConfig& job) {
  const ModelSource source = model_source(job, job_tokenizer(job).get());
  const auto model = make_job_model(job, source);
  const ModelParams& params = model->params();
  const ParamStorage storage = inference_storage(job);
  const auto sharded =
      shard_specs(params.specs, Context::current().mesh().mp(), custom_rules(job), storage.weights);
  ParamTree tree = make_params(params, sharded.layouts, storage);
  return importance(job, source, *model, tree, [&] {
    ckpt::load_params(
        tree, ckpt::ModelFiles::open(source.folder),
        [&](const std::string& name) { return model->canonical_name(name); }, params.aliases);
  });
}

}  // namespace redco
