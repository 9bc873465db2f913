#include "run/run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>

#include "base/activity.h"
#include "base/error.h"
#include "base/file.h"
#include "base/kept_memory.h"
#include "base/log.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/words.h"
#include "comm/group.h"
#include "comm/mpi_library.h"
#include "kernels/threads.h"
#include "launch/batch_hosts.h"
#include "launch/child_process.h"
#include "launch/find_mpirun.h"
#include "launch/join/member.h"
#include "launch/join/server.h"
#include "launch/login.h"
#include "launch/rank_environment.h"
#include "launch/rank_errors.h"
#include "launch/resource_limits.h"
#include "launch/shared_memory.h"
#include "launch/topology.h"
#include "launch/watch/watchdog.h"
#include "run/agreement.h"
#include "run/handed_job.h"
#include "run/supervise.h"
#include "shard/mesh_of.h"
#include "workdir/run_history.h"
#include "workdir/run_record.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {
// The workdir whose history records an immediate end, on the first rank; empty: none. The threads that end
// the process read it.
class HistoryFolder {
 public:
  void set(const std::string& workdir) {
    const std::lock_guard lock(mutex_);
    workdir_ = workdir;
  }
  std::string get() {
    const std::lock_guard lock(mutex_);
    return workdir_;
  }

 private:
  std::mutex mutex_;
  std::string workdir_;
};
HistoryFolder& history_folder() {
  static auto& folder =
      *new HistoryFolder;  // never freed: other threads may still read it when main() has ended
  return folder;
}
}  // namespace

void Run::decide_model_config(const std::map<std::string, std::string>& keys) {
  if (!keys.empty()) resolved_ = resolved_.with_model_config(keys);
}

void Run::decide_global_batch_size(i64 rows) { resolved_ = resolved_.with_global_batch_size(rows); }

void Run::open_workdir() {
  Group& world = context_.world();
  const std::string& workdir = *job().workdir;
  world.on_first([&] {
    make_dirs(workdir);
    lock_ = std::make_unique<WorkdirLock>(workdir);
    finish_move(workdir);
    set_log_file(join_path(workdir, workdir::kLog));
  });
  if (world.size() > 1) agree_on_workdir(world, workdir);
  has_workdir_ = true;
  if (first()) history_folder().set(workdir);
}

LaunchRequest launch_request(const JobConfig& job) {
  const ParallelSettings& p = job.parallel;
  LaunchRequest r;
  r.n_model_shards = p.n_model_shards;
  r.n_ranks = p.n_ranks;
  r.hosts = p.hosts;
  r.hostfile = p.hostfile;
  r.threads_per_rank = p.threads_per_rank;
  r.rank = is_rank_process();
  if (!r.rank) use_logins(hosts_of_job(p.hosts, p.hostfile), program_path());
  r.environment = current_environment();
  r.for_ranks = parse_environment(p.environment.values, r.environment);
  r.root = geteuid() == 0;
  r.fault_timeout = job.fault.timeout;
  r.here = facts_of(this_machine());
  if (r.rank || !r.hosts.empty() || r.hostfile || r.environment.count("SLURM_JOB_ID")) return r;
  const BatchHosts batch = batch_hosts(r.environment);
  for (const Host& h : batch.hosts) r.hosts.push_back(text_of(h));
  r.hosts_source = batch.source;
  return r;
}

bool is_rank_process() { return launched_under_mpi(); }

namespace {

constexpr double kJoinSeconds = 600;  // how long the processes of a job wait for each other

struct Report {
  int code;
  std::string text;
};
// EAGAIN: the system refuses a new thread, by a limit or for lack of memory for its stack.
bool is_lack_of_threads(const std::exception& e) {
  const auto* s = dynamic_cast<const std::system_error*>(&e);
  return s && s->code() == std::errc::resource_unavailable_try_again;
}
bool is_lack_of_memory(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e)) return true;
  const auto* s = dynamic_cast<const std::system_error*>(&e);
  return s && s->code() == std::errc::not_enough_memory;
}

Report report_of(const std::exception& e) {
  const bool no_thread = is_lack_of_threads(e);
  if (const std::string limit = no_thread ? thread_limit("") : ""; !limit.empty())
    return {static_cast<int>(ExitCode::doesnt_fit),
            fmt::format("[threads] the system refuses another thread: {}. Raise the limit, or lower "
                        "parallel.threads_per_rank or the number of ranks",
                        limit)};
  if (no_thread || is_lack_of_memory(e))
    return {static_cast<int>(ExitCode::doesnt_fit),
            "[memory] the system refuses more memory (check `ulimit -v` and the cgroup's limit); `redco "
            "plan` shows what the job needs"};
  if (const auto* ours = dynamic_cast<const Error*>(&e)) return {static_cast<int>(ours->code()), e.what()};
  return {static_cast<int>(ExitCode::bug), std::string("[bug] ") + e.what()};
}

// Several ranks may fail together. Under redco's launcher the lines are marked, and it prints those of one
// rank (launch/rank_errors.h).
void say(const std::string& text) {
  if (!std::getenv(kMarkErrors)) return error("{}", text);
  const LogLevel before = log_level();
  set_log_level(LogLevel::off);
  error("{}", text);  // to the log file
  set_log_level(before);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const std::string lines = marked("error: " + text, rank ? std::atoi(rank) : 0);
  write_stderr(lines);
}

// Ends the process after an exception left a thread, with the exception's exit code if it has one.
void say_and_end() {
  try {
    if (const auto e = std::current_exception()) std::rethrow_exception(e);
  } catch (const std::exception& e) {
    const Report r = report_of(e);
    say(r.text);
    std::fflush(nullptr);
    std::_Exit(r.code);
  } catch (...) {
  }
  std::abort();
}

// Libraries read these variables when they are loaded. If one is missing, this process executes itself again
// with all of them.
void ensure_environment(const LaunchPlan& plan, RunRequest& request, const ResolvedJob& resolved) {
  bool missing = false;
  for (const auto& [key, value] : plan.environment) {
    const char* now = std::getenv(key.c_str());
    if (now && now == value) continue;
    setenv(key.c_str(), value.c_str(), 1);
    missing = true;
  }
  if (!missing || request.program.empty() || std::getenv(kStarted)) return;
  setenv(kStarted, "1", 1);
  setenv(kJobVariable, text_to_hand(resolved).c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& a : request.program) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  request.job = nullptr;  // releases what it holds: exec() runs no destructor
  hold_signals();
  execv(argv[0], argv.data());
  catch_signals();  // exec failed: the run continues with the defaults
  unsetenv(kJobVariable);
}

// Whether this rank is the first of its host.
bool is_first_of_host(const Environment& e) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"})
    if (const auto it = e.find(name); it != e.end()) return it->second == "0";
  return false;
}

bool is_everywhere(const std::exception& e, int n_ranks) { return n_ranks == 1 || was_agreed(e.what()); }

// Each rank that tells the user why the run ended also writes it to the workdir's history.
void record_failure(const Run& run, const std::exception& e) {
  const Group& world = run.context().world();
  const bool everywhere = is_everywhere(e, world.size());
  if (!run.has_workdir() || (everywhere && world.rank() != 0)) return;
  using Kind = ckpt::RunEvent::Kind;
  const Report r = report_of(e);
  const bool stopped = r.code == static_cast<int>(ExitCode::interrupted);
  ckpt::append_run_event(*run.job().workdir,
                         {.kind = stopped ? Kind::stopped : Kind::failed,
                          .reason = stopped      ? signal_text(end_requested())
                                    : everywhere ? r.text
                                                 : fmt::format("rank {}: {}", world.rank(), r.text),
                          .code = r.code});
}

// The first rank prints an error that all ranks agreed on. An error of one rank is printed by that rank and
// ends all ranks.
int end_rank(const std::exception& e, int rank, int n_ranks) {
  const bool everywhere = is_everywhere(e, n_ranks);
  const Report r = report_of(e);
  if (!everywhere) {
    say(fmt::format("rank {}: {}", rank, r.text));
  } else if (rank == 0) {
    say(r.text);
  }
  std::fflush(nullptr);
  if (!everywhere) mpi_abort(r.code);
  return r.code;
}

// Called by the watchdog of a single process.
void record_hang(const std::string& message) {
  if (const std::string workdir = history_folder().get(); !workdir.empty())
    ckpt::append_run_event(workdir, {.kind = ckpt::RunEvent::Kind::failed,
                                     .reason = message,
                                     .code = static_cast<int>(ExitCode::rank_failed)});
}

// The job of this rank: from the launcher, or resolved by the first rank. Collective.
ResolvedJob job_of_ranks(Group& world, const RunRequest& request) {
  std::string text = handed_job().value_or("");
  world.on_first([&] {
    if (text.empty()) text = ResolvedJob(request.job()).to_text();
  });
  const std::string first = world.agree(text);
  if (!text.empty() && text != first)
    throw UsageError(
        "[run] the ranks have different jobs; start the command once, and let redco start the ranks");
  return ResolvedJob::from_text(first);
}

// Threads of ranks that were started by hand: the lowest number of all ranks, because all ranks must run the
// same kernels. Collective.
int threads_of_ranks(Group& world, const JobConfig& job) {
  if (job.parallel.threads_per_rank) return static_cast<int>(*job.parallel.threads_per_rank);
  int threads = 0;
  if (const char* omp = std::getenv("OMP_NUM_THREADS")) threads = std::atoi(omp);
  i32 least = -std::max(1, threads);
  world.all_reduce_max<i32>(&least, 1);
  return -least;
}

// `resolved`: the job of a single process; null: see job_of_ranks().
int run_rank(std::unique_ptr<Group> world, const RunRequest& request, const ResolvedJob* resolved,
             std::optional<int> threads, const std::function<int(Run&)>& body) {
  Group* const ranks = world.get();
  const int rank = ranks->rank(), n = ranks->size();
  if (rank != 0 && log_level() < LogLevel::error) set_log_level(LogLevel::error);
  try {
    const ResolvedJob job = resolved ? *resolved : job_of_ranks(*ranks, request);
    kernels::set_threads(threads ? *threads : threads_of_ranks(*ranks, job.job()));
    kernels::check_blas();
    const double timeout = job.job().fault.timeout;
    if (n == 1 && !watchdog::is_watched()) watchdog::watch_alone(timeout, record_hang);
    if (n > 1 && !watchdog::is_watched()) {  // started by hand
      const std::string server = rank == 0 ? watchdog::serve(n, timeout) : "";
      watchdog::join(ranks->agree(server), rank);
      ranks->reset_counts();
    }
    if (const auto wanted = job.job().parallel.n_ranks; wanted && *wanted != n)
      warn("[parallel] n_ranks={} has no effect: {} started by mpirun or srun", *wanted,
           n == 1 ? "1 rank was" : fmt::format("{} ranks were", n));
    MeshNames names;
    names.given_ranks = fmt::format("the number of started ranks ({})", n);
    const Mesh mesh = mesh_of(n, job.job().parallel.n_model_shards, names);
    agree_on_program(*ranks, rank_facts(job.hash(), user_code_files(job.job())));
    Context context(mesh, std::move(world));
    Context::Use use(context);
    const activity::Phase load("load");
    Run run(job, context);
    int code = 0;
    try {
      code = body(run);
    } catch (const std::exception& e) {
      record_failure(run, e);
      throw;
    }
    // All ranks end with the highest code.
    i32 agreed = code;
    if (n > 1) context.world().all_reduce_max<i32>(&agreed, 1);
    return agreed;
  } catch (const std::exception& e) {
    return end_rank(e, rank, n);
  } catch (...) {
    return end_rank(BugError("an exception of unknown type"), rank, n);
  }
}

// Prints the message of an immediate end directly to stderr: a lock of the log may be held.
void print_end(const std::string& message) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const std::string text = std::getenv(kMarkErrors)
                               ? marked_end("redco: " + message, rank ? std::atoi(rank) : 0)
                               : "redco: " + message + "\n";
  write_stderr(text);
  if (const std::string workdir = history_folder().get(); !workdir.empty())
    ckpt::append_run_event(workdir,
                           {.kind = ckpt::RunEvent::Kind::stopped, .reason = signal_text(end_requested())});
  watchdog::finish(static_cast<int>(ExitCode::interrupted));
}

// Starts the ranks of a job, or runs the only one here.
int launch_job(RunRequest& request, const ResolvedJob& resolved, LaunchRequest launch,
               const std::function<int(Run&)>& body) {
  const LaunchPlan plan = plan_launch(launch);
  if (plan.way == LaunchPlan::Way::alone) {
    ensure_environment(plan, request, resolved);
    for (const std::string& note : plan.notes) info("{}", note);
    return run_rank(make_self_group(), request, &resolved, plan.threads_per_rank.value_or(launch.here.cores),
                    body);
  }
  const MpiLibrary linked = mpi_library();
  const char* path = std::getenv("PATH");
  launch.mpirun = find_mpirun(linked.path, linked.version, path ? path : "");
  return supervise(resolved, std::move(launch),
                   {.program = request.program,
                    .save_on_signal = request.save_on_signal,
                    .passes_input = request.passes_input,
                    .passes_interrupts = request.passes_interrupts,
                    .restarts = request.restarts});
}

// Process 0 of a job with one process per host.
int run_process0(RunRequest& request, const JoinPlace& place, JoinServer& server,
                 const std::function<int(Run&)>& body) {
  JobConfig job = request.job();
  if (!job.parallel.hosts.empty() || job.parallel.hostfile)
    throw UsageError(
        "[join] the hosts are those of the started processes; remove parallel.hosts and parallel.hostfile");
  const i64 n = place.n_processes, ranks = job.parallel.n_ranks.value_or(0), mp = job.parallel.n_model_shards;
  if (ranks % n != 0)
    throw UsageError("[join] parallel.n_ranks={} cannot be shared by {} processes; use a multiple of it",
                     ranks, n);
  const i64 slots = ranks > 0 ? ranks / n : std::max<i64>(1, mp % n == 0 ? mp / n : 1);
  info("[join] waiting for {} to join on port {}", counted(n - 1, "host"), server.port());
  defer_end();  // a signal must not leave the others waiting
  for (const std::string& host : server.wait_for_all(kJoinSeconds))
    job.parallel.hosts.push_back(fmt::format("{}:{}", host, slots));
  // mpirun asks redco to run its daemons on the other hosts, all of them from here.
  setenv("OMPI_MCA_plm_rsh_agent", (program_path() + " agent").c_str(), 1);
  setenv("OMPI_MCA_plm_rsh_no_tree_spawn", "1", 1);
  setenv(kAgentVariable, server.agent_variable().c_str(), 1);
  const ResolvedJob resolved(std::move(job));
  LaunchRequest launch = launch_request(resolved.job());
  launch.joined = true;
  return launch_job(request, resolved, std::move(launch), body);
}

// A job with one process per host. Process 0 launches it; the others run what its mpirun needs on their
// hosts, and end with its code.
int run_joined(RunRequest request, const std::function<int(Run&)>& body) {
  const JoinPlace place = *request.join;
  request.join.reset();
  const std::string key = job_key(request.key_file);
  info("[join] process {} of {} ({})", place.process_id, place.n_processes, place.source);
  if (place.process_id > 0) return run_member(place, key, kJoinSeconds);
  JoinServer server(place, key);
  try {
    const int code = run_process0(request, place, server, body);
    server.set_code(code);
    return code;
  } catch (const std::exception& e) {
    server.set_code(report_of(e).code);
    throw;
  }
}

}  // namespace

int report_error(const std::exception& e) {
  const Report r = report_of(e);
  say(r.text);
  return r.code;
}

int run(RunRequest request, const std::function<int(Run&)>& body) {
  std::set_terminate(say_and_end);
  set_end_printer(print_end);
  if (is_rank_process()) {
    if (const std::string wrong = mpi_mismatch(); !wrong.empty())
      throw UsageError("{}", wrong);  // before MPI_Init may end us
    // Until the job is known, this rank watches itself; then the first rank may watch all.
    if (!watchdog::is_watched()) watchdog::watch_alone(FaultSettings().timeout);
    if (const Environment e = current_environment(); is_first_of_host(e)) {
      clean_shared_memory(host_name());
      remove_unkept_blocks();
    }
    const int code = run_rank(make_mpi_world(), request, nullptr, std::nullopt, body);
    mpi_finalize();
    return code;
  }
  if (request.join) return run_joined(std::move(request), body);
  const auto handed = handed_job();
  const ResolvedJob resolved = handed ? ResolvedJob::from_text(*handed) : ResolvedJob(request.job());
  return launch_job(request, resolved, launch_request(resolved.job()), body);
}

}  // namespace redco
