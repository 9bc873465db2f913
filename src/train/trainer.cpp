#include "train/trainer.h"

#include <cmath>

#include "base/activity.h"
#include "base/call_log.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/timing.h"
#include "base/words.h"
#include "kernels/peak.h"
#include "tensor/profile.h"
#include "train/after_step.h"
#include "train/begin_state.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_saver.h"
#include "train/early_stopping.h"
#include "train/event_log.h"
#include "train/interval.h"
#include "train/learning_rate.h"
#include "train/prefetch.h"
#include "train/replica_check.h"
#include "train/run_evaluations.h"
#include "train/run_length.h"
#include "train/start_report.h"
#include "train/step_order.h"
#include "train/step_profile.h"
#include "train/useless_steps.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

class Training {
 public:
  explicit Training(const TrainJob& job)
      : job_(job),
        c_(Context::current()),
        folder_(join_path(job.workdir, workdir::kCheckpoints)),
        watch_(job.checkpoint.save_best_by, job.train.early_stopping),
        step_(*job.pipeline, *job.params, step_options(job.train, job.parallel, job.weights)),
        saver_(folder_, job.checkpoint.keep_last, copy_of_saves()),
        prefetcher_(job.pipeline->settings->data.n_workers),
        evaluations_(job) {}

  TrainResult run() {
    const Restore<bool> debug(c_.check_finite, job_.train.debug);
    begin();
    if (result_.interrupted) {  // in an evaluation that an earlier signal left pending
      result_.steps = state_.step;
      result_.evaluation_pending = true;
      return result_;
    }
    defer_end();
    if (watch_.exhausted(state_)) stop_early();
    if (job_.eval.at_start && !evaluations_.empty() && state_.step == 0 && !evaluate_at_start())
      return result_;
    const activity::Phase phase("train");
    const double bf16_peak = c_.compute_dtype == ComputeDType::bf16 ? kernels::measure_bf16_ceiling(3) : 0;
    Interval interval(bf16_peak > 0 ? bf16_peak : kernels::measure_gemm_ceiling(512, 768, 768, 3),
                      in_pipeline(*job_.pipeline, "unit()", [&] { return job_.pipeline->unit(); }));
    profile_.emplace(job_.train.profile, job_.workdir, state_.step, total_);
    std::optional<Progress> progress;
    if (first() && job_.progress) progress.emplace("train", total_, state_.step);
    const auto fields = [&] { return interval.fields(epochs(), notes()); };
    // Runs work that is no training step and excludes its time from the speed.
    const auto aside = [&](const auto& f) {
      const double begin = seconds();
      f();
      interval.pause(seconds() - begin);
      if (progress) progress->paused(seconds() - begin);
    };
    std::optional<StepOrder> order;
    bool signal = false;
    saved_at_ = seconds();
    while (state_.step < total_ && !signal && !result_.stopped_early) {
      const StepPlan::Place place = plan_->place(state_.step);
      if (place.epoch != epoch_) {
        signal = !begin_epoch(place.epoch);
        if (signal && saved_step_ != state_.step) aside([&] { save({}, true); });
        if (signal) break;
        order.reset();
      }
      if (!order)
        order.emplace(*data_, static_cast<u64>(job_.train.seed), static_cast<u64>(epoch_),
                      job_.group_by_length, job_.global_batch_size);
      signal = one_step(*order, place, interval);
      if (saver_.in_flight()) aside([&] { saver_.poll(); });
      if (job_.check_replicas_every > 0 && state_.step % job_.check_replicas_every == 0) check_all_replicas();
      const bool last = state_.step == total_;
      if (logs(signal)) {
        Values values = interval.close(epochs(), after_step_.values(*job_.pipeline));
        if (const auto times = saver_.take_times()) {
          values.emplace_back("save_s", times->save_s);
          values.emplace_back("save_stall_s", times->stall_s);
        }
        if (log_) log_->write(state_.step, values);
        if (log_) after_step_.write_histograms(*log_, state_.step);
      }
      if (progress) progress->update(state_.step, fields);

      if (last) {
        aside([&] { finish_save(); });
        useless_.finish(*job_.params);
      }
      // Evaluates before saving, so that the checkpoint knows the best metrics.
      std::vector<std::string> best;
      const bool evaluates = evaluation_due();
      if (evaluates) {
        if (signal) {
          state_.pending_evaluation = true;
        } else {
          aside([&] { signal = !evaluate_now(&best); });
        }
      }
      if (!signal && !last && watch_.exhausted(state_)) stop_early();
      const bool saves = due(job_.checkpoint.every_n_steps, job_.checkpoint.every_n_epochs) || save_due_ ||
                         last || signal || !best.empty() || result_.stopped_early;
      // A save in the background needs further steps.
      const bool waits = !saver_.copies() || last || signal || result_.stopped_early;
      if (saves) aside([&] { save(best, waits); });
      if (buddy_ && !signal && !last && state_.step % job_.buddy_steps == 0) aside([&] { copy_state(); });
      // A request arrived during the evaluation or the save: make no further step.
      if ((evaluates || saves) && !signal && c_.world().any(end_requested() != 0)) {
        signal = true;
        if (!saves) aside([&] { save(best, true); });
      }
    }
    if (buddy_) buddy_->finish();
    aside([&] { finish_save(); });
    if (progress) progress->finish(state_.step, fields());
    result_.steps = state_.step;
    result_.evaluation_pending = state_.pending_evaluation;
    result_.interrupted =
        state_.pending_evaluation || (signal && state_.step < total_ && !result_.stopped_early);
    return result_;
  }

 private:
  bool first() const { return c_.world().rank() == 0; }

  // From the job, or the checkpoint to resume from, to the first step.
  void begin() {
    c_.random.seed = static_cast<u64>(job_.train.seed);
    c_.compute_dtype = job_.train.compute_dtype;
    state_ = state_of_job(job_, step_);
    // The pipeline gets its restored state and parameters before it is asked for examples.
    const RunStart start = find_start(job_.checkpoint.resume, job_.workdir, job_.slurm_job);
    run_ = start.record.run;
    std::optional<TrainState> saved;
    i64 epoch_begin = 0;
    if (!job_.kept_memory.empty())
      buddy_.emplace(job_.kept_memory, host_name(), saved_tensors(*job_.pipeline, step_, {}, ""));
    if (buddy_) saved = begin_from_copy(job_, start, state_, *buddy_);
    if (!saved && !start.checkpoint.empty())
      saved = begin_from_checkpoint(job_, start, state_, all_contents());
    if (!saved) {
      step_.start_averages();
    } else {
      continue_from(*saved);
      const StepPlan was(saved->n_examples, job_.global_batch_size);
      if (saved->pending_evaluation) make_pending_evaluation(start, was);
      epoch_ = was.place(state_.step).epoch;
      total_ = total_steps(job_.train, was);
      epoch_begin = state_.step - was.place(state_.step).step_in_epoch;
    }
    if (result_.interrupted) return;
    data_ = examples_of(epoch_, epoch_begin);
    c_.random.step = 0;  // the same for a new and a resumed run
    evaluations_.open();
    if (evaluations_.empty() && watch_.watches_any())
      throw UsageError(
          "[eval] checkpoint.save_best_by and train.early_stopping need an evaluation. Set data.eval");
    if (saved) check_same_data(start.checkpoint, *saved, state_, state_.step == epoch_begin);
    prepare(start, StepPlan(data_->size(), job_.global_batch_size));
    if (job_.eval.sanity_check && !evaluations_.empty() && state_.step == 0)
      watch_.check(evaluations_.run(true).metrics);
  }

  // Prepares steps and logs: once, before the first step.
  void prepare(const RunStart& start, const StepPlan& plan) {
    plan_.emplace(plan);
    total_ = total_steps(job_.train, *plan_);
    step_.set_total_steps(total_);
    schedule_ = schedule_of(job_.train, total_);
    if (opened_) return;
    opened_ = true;
    call_log::save_to(join_path(job_.workdir, workdir::calls_of_rank(c_.rank())),
                      fmt::format("rank {} on {}", c_.rank(), host_name()));
    c_.world().on_first([&] {
      run_ = open_run(job_.workdir, start, state_.step);
      if (job_.on_begin) job_.on_begin(state_.step, total_, run_.start);
    });
    if (first()) {
      if (!start.checkpoint.empty() && start.step == state_.step)
        info("[checkpoint] resuming from {} (step {} of {})", start.checkpoint, state_.step, total_);
      report_start();
      log_ = std::make_unique<MetricsLog>(job_.workdir, state_.step);
    }
    c_.world().on_first([&] { set_workdir_back(job_.workdir, start, state_); });
    if (buddy_ && !buddy_->open(run_)) buddy_.reset();
  }

  void report_start() const {
    const TrainingStart s{.examples = state_.n_examples,
                          .steps_per_epoch = plan_->steps_per_epoch(),
                          .step = state_.step,
                          .global_batch_size = job_.global_batch_size,
                          .per_device_batch_size = job_.per_device_batch_size,
                          .dp = c_.mesh().dp(),
                          .schedule = schedule_,
                          .checkpoint = job_.checkpoint,
                          .workdir = job_.workdir};
    for (const std::string& line : start_lines(s)) info("[train] {}", line);
    for (const std::string& warning : start_warnings(s)) warn("[train] {}", warning);
    if (!evaluations_.empty() && !evaluations_.have_results())
      warn(
          "[eval] evaluations have no result: the pipeline evaluates no loss, and its answers have no metrics. "
          "Set eval.n_outputs to keep answers");
  }

  // Makes the evaluation of the checkpoint's step that a signal prevented, at the point where the
  // uninterrupted run made it: before the next epoch's source() is called.
  void make_pending_evaluation(const RunStart& start, const StepPlan& plan) {
    defer_end();
    prepare(start, plan);
    epoch_ = plan.place(state_.step - 1).epoch;
    evaluations_.open();
    std::vector<std::string> best;
    if (!evaluations_.empty() && !evaluate_now(&best)) {
      result_.interrupted = true;
    } else {
      state_.pending_evaluation = false;
      save(best, true);
    }
    plan_.reset();  // the examples determine it, see examples_of()
  }

  void continue_from(const TrainState& saved) {
    step_.loaded();
    step_.set_updates(saved.optimizer_steps, saved.group_steps);
    state_.step = saved.step;
    state_.best = saved.best;
    state_.best_step = saved.best_step;
    state_.waiting = saved.waiting;
    state_.pending_evaluation = saved.pending_evaluation;
    state_.n_examples = saved.n_examples;
    state_.data_fingerprint = saved.data_fingerprint;
    in_pipeline(*job_.pipeline, "restore()", [&] { job_.pipeline->restore(saved.pipeline_state); });
  }

  double epochs() const {
    return static_cast<double>(state_.step) / static_cast<double>(plan_->steps_per_epoch());
  }

  // After a step, with the epoch's number in epoch_.
  bool due(const std::optional<i64>& steps, const std::optional<i64>& epochs) const {
    const bool ends_epoch = state_.step % plan_->steps_per_epoch() == 0;
    return (steps && state_.step % *steps == 0) || (epochs && ends_epoch && (epoch_ + 1) % *epochs == 0);
  }
  bool is_time_to_save() const {
    const auto& minutes = job_.checkpoint.every_minutes;
    return minutes && seconds() - saved_at_ >= 60 * *minutes;
  }
  bool periodic_evaluation() const { return due(job_.eval.every_n_steps, job_.eval.every_n_epochs); }
  bool evaluation_due() const {
    return !evaluations_.empty() && (periodic_evaluation() || state_.step == total_);
  }

  CheckpointContents contents() {
    CheckpointContents out = saved_tensors(*job_.pipeline, step_, job_.checkpoint, job_.adapter_config);
    out.aliases = job_.pipeline->all_params().aliases;
    out.tokenizer = job_.pipeline->tokenizer;
    out.generation_config = job_.generation_config;
    out.chat_template = job_.chat_template;
    out.job_yaml = job_.job_yaml;
    out.weights_folder = job_.pipeline->settings->weights_folder;
    out.run = run_;
    return out;
  }

  // With the optimizer's state, for loading it.
  CheckpointContents all_contents() {
    CheckpointContents out = contents();
    out.optimizer = step_.state();
    return out;
  }

  // The examples of the epoch that begins with step `begin`; its random draws are keyed by that step,
  // wherever the run resumes. All epochs have the same number of examples, because steps are counted by it.
  std::shared_ptr<const Dataset> examples_of(i64 epoch, i64 begin) {
    StepContext ctx;
    ctx.step = c_.random.step = begin;
    ctx.epoch = epoch;
    ctx.total_steps = epoch > 0 ? total_ : total_steps(job_.train);
    c_.random.row_offset = 0;
    c_.phase = "source";
    auto data =
        in_pipeline(*job_.pipeline, "source()", [&] { return job_.pipeline->source(*job_.params, ctx); });
    check_examples(data.get());
    if (plan_ && data->size() != state_.n_examples)
      throw UsageError(
          "[pipeline] source() returned {} examples for epoch {} and {} before; expected the same number",
          data->size(), epoch, state_.n_examples);
    state_.n_examples = data->size();
    state_.data_fingerprint = data->fingerprint() + (job_.group_by_length ? "/by length" : "");
    return data;
  }

  // False if a signal stopped source(): the pipeline's state is still that of the epoch before.
  bool begin_epoch(i64 epoch) {
    try {
      data_ = examples_of(epoch, state_.step);
    } catch (const Error& error) {
      if (error.code() != ExitCode::interrupted) throw;
      return false;
    }
    epoch_ = epoch;
    return true;
  }
  std::vector<MicroBatch> micro_batches_of(const StepPlan::Place& place) const {
    return micro_batches(place.end - place.begin, job_.per_device_batch_size, c_.mesh().dp());
  }
  StepRequest request(const StepOrder& order, const StepPlan::Place& place) const {
    return request_step(micro_batches_of(place), [&](i64 row) { return order.at(place.begin + row); });
  }

  // Returns whether a rank received a request to stop.
  bool one_step(const StepOrder& order, const StepPlan::Place& place, Interval& interval) {
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    for (const MicroBatch& m : micro_batches_of(place)) offsets.push_back(m.first);
    const StepPlan::Place next = plan_->place(state_.step + 1);
    const bool ahead =
        next.epoch == place.epoch && state_.step + 1 < total_ && prefetcher_.reads_ahead(*data_);
    profile_->begin(state_.step + 1);
    {
      const ProfilePhase profiled("data");
      for (const MicroBatchExamples& m :
           prefetcher_.take(data_, request(order, place), ahead ? request(order, next) : StepRequest{}))
        batches.push_back(collate_examples(*job_.pipeline, m.mine, m.shape));
    }
    const double lr = schedule_.at(state_.step);
    const i64 flops = c_.flops();
    const double waited = c_.seconds_waiting();
    const StepOutcome o = step_.run(batches, offsets, state_.step, place.epoch, lr, end_requested() != 0,
                                    first() && is_time_to_save());
    save_due_ = o.save_due;
    if (first())
      for (const auto& line : {unreached_line(*job_.params, o.unreached), repeated_key_line(o.repeated_key),
                               router_loss_line(job_.pipeline->model, o.terms)})
        if (!line.empty()) warn("[train] {}", line);
    if (!o.finite && job_.train.on_non_finite == OnNonFinite::stop) finish_save();
    useless_.add(o, state_.step + 1, job_.train.on_non_finite, *job_.params);
    ++state_.step;
    activity::set_step(state_.step);
    profile_->end(state_.step, state_.step == total_ || o.signal);
    interval.add(o, lr, c_.flops() - flops, c_.seconds_waiting() - waited);
    if (o.finite) after_step_.call(*job_.pipeline, *job_.params, o, context_after(o));
    result_.last_loss = o.loss;
    return o.signal;
  }

  // Whether metrics.jsonl has a line of the step that was made.
  bool logs(bool signal) const {
    return state_.step % job_.train.logging_steps == 0 || state_.step == total_ || signal;
  }
  StepContext context_after(const StepOutcome& o) const {
    StepContext ctx;
    ctx.step = state_.step - 1;
    ctx.epoch = epoch_;
    ctx.total_steps = total_;
    ctx.logged = logs(o.signal);
    return ctx;
  }

  std::map<std::string, double> notes() const {
    return in_pipeline(*job_.pipeline, "notes()", [&] { return job_.pipeline->notes(); });
  }

  // The metrics of the initial parameters. They are reported only: neither the best checkpoint nor early
  // stopping counts them. false: a signal stopped it; nothing has to be saved.
  bool evaluate_at_start() {
    const double begin = seconds();
    try {
      report(evaluations_.run(), begin);
    } catch (const Error& error) {
      if (error.code() != ExitCode::interrupted) throw;
      result_.interrupted = true;
      return false;
    }
    return true;
  }

  // Adds the metrics with a new best value to `best`. Returns false if a signal stopped the evaluation, which
  // is then pending.
  bool evaluate_now(std::vector<std::string>* best) {
    const double begin = seconds();
    Evaluation e;
    try {
      e = evaluations_.run();
    } catch (const Error& error) {
      if (error.code() != ExitCode::interrupted) throw;
      state_.pending_evaluation = true;
      return false;
    }
    result_.evaluation = e.metrics;
    report(e, begin);
    *best = watch_.see(e.metrics, periodic_evaluation(), state_);
    return true;
  }

  // `begin`: seconds() when the evaluation began.
  void report(const Evaluation& e, double begin) {
    c_.world().on_first([&] { evaluations_.report(e, state_.step, epochs(), seconds() - begin, *log_); });
  }

  void stop_early() {
    result_.stopped_early = true;
    result_.steps = state_.step;
    if (first()) info("[train] early stopping after step {}: {}", state_.step, watch_.why(state_));
  }

  void check_all_replicas() {
    if (checked_step_ == state_.step) return;
    check_replicas(*job_.params, state_.step);
    checked_step_ = state_.step;
  }

  std::vector<ckpt::CopyQueue::Size> copy_of_saves() {
    if (!job_.checkpoint.async_save) return {};
    return copy_sizes(saved_tensors(*job_.pipeline, step_, job_.checkpoint, job_.adapter_config),
                      job_.checkpoint, c_.mesh().ranks());
  }

  // waits: until the checkpoint is published. Otherwise a later step publishes it.
  void save(const std::vector<std::string>& best, bool waits) {
    const activity::Phase phase("save");
    saved_step_ = state_.step;
    if (job_.check_replicas_every > 0) check_all_replicas();  // what differs is not saved
    complete_state();
    saver_.begin(contents(), state_, best);
    saved_at_ = seconds();
    if (waits) finish_save();
  }

  void complete_state() {
    state_.optimizer_steps = step_.updates();
    state_.group_steps = step_.group_updates();
    state_.pipeline_state = state_of(*job_.pipeline);
  }

  void copy_state() {
    const activity::Phase phase("copy");
    if (job_.check_replicas_every > 0) check_all_replicas();
    complete_state();
    buddy_->save(state_);
  }

  void finish_save() {
    const activity::Phase phase("save");
    saver_.finish();
    result_.saved = saver_.has_saved();
  }

  const TrainJob& job_;
  Context& c_;
  std::string folder_;
  ckpt::RunIdentity run_;  // set on the first rank
  MetricWatch watch_;
  TrainStep step_;
  CheckpointSaver saver_;
  std::optional<BuddyCopies> buddy_;
  Prefetcher prefetcher_;
  RunEvaluations evaluations_;
  std::optional<StepPlan> plan_;
  std::optional<StepProfile> profile_;
  i64 total_ = 0, epoch_ = 0;
  bool opened_ = false, save_due_ = false;   // every_minutes have passed; the same on all ranks
  i64 checked_step_ = -1, saved_step_ = -1;  // of the last check of the replicas, and of the last save
  double saved_at_ = 0;                      // seconds() of the last save, or of the first step
  Schedule schedule_;
  TrainState state_;
  UselessSteps useless_;
  TrainResult result_;
  AfterStep after_step_;
  std::shared_ptr<const Dataset> data_;
  std::unique_ptr<MetricsLog> log_;  // set on the first rank
};

}  // namespace

TrainResult train(const TrainJob& job) { return Training(job).run(); }

}  // namespace redco
