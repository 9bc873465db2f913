#include "commands/bench.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "assembly/data_cache.h"
#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "assembly/job_pipeline.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/timing.h"
#include "base/words.h"
#include "comm/group.h"
#include "commands/choose_layout.h"
#include "commands/generation_shape.h"
#include "commands/measure_machine.h"
#include "generate/forward_pass.h"
#include "generate/generate.h"
#include "kernels/peak.h"
#include "kernels/philox.h"
#include "kernels/threads.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"
#include "run/run.h"
#include "train/prefetch.h"
#include "train/step.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

double sum_over_ranks(Context& c, double x) {
  c.world().all_reduce<double>(&x, 1);
  return x;
}

// This rank's examples of a step: random tokens for pipeline lm, else the job's training data, over and over.
struct Bench;
std::vector<MicroBatchExamples> examples_of_step(const Bench& b, const std::vector<MicroBatch>& parts, i64 s,
                                                 i64 rows, i64 length);

// Tokens that depend only on (stream, row, position): the same on every mesh.
std::vector<i32> random_tokens(u64 stream, i64 row, i64 n, i64 vocabulary) {
  std::vector<i32> ids(static_cast<std::size_t>(n));
  for (i64 i = 0; i < n; ++i)
    ids[i] = static_cast<i32>(kernels::philox_word(stream, row, i, 0, 0) % static_cast<u64>(vocabulary));
  return ids;
}

// The job's objects on this rank.
struct Bench {
  Context& c;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<Pipeline> pipeline;
  ModelSource source;
  std::vector<NamedParts> named;
  ParamTree params;
  DataCache cache;                      // of the first rank
  std::shared_ptr<const Dataset> data;  // null: random tokens

  // For training, or for generation.
  Bench(const JobConfig& job, bool trains, Context& context)
      : c(context), cache(job, are_on_several_hosts(context.world())) {
    c.random.seed = static_cast<u64>(job.train.seed);
    c.compute_dtype = job.train.compute_dtype;
    c.world().together([&] {
      tokenizer = job_tokenizer(job);
      if (job.model.path || job.model.preset || job.model.arch)
        source = training_source(job, tokenizer.get());
      if (!source.folder.empty() && !ckpt_here(source.folder)) source.folder.clear();
      const bool has_model = job.model.path || job.model.preset || job.model.arch;
      if (has_model) model = make_job_model(job, source);
      named = make_named_parts(job);
      pipeline = make_job_pipeline(job, model.get(), tokenizer.get(), {}, source.folder, named);
      if (model && job.data.max_length && *job.data.max_length > model->max_length())
        throw UsageError("[data] data.max_length={} ({}) is more than the model's {} positions",
                         *job.data.max_length, job.origins.where("data.max_length"), model->max_length());
    });
    params = make_job_params(job, source, model.get(), pipeline->all_params(),
                             trains ? training_storage(job) : inference_storage(job), &named);
    if (!trains || job.pipeline == "lm") return;
    const std::string folder = c.world().agree(cache.path());
    pipeline->train_data = make_training_data(job, *pipeline, source.folder, folder);
    data = in_pipeline(*pipeline, "source()", [&] { return pipeline->source(params, {}); });
    if (!data || data->size() == 0) throw ContentsError("[data] the training data have no examples");
  }

  void describe(BenchReport& r) const {
    r.n_ranks = c.world().size();
    r.dp = c.mesh().dp();
    r.mp = c.mesh().mp();
    r.threads = kernels::threads();
    for (const ParamSpec& s : params.specs()) r.parameters += numel(s.shape);
    double peak = static_cast<double>(peak_memory_bytes());
    c.world().all_reduce_max<double>(&peak, 1);
    r.peak_memory_bytes = static_cast<i64>(peak);
  }

  // Bytes of this rank's weights that a decoding step reads: all but embedding tables, of which it looks up
  // rows. The head reads a tied table whole.
  i64 weight_bytes_read() const {
    i64 n = 0;
    const auto& aliases = pipeline->params().aliases;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const ParamSpec& s = params.specs()[i];
      const bool tied =
          std::any_of(aliases.begin(), aliases.end(), [&](const auto& a) { return a.second == s.name; });
      if (s.kind == ParamKind::embedding && !tied) continue;
      n += params.values()[i].local_bytes();
    }
    return n;
  }

 private:
  // A folder with a config and no weights is benchmarked with random weights.
  static bool ckpt_here(const std::string& folder);
};

// `speed` in the unit of `measured`, the peak. A speed above the measured peak raises it.
void set_peak(double speed, double measured, double& peak, double& share) {
  peak = std::max(speed, measured);
  share = kernels::peak_share(speed, measured);
}

// The peak speed of products on all ranks: sgemm on the shape of the largest matrix, with the rows of the
// linear layers, or products of bf16 if the activations or the weights are bf16.
void set_products(BenchReport& r, const Bench& b, const JobConfig& job, i64 rows) {
  Shape widest = {768, 768};
  i64 most = 0;
  for (std::size_t i = 0; i < b.params.size(); ++i) {
    const Tensor& t = b.params.values()[i];
    if (t.shape().size() != 2 || b.params.specs()[i].kind == ParamKind::embedding || t.local_numel() <= most)
      continue;
    most = t.local_numel();
    widest = t.local();
  }
  const bool bf16 = b.c.compute_dtype == ComputeDType::bf16 || job.model.weights() == DType::bf16;
  double peak = bf16 ? kernels::measure_bf16_ceiling() : 0;
  r.bf16_products = peak > 0;
  if (!r.bf16_products)
    peak = kernels::measure_gemm_ceiling(std::clamp<i64>(rows, 1, 2048), std::min<i64>(widest[0], 8192),
                                         std::min<i64>(widest[1], 8192));
  r.peak_flops = sum_over_ranks(b.c, peak);
}

// The model of this machine's speed, if it was measured with these ranks and threads.
std::optional<CostModel> model_of(const Context& context) {
  auto speeds = load_speeds(speed_key({context.mesh().ranks(), kernels::threads()}));
  return speeds ? std::optional<CostModel>(std::move(*speeds)) : std::nullopt;
}

std::vector<MicroBatchExamples> examples_of_step(const Bench& b, const std::vector<MicroBatch>& parts, i64 s,
                                                 i64 rows, i64 length) {
  if (b.data) {
    const auto number = [&](i64 row) { return (s * rows + row) % b.data->size(); };
    return read_examples(*b.data, request_step(parts, number), 1);
  }
  std::vector<MicroBatchExamples> out;
  for (const MicroBatch& m : parts) {
    MicroBatchExamples& e = out.emplace_back();
    e.shape = {
        .rows = m.rows, .mine = shard_range(m.rows, 1, b.c.mesh().dp(), b.c.coord().dp()), .length = length};
    for (i64 row = e.shape.mine.begin; row < e.shape.mine.end; ++row) {
      Example& x = e.mine.emplace_back();
      x.ordinal = m.first + row;
      auto& ids = x.ids["input_ids"];
      ids = random_tokens(static_cast<u64>(s), x.ordinal, length + 1, b.model->vocab_size());
      x.ids["labels"].assign(ids.begin() + 1, ids.end());
      ids.pop_back();
    }
  }
  return out;
}

BenchReport bench_training(Bench& b, const JobConfig& job, i64 steps, bool kernel_times) {
  Context& c = b.c;
  BatchSizes sizes;
  c.world().together([&] { sizes = batch_sizes(job, c.mesh().dp()); });
  BenchReport r;
  r.rows = sizes.global;
  if (!b.data) r.length = job.data.max_length.value_or(b.model->max_length());
  r.steps = steps;

  TrainStep step(*b.pipeline, b.params, step_options(job.train, job.parallel, training_storage(job).weights));
  const auto parts = micro_batches(sizes.global, sizes.per_device, c.mesh().dp());
  std::vector<double> times, flops, waits, weights;
  const std::optional<CostModel> model = kernel_times ? model_of(c) : std::nullopt;
  std::optional<KernelTimes> kernels;
  // The first step after the timed ones only shows what the next one finds in the caches.
  for (i64 s = 0; s <= steps + (kernel_times ? 2 : 0); ++s) {
    if (s == steps + 1) kernels.emplace(c, model ? &*model : nullptr);
    if (s == steps + 2) kernels->begin();
    const std::vector<MicroBatchExamples> examples = examples_of_step(b, parts, s, sizes.global, r.length);
    std::vector<i64> offsets;
    for (const MicroBatch& m : parts) offsets.push_back(m.first);
    c.world().barrier();
    const double begin = seconds();
    const i64 before = c.flops();
    const double waited = c.seconds_waiting();
    std::vector<Batch> batches;
    for (const MicroBatchExamples& m : examples)
      batches.push_back(collate_examples(*b.pipeline, m.mine, m.shape));
    if (b.data)
      for (const MicroBatchExamples& m : examples) r.length = std::max(r.length, m.shape.length);
    const StepOutcome o = step.run(batches, offsets, s, 0, job.train.learning_rate, {});
    const double waiting = c.seconds_waiting() - waited;
    c.world().barrier();
    if (!o.finite)
      throw Error(
          ExitCode::non_finite,
          fmt::format("[bench] step {}: the loss or gradient is not finite. Lower train.learning_rate",
                      s + 1));
    if (s == 0 || s > steps) continue;  // warm-up: page faults, buffers, threads
    times.push_back(seconds() - begin);
    waits.push_back(waiting);
    flops.push_back(static_cast<double>(c.flops() - before));
    weights.push_back(o.weight);
  }
  if (kernels) r.kernels = kernels->kinds();
  kernels.reset();
  r.predicted = model.has_value();
  b.describe(r);
  r.step_s = median(times);
  r.waiting_s = sum_over_ranks(c, median(waits)) / static_cast<double>(r.n_ranks);
  r.tokens_per_s = (b.data ? median(weights) : static_cast<double>(r.rows * r.length)) / r.step_s;
  c.world().barrier();
  set_products(r, b, job, parts[0].rows / c.mesh().dp() * r.length);
  r.step_flops = sum_over_ranks(c, median(flops));
  set_peak(r.step_flops / r.step_s, r.peak_flops, r.peak_flops, r.peak_share);
  return r;
}

// What this rank reads and computes: in the prefill of `rows` prompts of `length` tokens (of an
// encoder-decoder: their encoding and the first token), and in a step that adds one token to the caches of
// `width` answers to each, after which they hold `position` tokens.
struct GenerationWork {
  double prefill_flops = 0, step_flops = 0, step_bytes = 0;
};
GenerationWork generation_work(const Bench& b, const JobConfig& job, i64 rows, i64 width, i64 length,
                               i64 position) {
  const auto meta = Context::meta(b.c.mesh(), b.c.world().rank());
  meta->compute_dtype = b.c.compute_dtype;
  const auto replica = Context::mp_submesh(*meta);
  Context::Use use(*replica);
  const ParamStorage storage = inference_storage(job);
  const int shards = static_cast<int>(job.parallel.n_model_shards);
  const auto sharded = shard_specs(b.pipeline->params().specs, shards, custom_rules(job), storage.weights);
  const ParamTree params = make_params(b.pipeline->params(), sharded.layouts, storage);
  const auto trace = [&](i64 answers, double& prefill, double& step) {
    const i64 before = replica->flops();
    i64 prefilled = before;
    const bool pairs = b.model->is_encoder_decoder();
    const i64 cache =
        trace_generation(*b.model, params, answers, pairs ? length : 0, pairs ? 1 : length, position,
                         job.predict.cache_dtype, [&] { prefilled = replica->flops(); });
    prefill = static_cast<double>(prefilled - before);
    step = static_cast<double>(replica->flops() - prefilled);
    return static_cast<double>(cache);
  };
  GenerationWork w;
  double other = 0;
  trace(rows, w.prefill_flops, other);  // a prompt is computed once, whatever the number of its answers
  w.step_bytes = static_cast<double>(b.weight_bytes_read()) + trace(rows * width, other, w.step_flops);
  return w;
}

BenchReport bench_generation(Bench& b, const JobConfig& job, i64 runs, bool kernel_times) {
  Context& c = b.c;
  BenchReport r;
  r.predict = true;
  const bool pairs = b.model->is_encoder_decoder();
  const GenerationShape shape =
      pairs ? pair_shape(job, b.model->length_limit()) : generation_shape(job, b.model->max_length());
  r.new_tokens = shape.new_tokens;
  r.length = shape.length;
  r.rows = job.predict.batch_size * c.mesh().dp();
  r.steps = runs;
  std::vector<GenerationPrompt> prompts;
  std::vector<Example> sources;  // of an encoder-decoder
  for (i64 i = 0; i < job.predict.batch_size; ++i) {
    const i64 ordinal = c.coord().dp() * job.predict.batch_size + i;
    std::vector<i32> tokens = random_tokens(1, ordinal, r.length, b.model->vocab_size());
    if (pairs) sources.emplace_back().ids["source"] = std::exchange(tokens, {0});
    prompts.push_back({std::move(tokens), ordinal});
  }
  GenerationSettings g = job.predict;
  g.min_new_tokens = 0;
  std::vector<double> prefill, decode, whole;
  const std::optional<CostModel> model = kernel_times ? model_of(c) : std::nullopt;
  for (i64 s = 0; s <= runs + (kernel_times ? 1 : 0); ++s) {
    g.max_new_tokens = s == 0 ? 2 : r.new_tokens;
    c.world().barrier();
    const double begin = seconds();
    std::vector<double> at;
    {
      auto replica = Context::mp_submesh(c);
      Context::Use use(*replica);
      std::optional<KernelTimes> kernels;
      if (s > runs) kernels.emplace(*replica, model ? &*model : nullptr);
      GenerateOptions o{.batch_size = job.predict.batch_size};
      o.on_step = [&] { at.push_back(seconds()); };
      if (pairs)
        o.encode = [&](std::span<const i64> which) {
          return encode_text(*b.model, b.params, sources, which, "source");
        };
      generate(*b.model, b.params, prompts, g, {}, o);
      if (kernels) r.kernels = kernels->kinds();
    }
    c.world().barrier();
    if (s == 0 || s > runs) continue;
    whole.push_back(seconds() - begin);
    prefill.push_back(at.at(0) - begin);
    for (std::size_t i = 1; i < at.size(); ++i) decode.push_back(at[i] - at[i - 1]);
  }
  r.predicted = model.has_value();
  b.describe(r);
  r.step_s = median(decode);
  r.tokens_per_s = static_cast<double>(r.rows * r.new_tokens) / median(whole);
  r.prefill_tokens_per_s = static_cast<double>(r.rows * r.length) / median(prefill);
  r.decode_tokens_per_s = static_cast<double>(r.rows) / r.step_s;
  c.world().barrier();
  // The step in the middle of the answers.
  const GenerationWork w = generation_work(b, job, job.predict.batch_size, g.num_beams, r.length,
                                           (pairs ? 1 : r.length) + r.new_tokens / 2);
  // As many bytes as a decoding step reads: small weights stay in the cache, which is faster than memory.
  const i64 bytes = std::clamp<i64>(static_cast<i64>(w.step_bytes), 64 << 10, i64{128} << 20);
  const double read = sum_over_ranks(c, kernels::measure_read_ceiling(bytes));
  c.world().barrier();
  set_products(r, b, job, job.predict.batch_size * r.length);
  r.step_bytes = sum_over_ranks(c, w.step_bytes);
  r.step_flops = sum_over_ranks(c, w.step_flops);
  const double products = r.peak_flops;
  set_peak(sum_over_ranks(c, w.prefill_flops) / median(prefill), products, r.peak_flops,
           r.prefill_peak_share);
  // Of an encoder-decoder's weights, a step reads some only: the roofline is not known.
  r.has_roofline = !pairs;
  if (pairs) return r;
  // The roofline: the step has to read its bytes and to compute its products, and can do both at the same
  // time.
  set_peak(r.step_bytes / r.step_s, read, r.peak_bytes, r.peak_share);
  r.peak_share = std::max(r.peak_share, kernels::peak_share(r.step_flops / r.step_s, products));
  return r;
}

bool Bench::ckpt_here(const std::string& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (exists(join_path(folder, name))) return true;
  return false;
}

int bench_on_ranks(const JobConfig& job, const BenchOptions& o, Context& c) {
  Bench b(job, !o.predict, c);
  const BenchReport r = o.predict ? bench_generation(b, job, o.steps.value_or(3), o.kernels)
                                  : bench_training(b, job, o.steps.value_or(5), o.kernels);
  c.world().on_first([&] {
    std::fputs((o.json ? to_json(r) : to_text(r)).c_str(), stdout);
    std::fflush(stdout);
  });
  return 0;
}

}  // namespace

std::string to_text(const BenchReport& r) {
  std::string s;
  const auto line = [&](const char* name, const std::string& value) {
    s += fmt::format("{:<12} {}\n", name, value);
  };
  line("model", fmt::format("{} parameters", r.parameters));
  line("mesh", fmt::format("dp {} x mp {}, {} a rank", r.dp, r.mp, counted(r.threads, "thread")));
  if (!r.predict) {
    line("step", fmt::format("{} rows of {} tokens: {}, median of {}", r.rows, r.length,
                             human_duration(r.step_s), r.steps));
    line("training", human_count(r.tokens_per_s) + " tokens/s");
    if (r.n_ranks > 1)
      line("waiting",
           fmt::format("{} of a step for other ranks, mean of the ranks", human_duration(r.waiting_s)));
    line("speed",
         fmt::format("{} of peak matmul speed ({}FLOP/s of {} on all ranks)", human_percent(r.peak_share),
                     human_count(r.peak_flops), r.bf16_products ? "bf16 products" : "sgemm"));
  } else {
    line("generation", fmt::format("{} rows, {} + {} tokens, {} times: {} tokens/s", r.rows, r.length,
                                   r.new_tokens, r.steps, human_count(r.tokens_per_s)));
    line("prompt", human_count(r.prefill_tokens_per_s) + " tokens/s");
    line("decoding", fmt::format("{} tokens/s; a step of one token per row takes {} s, median",
                                 human_count(r.decode_tokens_per_s), human_number(r.step_s)));
    if (r.has_roofline)
      line("speed",
           fmt::format("{} of the roofline: a step reads {} of weights and cache ({}B/s streaming read on "
                       "all ranks) and computes {}FLOP",
                       human_percent(r.peak_share), human_bytes(static_cast<u64>(r.step_bytes)),
                       human_count(r.peak_bytes), human_count(r.step_flops)));
    line("prefill", fmt::format("{} of peak matmul speed ({}FLOP/s of {} on all ranks)",
                                human_percent(r.prefill_peak_share), human_count(r.peak_flops),
                                r.bf16_products ? "bf16 products" : "sgemm"));
  }
  line("peak memory",
       fmt::format("{} of the largest rank", human_bytes(static_cast<u64>(r.peak_memory_bytes))));
  if (!r.kernels.empty()) s += "\n" + to_text(r.kernels, r.predicted);
  return s;
}

std::string to_json(const BenchReport& r) {
  const auto only = [](bool applies, double v) { return applies ? Json(v) : Json(); };
  Json j = {{"mode", r.predict ? "predict" : "train"},
            {"tokens_per_s", r.tokens_per_s},
            {"step_s", r.step_s},
            {"waiting_s", only(!r.predict, r.waiting_s)},
            {"ceiling_share", only(!r.predict || r.has_roofline, r.peak_share)},
            {"prefill_ceiling_share", only(r.predict, r.prefill_peak_share)},
            {"peak_memory_bytes", r.peak_memory_bytes},
            {"prefill_tokens_per_s", only(r.predict, r.prefill_tokens_per_s)},
            {"decode_tokens_per_s", only(r.predict, r.decode_tokens_per_s)},
            {"step_flops", r.step_flops},
            {"step_bytes", only(r.has_roofline, r.step_bytes)},
            {"ceiling_flops_per_s", r.peak_flops},
            {"bf16_products", r.bf16_products},
            {"ceiling_bytes_per_s", only(r.has_roofline, r.peak_bytes)},
            {"n_ranks", r.n_ranks},
            {"dp", r.dp},
            {"mp", r.mp},
            {"threads_per_rank", r.threads},
            {"parameters", r.parameters},
            {"rows", r.rows},
            {"length", r.length},
            {"new_tokens", r.predict ? Json(r.new_tokens) : Json()},
            {"steps", r.steps}};
  for (const auto& [kind, k] : r.kernels)
    j["kernels"].push_back({{"kind", kind},
                            {"calls", k.calls},
                            {"seconds", k.measured},
                            {"predicted_s", only(r.predicted, k.predicted)}});
  return j.dump(2) + "\n";
}

int run_bench(const RunRequest& request, const BenchOptions& o) {
  RunRequest chosen = request;
  if (!o.predict) chosen.job = [&request] { return with_layout(request.job(), false); };
  return run(std::move(chosen), [&](Run& run) {
    const JobConfig& job = run.job();
    if (job.pipeline != "lm")
      run.context().world().together([&] {
        if (o.predict && job.pipeline == "seq2seq") return;
        if (o.predict)
          throw UsageError(
              "[bench] pipeline={} ({}): generation is timed for the pipelines lm and seq2seq only",
              job.pipeline, job.origins.where("pipeline"));
        if (const PipelineInfo* info = pipeline_info(job.pipeline);
            info && info->needs_data && !job.data.has(false))
          throw UsageError(
              "[bench] pipeline={} ({}): data.train is missing; random tokens are made for pipeline lm only",
              job.pipeline, job.origins.where("pipeline"));
      });
    return bench_on_ranks(job, o, run.context());
  });
}

}  // namespace redco
