#include "run/supervise.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/kept_memory.h"
#include "base/lease.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/timing.h"
#include "base/words.h"
#include "ckpt/publish.h"
#include "comm/mpi_library.h"
#include "launch/child_process.h"
#include "launch/exec.h"
#include "launch/host_networks.h"
#include "launch/keepers.h"
#include "launch/rank_errors.h"
#include "launch/supervisor.h"
#include "launch/watch/wire.h"
#include "run/agreement.h"
#include "run/handed_job.h"
#include "workdir/run_history.h"
#include "workdir/run_record.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

using Kind = Outcome::Kind;
constexpr double kAskAgain = 10;  // s between two questions to hosts that did not answer

// The step of the newest complete checkpoint of the workdir; -1: none.
i64 newest_checkpoint(const std::string& workdir) {
  if (workdir.empty()) return -1;
  try {
    for (const auto& e : ckpt::CheckpointFolder(join_path(workdir, workdir::kCheckpoints)).survey())
      if (e.kind == ckpt::CheckpointFolder::Entry::whole) return e.step;
  } catch (const Error&) {  // the next start reports it
  }
  return -1;
}

std::string run_of(const std::string& workdir) {
  try {
    const auto record = workdir.empty() ? std::nullopt : read_run_record(workdir);
    return record ? record->run.id : "";
  } catch (const Error&) {
    return "";
  }
}

// Ranks that were killed, or that hung, have written no end into the workdir's history: the launcher does it.
// `size`: of the history before they were started. REQUIRES: all ranks have ended.
void record_end_of_ranks(const std::string& workdir, i64 size, const Outcome& outcome) {
  if (outcome.code == 0 || ckpt::run_history_size(workdir) <= size) return;  // they never began to train
  using Event = ckpt::RunEvent::Kind;
  try {
    const auto events = ckpt::read_run_history(workdir, 64 << 10).events;
    if (events.empty() || events.back().kind != Event::start) return;
  } catch (const Error&) {
    return;
  }
  const bool stopped = outcome.kind == Kind::stopped;
  const std::string message = outcome_message(outcome);
  ckpt::append_run_event(workdir, {.kind = stopped ? Event::stopped : Event::failed,
                                   .step = outcome.step,
                                   .reason = stopped            ? "a second signal, without a save"
                                             : !message.empty() ? message
                                                                : "the ranks ended without a message",
                                   .code = outcome.code});
}

std::string names_of(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& h : hosts) text += (text.empty() ? "" : ", ") + h.name;
  return text;
}

// Asks hosts from time to time whether they can run ranks again.
class ReturnWatch {
 public:
  explicit ReturnWatch(std::function<bool()> ask) : thread_([this, ask = std::move(ask)] { run(ask); }) {}
  ~ReturnWatch() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  ReturnWatch(const ReturnWatch&) = delete;
  ReturnWatch& operator=(const ReturnWatch&) = delete;
  bool answered() const { return answered_; }

 private:
  void run(const std::function<bool()>& ask) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::duration<double>(kAskAgain), [&] { return ends_; })) {
      lock.unlock();
      const bool yes = ask();
      lock.lock();
      if (yes) answered_ = true;
      if (yes) return;
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::atomic<bool> answered_{false};
  std::thread thread_;
};

class Launcher {
 public:
  Launcher(const ResolvedJob& job, LaunchRequest launch, const SuperviseOptions& options)
      : given_(job),
        launch_(std::move(launch)),
        options_(options),
        workdir_(job.job().workdir.value_or("")),
        hosts_(hosts_of_job(launch_.hosts, launch_.hostfile)),
        key_(random_key()),
        run_before_(run_of(workdir_)),
        rules_(options.restarts ? RestartRules{job.job().fault.max_restarts, job.job().fault.shrink_batch}
                                : RestartRules{.max_restarts = 0}),
        supervisor_(rules_) {
    const FaultSettings& f = job.job().fault;
    elastic_ = options.restarts && f.elastic;
    buddy_ = options.restarts && f.buddy;
    if (elastic_ && hosts_.empty())
      info("[fault] fault.elastic needs parallel.hosts or parallel.hostfile; it has no effect here");
  }

  int run() {
    defer_end();  // between two starts too, the history must have the end
    for (;;) {
      Outcome outcome = start();
      if (cut_) return end_between_starts(outcome);
      if (outcome.kind == Kind::error && outcome.code == static_cast<int>(ExitCode::doesnt_fit) &&
          !missing_.empty())
        outcome = wait_for_all_hosts();
      const i64 newest = rules_.max_restarts > 0 ? newest_checkpoint(workdir_) : -1;
      if (grows_ && outcome.kind == Kind::stopped && outcome.signal == 0) continue;
      const Restart r = supervisor_.after(outcome, newest);
      const bool too_small = r.shrinks_batch && rows_per_device() <= 1;
      if (!r.restarts || too_small) {
        if (!r.reason.empty()) warn("[fault] {}", r.reason);
        return outcome.code;
      }
      if (r.shrinks_batch) per_device_ = rows_per_device() / 2;
      announce(outcome, r, newest);
      for (const double began = seconds(); seconds() - began < r.wait && !end_requested();)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (end_requested()) return end_between_starts(outcome);
    }
  }

 private:
  // A signal came while no ranks ran. `last`: of the last start.
  int end_between_starts(const Outcome& last) const {
    const std::string signal = signal_text(end_requested());
    const i64 newest = newest_checkpoint(workdir_);
    write_stderr(starts_ == 0
                     ? fmt::format("redco: stopped by {}; nothing had to be saved\n", signal)
                     : fmt::format("redco: stopped by {} before the next start; the same command {}\n",
                                   signal,
                                   newest >= 0 ? fmt::format("resumes from the checkpoint of step {}", newest)
                                               : "starts from the beginning"));
    if (starts_ > 0 && rules_.max_restarts > 0 && ckpt::run_history_size(workdir_) > 0)
      ckpt::append_run_event(workdir_, {.kind = ckpt::RunEvent::Kind::stopped,
                                        .step = std::max(newest, last.step),
                                        .reason = signal + " before the next start"});
    return static_cast<int>(ExitCode::interrupted);
  }

  // One start of the ranks. A noted signal ends it before the ranks start, without an outcome.
  Outcome start() {
    grows_ = false;
    missing_.clear();
    LaunchRequest launch = launch_;
    ResolvedJob job = given_;
    if (!hosts_.empty()) {
      if (auto outcome = choose_hosts(launch)) return *outcome;
    } else {
      check_allocation(launch.environment);
    }
    cut_ = end_requested() != 0;
    if (cut_) return {};
    const LaunchPlan plan = plan_launch(launch);
    if (starts_ == 0) n_ranks_ = plan.n_ranks;
    job = job_of_start(plan, launch);
    for (const std::string& note : plan.notes)
      if (starts_ == 0 || !missing_.empty()) info("{}", note);
    Mpirun mpirun = plan.mpirun;
    mpirun.options.input = options_.passes_input;
    mpirun.environment[kMarkErrors] = "1";
    mpirun.own_environment[kJobVariable] = text_to_hand(job);
    mpirun.passed.insert(kJobVariable);
    ++starts_;
    if (options_.restarts) {
      mpirun.own_environment[kStartOfJob] = fmt::format("{} {}", key_, starts_);
      mpirun.passed.insert(kStartOfJob);
    }
    if (buddy_) {
      if (!keepers_) keepers_ = std::make_unique<Keepers>(launch_, hosts_, plan, program_path(), key_);
      mpirun.own_environment[kKeptVariable] = key_;
      mpirun.passed.insert(kKeptVariable);
    }
    mpirun.program = options_.program;
    const i64 history = workdir_.empty() ? 0 : ckpt::run_history_size(workdir_);
    const auto watch =
        missing_.empty() ? nullptr : std::make_unique<ReturnWatch>([this] { return returned(); });
    i64 since = -1;
    const auto ends_for_restart = [&] {
      if (!watch || !watch->answered()) return false;
      const i64 newest = newest_checkpoint(workdir_);
      if (since < 0) since = newest;
      if (newest <= since) return false;
      info("[fault] {} can run ranks again: the training saves, and starts on all hosts", names_of(missing_));
      return grows_ = true;
    };
    const Outcome outcome = exec_under_mpirun(mpirun, {.fault_timeout = job.job().fault.timeout,
                                                       .save_on_signal = options_.save_on_signal,
                                                       .passes_interrupts = options_.passes_interrupts,
                                                       .ends_for_restart = ends_for_restart});
    if (!workdir_.empty()) record_end_of_ranks(workdir_, history, outcome);
    return outcome;
  }

  // The preflight. Sets the hosts, their facts and the ranks of this start; an outcome if there cannot be
  // one.
  std::optional<Outcome> choose_hosts(LaunchRequest& launch) {
    PreflightNeeds needs = preflight_needs(given_.job(), hosts_, total_slots(hosts_));
    if (!options_.restarts) needs.workdir.clear();  // only a training writes there
    // As they were at the first start: somebody may change or remove a hostfile meanwhile.
    launch.hosts.clear();
    launch.hostfile.reset();
    for (const Host& h : hosts_) launch.hosts.push_back(text_of(h));
    const auto answers = ask_hosts(launch, needs, program_path(), preflight_seconds(given_.job()));
    if (end_requested()) return std::nullopt;
    std::vector<Host> good, bad;
    std::vector<std::string> lines;
    StartFailure failure;
    bool answered = true;
    const auto all = findings(needs, answers);
    for (const HostFinding& f : all)
      if (f.host.empty() && starts_ == 0) info("[hosts] {}", f.text);
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      bool fails = false;
      for (const HostFinding& f : all) {
        if (f.host != hosts_[i].name) continue;
        const std::string text =
            f.text.starts_with("host " + f.host) ? f.text : "host " + f.host + ": " + f.text;
        if (f.fails) lines.push_back(text);
        if (!f.fails && starts_ == 0) info("[hosts] {}", text);
        fails = fails || f.fails;
      }
      (fails ? bad : good).push_back(hosts_[i]);
      if (fails && bad.size() == 1) failure = answers[i].failure;
      answered = answered && answers[i].report;
      if (answers[i].report) launch.facts[hosts_[i].name] = answers[i].report->facts;
    }
    launch.networks = networks_to_choose(answers);
    launch.in_networks = is_in(own_networks(), launch.networks);
    launch.left_out = networks_to_leave_out(answers);
    if (bad.empty()) {
      supervisor_.hosts_answered();
      return std::nullopt;
    }
    if (starts_ == 0)
      throw Error(answered ? ExitCode::usage : ExitCode::rank_failed,
                  fmt::format("[hosts] {}", fmt::join(lines, "\n")));
    for (const std::string& line : lines) warn("[hosts] {}", line);
    const i64 mp = launch.n_model_shards, slots = total_slots(good);
    const i64 n = slots >= n_ranks_ ? n_ranks_ : elastic_ ? slots / mp * mp : 0;
    if (n < mp) {
      if (elastic_)
        warn("[fault] the other hosts have {}, and a copy of the model needs {} (parallel.n_model_shards)",
             counted(slots, "slot"), counted(mp, "rank"));
      Outcome o;
      o.kind = Kind::no_start;
      o.start = failure;
      for (const Host& h : bad) o.hosts.push_back(h.name);
      o.code = code_of(o.kind);
      return o;
    }
    launch.hosts.clear();
    for (const Host& h : good) launch.hosts.push_back(text_of(h));
    launch.n_ranks = n;
    if (n < n_ranks_) {
      missing_ = bad;
      warn("[fault] without {}: {} of {}, dp {} instead of {}, until it can run ranks again", names_of(bad),
           counted(n, "rank"), n_ranks_, n / mp, n_ranks_ / mp);
    } else {
      warn("[fault] without {}: the other hosts have slots for all {} ranks", names_of(bad), n);
    }
    return std::nullopt;
  }

  // The job does not fit on fewer ranks (its plan is checked before the first allocation): from now on it
  // needs all hosts.
  Outcome wait_for_all_hosts() {
    warn("[fault] the job does not fit without {}; it waits for all hosts", names_of(missing_));
    elastic_ = false;
    Outcome o;
    o.kind = Kind::no_start;
    o.start.kind = StartFailure::Kind::no_connection;
    for (const Host& h : missing_) o.hosts.push_back(h.name);
    o.start.host = o.hosts[0];
    o.code = code_of(o.kind);
    return o;
  }

  // Whether one of the missing hosts can run ranks again. On another thread.
  bool returned() const {
    const PreflightNeeds needs = preflight_needs(given_.job(), missing_, n_ranks_);
    const auto answers = ask_hosts(launch_, needs, program_path(), preflight_seconds(given_.job()));
    for (const HostAnswer& a : answers) {
      bool fails = !a.report;
      for (const HostFinding& f : findings(needs, answers)) fails = fails || (f.host == a.host && f.fails);
      if (!fails) return true;
    }
    return false;
  }

  BatchSizes sizes() const {
    return batch_sizes(given_.job(), std::max<i64>(1, n_ranks_ / launch_.n_model_shards));
  }
  i64 rows_per_device() const { return per_device_ ? *per_device_ : sizes().per_device; }

  // The job as this start runs it. Once its run has begun, it resumes.
  ResolvedJob job_of_start(const LaunchPlan& plan, const LaunchRequest& launch) const {
    const std::string now = starts_ > 0 ? run_of(workdir_) : "";
    const bool resumes = !now.empty() && now != run_before_;
    const bool other_ranks = plan.n_ranks != n_ranks_;
    if (!resumes && !other_ranks && !per_device_) return given_;
    return given_.with([&](JobConfig& job) {
      if (resumes) job.checkpoint.resume = "auto";
      if (other_ranks || per_device_) job.train.global_batch_size = sizes().global;
      if (other_ranks) {
        job.parallel.n_ranks = plan.n_ranks;
        job.parallel.hosts = launch.hosts;
        job.parallel.hostfile.reset();
      }
      if (per_device_) job.train.per_device_batch_size = *per_device_;
    });
  }

  void announce(const Outcome& o, const Restart& r, i64 newest) const {
    const i64 lost = lost_steps(o, newest);
    warn("[fault] restart {} of {} in {:g} s{}{}{}", r.number, rules_.max_restarts, r.wait,
         buddy_        ? " from the newest buddy checkpoint or checkpoint"
         : newest >= 0 ? fmt::format(" from the checkpoint of step {}", newest)
                       : " from the beginning",
         lost > 0 && !buddy_ ? fmt::format("; {} lost", counted(lost, "step")) : "",
         r.shrinks_batch ? fmt::format("; train.per_device_batch_size is {} now", *per_device_) : "");
    if (workdir_.empty() || ckpt::run_history_size(workdir_) == 0) return;
    std::string hosts;
    for (const std::string& h : o.hosts) hosts += (hosts.empty() ? "" : ", ") + h;
    const std::string message = outcome_message(o);
    ckpt::append_run_event(workdir_, {.kind = ckpt::RunEvent::Kind::restart,
                                      .step = o.step,
                                      .reason = message.empty() ? name_of(o.kind) : message,
                                      .code = o.code,
                                      .hosts = hosts,
                                      .lost_steps = lost});
  }

  const ResolvedJob given_;
  const LaunchRequest launch_;
  const SuperviseOptions options_;
  const std::string workdir_;
  const std::vector<Host> hosts_;  // of the job; empty: this machine or an allocation
  const std::string key_, run_before_;
  const RestartRules rules_;
  Supervisor supervisor_;
  bool elastic_ = false, grows_ = false, buddy_ = false;
  bool cut_ = false;                  // a signal ended a start before its ranks
  std::unique_ptr<Keepers> keepers_;  // of the buddy checkpoints
  int starts_ = 0;
  i64 n_ranks_ = 0;            // of the first start
  std::vector<Host> missing_;  // hosts without which this start runs with fewer replicas
  std::optional<i64> per_device_;
};

}  // namespace

std::vector<std::string> files_of_model(const std::string& path) {
  if (!is_folder(path)) return {path};
  constexpr std::size_t kMostFiles = 64;  // all are words of one command
  std::vector<std::string> out;
  for (const std::string& name : list_dir(path))
    for (const char* end : {".json", ".safetensors", ".bin", ".model", ".txt", ".jinja"})
      if (name.ends_with(end)) out.push_back(join_path(path, name));
  std::sort(out.begin(), out.end());
  if (out.size() > kMostFiles) out.resize(kMostFiles);
  return out.empty() ? std::vector<std::string>{path} : out;
}

PreflightNeeds preflight_needs(const JobConfig& job, const std::vector<Host>& hosts, i64 n_ranks) {
  PreflightNeeds n;
  n.hosts = hosts;
  n.n_ranks = n_ranks;
  n.workdir = job.workdir.value_or("");
  n.threads_per_rank = static_cast<int>(job.parallel.threads_per_rank.value_or(0));
  const auto add = [](std::vector<std::string>& to, const std::string& path) {
    if (!path.empty() && exists(path)) to.push_back(std::filesystem::absolute(path).string());
  };
  for (const auto& path : {job.model.path, job.model.tokenizer})
    for (const std::string& file : path ? files_of_model(*path) : std::vector<std::string>{})
      add(n.files, file);
  // Other files are usually in the same folder.
  if (const auto files = job.data.files(false); !files.empty()) add(n.data, files[0]);
  n.program = program_build_id();
  n.library = library_build_id();
  n.mpi = mpi_library().version;
  return n;
}

double preflight_seconds(const JobConfig& job) {
  // ssh alone may take 10 s. A minute is enough for every answer.
  const double timeout = job.fault.timeout;
  return timeout > 0 ? std::clamp(timeout, 12.0, 60.0) : 60;
}

int supervise(const ResolvedJob& job, LaunchRequest launch, const SuperviseOptions& options) {
  return Launcher(job, std::move(launch), options).run();
}

}  // namespace redco
