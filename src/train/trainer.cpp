#include "train/trainer.h"

#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <csignal>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/words.h"
#include "data/epoch_order.h"
#include "kernels/gemm.h"
#include "train/event_log.h"

namespace redco {

namespace {

volatile std::sig_atomic_t g_signal = 0;
void on_signal(int s) { g_signal = s; }

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// This replica's rows of a micro-batch that holds the examples [first, first + rows) of `order`.
template <class At>
Batch collate_rows(Pipeline& p, const Dataset& data, i64 first, i64 rows, const At& at) {
  Context& c = Context::current();
  BatchShape s{.rows = rows, .mine = shard_range(rows, 1, c.mesh().dp, c.coord().dp), .length = 0};
  for (i64 r = 0; r < rows; ++r) s.length = std::max(s.length, data.length(at(first + r)));
  std::vector<Example> mine;
  for (i64 r = s.mine.begin; r < s.mine.end; ++r) mine.push_back(data.get(at(first + r)));
  return in_pipeline("collate()", [&] { return p.collate(mine, s); });
}

Schedule make_schedule(const TrainSettings& t, i64 total) {
  Schedule s;
  s.kind = t.schedule == "linear"   ? Schedule::Kind::linear
           : t.schedule == "cosine" ? Schedule::Kind::cosine
                                    : Schedule::Kind::constant;
  s.peak = t.learning_rate;
  s.total_steps = total;
  s.warmup_steps = t.warmup_steps ? *t.warmup_steps
                                  : static_cast<i64>(std::ceil(t.warmup_ratio * static_cast<double>(total)));
  return s;
}

class Training {
 public:
  explicit Training(const TrainJob& job)
      : job_(job),
        c_(Context::current()),
        folder_(join_path(job.workdir, "checkpoints")),
        step_(*job.pipeline, *job.params,
              {.clip_grad_norm = job.train.clip_grad_norm,
               .recompute_blocks = job.train.recompute == "block",
               .adamw = {.beta1 = job.train.adam_beta1,
                         .beta2 = job.train.adam_beta2,
                         .epsilon = job.train.adam_epsilon,
                         .weight_decay = job.train.weight_decay,
                         .decay_norms_and_biases = job.train.decay_norms_and_biases}}) {}

  TrainResult run() {
    c_.random.seed = static_cast<u64>(job_.train.seed);
    c_.compute_dtype = job_.train.compute_dtype == "bf16" ? ComputeDType::bf16 : ComputeDType::fp32;
    state_ = {
        .seed = job_.train.seed,
        .global_batch_size = job_.global_batch_size,
        .tokenizer_fingerprint = job_.pipeline->tokenizer ? job_.pipeline->tokenizer->fingerprint() : "",
        .pipeline = job_.pipeline_name,
        .threads_per_rank = job_.threads_per_rank,
        .dp = c_.mesh().dp,
        .mp = c_.mesh().mp,
        .compute_dtype = job_.train.compute_dtype,
        .isa = job_.isa};
    // The pipeline sees its restored state and parameters before it is asked for examples.
    const std::optional<TrainState> saved = resume();
    if (!saved) step_.start_averages();
    i64 epoch = 0, epoch_begin = 0;
    if (saved) {
      const StepPlan was(saved->n_examples, job_.global_batch_size);
      epoch = was.place(state_.step).epoch;
      epoch_begin = state_.step - was.place(state_.step).step_in_epoch;
    }
    auto data = examples_of(epoch, epoch_begin);
    c_.random.step = 0;  // resumed or not: the same
    eval_data_ = in_pipeline("evaluation()", [&] { return job_.pipeline->evaluation(); });
    if (saved) check_data(*saved);
    plan_.emplace(data->size(), job_.global_batch_size);
    total_ = total_steps();
    schedule_ = make_schedule(job_.train, total_);
    if (saved && first())
      info("[checkpoint] going on from {} (step {} of {})", resumed_from_, state_.step, total_);
    if (first()) log_ = std::make_unique<MetricsLog>(job_.workdir, state_.step);

    if (job_.eval.sanity_check && eval_data_ && state_.step == 0)
      evaluate(step_, *job_.pipeline, *eval_data_, job_.per_device_batch_size, 1);

    std::optional<Progress> progress;
    if (first() && job_.progress) progress.emplace("train", total_, state_.step);
    auto order_of = [&] {
      return EpochOrder(data->size(), static_cast<u64>(job_.train.seed), static_cast<u64>(epoch));
    };
    EpochOrder order = order_of();
    interval_begin_ = seconds();
    while (state_.step < total_) {
      const StepPlan::Place place = plan_->place(state_.step);
      if (place.epoch != epoch) {
        epoch = place.epoch;
        data = examples_of(epoch, state_.step);
        order = order_of();
      }
      one_step(*data, order, place);
      const bool ends_epoch = place.step_in_epoch + 1 == plan_->steps_per_epoch();
      const bool last = state_.step == total_;
      if (progress) progress->update(state_.step, [&] { return fields(); });
      if (state_.step % job_.train.logging_steps == 0 || last || stop_) log_line(place.epoch);

      // Evaluate, then save, so that the best are known when the checkpoint is made.
      std::vector<std::string> best;
      if (due(job_.eval.every_n_steps, job_.eval.every_n_epochs, ends_epoch, place.epoch) || last)
        best = evaluate_now(place.epoch);
      if (due(job_.checkpoint.every_n_steps, job_.checkpoint.every_n_epochs, ends_epoch, place.epoch) ||
          last || stop_ || !best.empty())
        save(best);
      if (stop_) break;
    }
    if (progress) progress->finish(state_.step, fields());
    result_.steps = state_.step;
    result_.interrupted = stop_ && state_.step < total_;
    return result_;
  }

 private:
  bool first() const { return c_.world().rank() == 0; }

  i64 total_steps() const {
    const auto& t = job_.train;
    const i64 by_epochs =
        t.n_epochs.value_or(t.max_steps ? std::numeric_limits<i64>::max() / plan_->steps_per_epoch() : 1) *
        plan_->steps_per_epoch();
    return t.max_steps ? std::min(*t.max_steps, by_epochs) : by_epochs;
  }

  bool due(const std::optional<i64>& steps, const std::optional<i64>& epochs, bool ends_epoch,
           i64 epoch) const {
    return (steps && state_.step % *steps == 0) || (epochs && ends_epoch && (epoch + 1) % *epochs == 0);
  }

  CheckpointContents contents() {
    return {.model = job_.pipeline->model,
            .aliases = job_.pipeline->params().aliases,
            .tokenizer = job_.pipeline->tokenizer,
            .params = job_.params,
            .optimizer = job_.checkpoint.save_optimizer ? &step_.optimizer() : nullptr,
            .generation_config = job_.generation_config,
            .dtype = job_.checkpoint.dtype == "bf16" ? ckpt::StoredType::bf16 : ckpt::StoredType::f32};
  }

  // The examples of the epoch that begins with step `begin`, whose random draws they have wherever the run
  // goes on. An epoch has as many as the one before: the steps are counted by them.
  std::shared_ptr<const Dataset> examples_of(i64 epoch, i64 begin) {
    StepContext ctx;
    ctx.step = c_.random.step = begin;
    ctx.epoch = epoch;
    c_.random.row_offset = 0;
    c_.set_phase("source");
    auto data = in_pipeline("source()", [&] { return job_.pipeline->source(*job_.params, ctx); });
    if (!data || data->size() == 0) throw ContentsError("[data] the training data hold no example");
    if (plan_ && data->size() != state_.n_examples)
      throw UsageError(
          "[pipeline] source() gave {} examples for epoch {} and {} before; every epoch must have as many",
          data->size(), epoch, state_.n_examples);
    state_.n_examples = data->size();
    state_.data_fingerprint = data->fingerprint();
    return data;
  }

  template <class T>
  void same(const char* what, const T& was, const T& is) const {
    if (was != is)
      throw UsageError(
          "[checkpoint] {} was made with {}={}, this job has {}: the run could not go on as if never "
          "stopped; "
          "restore it, or start anew in another workdir or with checkpoint.resume=never",
          resumed_from_, what, was, is);
  }
  void check_data(const TrainState& saved) const {
    same("number of training examples", saved.n_examples, state_.n_examples);
    same("training data", saved.data_fingerprint, state_.data_fingerprint);
  }

  // What was saved, where there is a checkpoint to go on from.
  std::optional<TrainState> resume() {
    const std::string& how = job_.checkpoint.resume;
    if (how == "never") return std::nullopt;
    std::string path;
    c_.world().on_first([&] {
      if (how != "auto") {
        path = how;
        if (!exists(join_path(how, "training/state.json")))
          throw UsageError(
              "[checkpoint] checkpoint.resume={}: expected auto, never, or the folder of a checkpoint made "
              "by training",
              how);
        return;
      }
      const auto found = ckpt::CheckpointFolder(folder_).find_newest_whole(false);
      for (const auto& p : found.passed_over)
        warn("[checkpoint] passing over {}: {}", join_path(folder_, p.name), p.reason);
      if (found) {
        path = found.path;
        for (const auto& [name, version] : algorithm_versions()) {
          const auto it = found.manifest.versions.find(name);
          if (it != found.manifest.versions.end() && it->second != version)
            throw ContentsError(
                "[checkpoint] {}: made with version {} of {}, this redco has {}: it can't be resumed exactly",
                path, it->second, name, version);
        }
      } else if (!found.passed_over.empty()) {
        warn("[checkpoint] {} holds no whole checkpoint: starting anew", folder_);
      }
    });
    path = c_.world().agree(path);
    if (path.empty()) return std::nullopt;
    resumed_from_ = path;
    const std::string state_path = join_path(path, "training/state.json");
    const TrainState saved = parse_state(read_file(state_path, 1 << 26), state_path);
    same("train.seed", saved.seed, state_.seed);
    same("train.global_batch_size", saved.global_batch_size, state_.global_batch_size);
    same("pipeline", saved.pipeline, state_.pipeline);
    same("tokenizer", saved.tokenizer_fingerprint, state_.tokenizer_fingerprint);
    if (first() && (saved.threads_per_rank != state_.threads_per_rank || saved.dp != state_.dp ||
                    saved.mp != state_.mp || saved.isa != state_.isa))
      warn(
          "[checkpoint] {} was made on dp {} x mp {}, {} threads, {}: results agree up to rounding, not bit "
          "by bit",
          path, saved.dp, saved.mp, saved.threads_per_rank, saved.isa);
    if (!exists(join_path(path, "training/optimizer.safetensors")) &&
        !exists(join_path(path, "training/optimizer.safetensors.index.json")))
      throw UsageError(
          "[checkpoint] {} holds no optimizer state (checkpoint.save_optimizer was false): it can't be "
          "resumed; "
          "use it as model.path in a new workdir",
          path);
    CheckpointContents what = contents();
    what.optimizer = &step_.optimizer();
    load_checkpoint_tensors(path, what, *job_.params);
    step_.set_updates(saved.optimizer_steps, saved.group_steps);
    state_.step = saved.step;
    state_.best = saved.best;
    in_pipeline("restore()", [&] { job_.pipeline->restore(saved.pipeline_state); });
    return saved;
  }

  void one_step(const Dataset& data, const EpochOrder& order, const StepPlan::Place& place) {
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    for (const MicroBatch& m :
         micro_batches(place.end - place.begin, job_.per_device_batch_size, c_.mesh().dp)) {
      batches.push_back(collate_rows(*job_.pipeline, data, place.begin + m.first, m.rows,
                                     [&](i64 i) { return order.at(i); }));
      offsets.push_back(m.first);
    }
    const double lr = schedule_.at(state_.step);
    const i64 flops = c_.ledger().flops();
    const StepOutcome o =
        step_.run(batches, offsets, state_.step, place.epoch, lr, {.signal = signal_received()});
    stop_ = stop_ || o.signal;
    if (!o.finite) {
      const std::string what =
          fmt::format("[train] step {}: the loss or gradient is not finite (loss {}, gradient norm {})",
                      state_.step + 1, o.loss, o.grad_norm);
      if (job_.train.on_non_finite == "stop") {
        if (first()) warn("{}; nothing was updated", what);
        throw Error(ExitCode::non_finite, what +
                                              "; the last checkpoint is whole. Lower train.learning_rate, or "
                                              "set train.on_non_finite: skip to pass over such steps");
      }
      if (first()) warn("{}: skipped", what);
      ++skipped_;
    }
    ++state_.step;
    ++interval_steps_;
    if (o.finite) {
      interval_loss_ += o.loss;
      for (const auto& [name, mean] : o.terms) interval_terms_[name] += mean;
      ++interval_finite_;
    }
    interval_weight_ += o.weight;
    interval_flops_ += c_.ledger().flops() - flops;
    last_ = o;
    last_lr_ = lr;
    result_.last_loss = o.loss;
  }

  Progress::Fields fields() const {
    const double t = seconds() - interval_begin_;
    Progress::Fields f = {{"loss", fmt::format("{:.4f}", last_.loss)},
                          {"lr", fmt::format("{:.2e}", last_lr_)},
                          {"grad norm", fmt::format("{:.2f}", last_.grad_norm)}};
    const double rate = interval_steps_ ? interval_weight_ / t : last_rate_;
    f.push_back({"", fmt::format("{:.0f} tokens/s", rate)});
    return f;
  }

  void log_line(i64 epoch) {
    const double t = seconds() - interval_begin_;
    last_rate_ = interval_weight_ / t;
    if (ceiling_ == 0) ceiling_ = kernels::measure_gemm_ceiling(512, 768, 768, 3);
    if (first()) {
      std::vector<std::pair<std::string, double>> v = {
          {"epoch", static_cast<double>(state_.step) / static_cast<double>(plan_->steps_per_epoch())},
          {"loss", interval_finite_ ? interval_loss_ / static_cast<double>(interval_finite_) : NAN},
          {"learning_rate", last_lr_},
          {"grad_norm", last_.grad_norm},
          {"tokens_per_s", last_rate_},
          {"step_s", t / static_cast<double>(interval_steps_)},
          {"ceiling_share", static_cast<double>(interval_flops_) / t / ceiling_},
          {"peak_memory_bytes", static_cast<double>(peak_memory_bytes())}};
      if (interval_terms_.size() > 1)
        for (const auto& [name, s] : interval_terms_)
          v.push_back({"loss_" + name, s / static_cast<double>(interval_finite_)});
      if (skipped_ > 0) v.push_back({"skipped_steps", static_cast<double>(skipped_)});
      log_->write(state_.step, v);
      (void)epoch;
    }
    interval_begin_ = seconds();
    interval_steps_ = interval_finite_ = interval_flops_ = 0;
    interval_loss_ = interval_weight_ = 0;
    interval_terms_.clear();
  }

  // -> metrics that are the best so far.
  std::vector<std::string> evaluate_now(i64 epoch) {
    if (!eval_data_) return {};
    const double begin = seconds();
    const auto metrics = evaluate(step_, *job_.pipeline, *eval_data_, job_.per_device_batch_size);
    result_.evaluation = metrics;
    if (first()) {
      std::vector<std::pair<std::string, double>> v = {
          {"epoch", static_cast<double>(state_.step) / static_cast<double>(plan_->steps_per_epoch())}};
      std::string text;
      for (const auto& [name, value] : metrics) {
        v.push_back({"eval_" + name, value});
        text += fmt::format("  {} {:.4f}", name, value);
      }
      log_->write(state_.step, v);
      info("step {} evaluation:{}  ({})", state_.step, text, human_duration(seconds() - begin));
      (void)epoch;
    }
    interval_begin_ += seconds() - begin;
    std::vector<std::string> best;
    auto consider = [&](const std::string& name, bool larger) {
      const auto it = metrics.find(name);
      if (it == metrics.end())
        throw UsageError(
            "[checkpoint] save_best_by names '{}', which this pipeline's evaluation does not have", name);
      const auto old = state_.best.find(name);
      if (old != state_.best.end() && !(larger ? it->second > old->second : it->second < old->second)) return;
      state_.best[name] = it->second;
      best.push_back(name);
    };
    for (const std::string& m : job_.checkpoint.save_best_by.max) consider(m, true);
    for (const std::string& m : job_.checkpoint.save_best_by.min) consider(m, false);
    return best;
  }

  void save(const std::vector<std::string>& best) {
    const double begin = seconds();
    state_.optimizer_steps = step_.updates();
    state_.group_steps = step_.group_updates();
    state_.pipeline_state = in_pipeline("state()", [&] { return job_.pipeline->state(); });
    if (!is_json(state_.pipeline_state))
      throw UsageError("[pipeline] state() gave no JSON: {}", excerpt(state_.pipeline_state));
    save_checkpoint(folder_, contents(), state_, best, job_.checkpoint.keep_last);
    if (first()) debug("saved {} in {}", ckpt::step_name(state_.step), human_duration(seconds() - begin));
    interval_begin_ += seconds() - begin;
  }

  const TrainJob& job_;
  Context& c_;
  std::string folder_;
  TrainStep step_;
  std::optional<StepPlan> plan_;
  i64 total_ = 0;
  Schedule schedule_;
  TrainState state_;
  TrainResult result_;
  std::shared_ptr<const Dataset> eval_data_;
  std::string resumed_from_;
  StepOutcome last_;
  double last_lr_ = 0, last_rate_ = 0, ceiling_ = 0;
  bool stop_ = false;
  i64 skipped_ = 0;
  double interval_begin_ = 0, interval_loss_ = 0, interval_weight_ = 0;
  std::map<std::string, double> interval_terms_;
  i64 interval_steps_ = 0, interval_finite_ = 0, interval_flops_ = 0;
  std::unique_ptr<MetricsLog> log_;
};

}  // namespace

void install_signal_handlers() {
  struct sigaction a {};
  a.sa_handler = on_signal;
  for (int s : {SIGTERM, SIGUSR1, SIGINT}) sigaction(s, &a, nullptr);
}
bool signal_received() { return g_signal != 0; }

std::map<std::string, double> evaluate(TrainStep& step, Pipeline& pipeline, const Dataset& data,
                                       i64 per_device, i64 max_batches) {
  const auto parts = micro_batches(data.size(), per_device, Context::current().mesh().dp);
  size_t i = 0;
  const size_t n = max_batches >= 0 ? std::min<size_t>(parts.size(), max_batches) : parts.size();
  const auto means = step.evaluate([&](Batch* b) {
    if (i == n) return false;
    *b = collate_rows(pipeline, data, parts[i].first, parts[i].rows, [](i64 k) { return k; });
    ++i;
    return true;
  });
  return in_pipeline("metrics()", [&] { return pipeline.metrics(means); });
}

TrainResult train(const TrainJob& job) { return Training(job).run(); }

}  // namespace redco
