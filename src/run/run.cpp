#include "run/run.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "comm/group.h"
#include "kernels/threads.h"
#include "launch/env_report.h"
#include "launch/exec.h"
#include "launch/one_voice.h"
#include "launch/topology.h"

namespace redco {

LaunchRequest launch_request(const ParallelSettings& p) {
  LaunchRequest r;
  r.n_model_shards = p.n_model_shards;
  r.n_ranks = p.n_ranks;
  r.hosts = p.hosts;
  r.hostfile = p.hostfile;
  r.threads_per_rank = p.threads_per_rank;
  r.environment = current_environment();
  r.root = geteuid() == 0;
  r.here = facts_of(this_machine());
  return r;
}

bool is_rank_process() { return launched_under_mpi(); }

namespace {

struct Report {
  int code;
  std::string text;
};
Report report_of(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e))
    return {static_cast<int>(ExitCode::doesnt_fit),
            "[memory] the machine gives no more memory; `redco plan` says what the job needs"};
  if (const auto* ours = dynamic_cast<const Error*>(&e)) return {static_cast<int>(ours->code()), e.what()};
  return {static_cast<int>(ExitCode::bug), std::string("[bug] ") + e.what()};
}

// Several ranks may find out at once: where redco's own launcher listens, the lines are marked, and it passes
// those of one rank.
void say(const std::string& text) {
  if (!std::getenv(kMarkErrors)) return error("{}", text);
  const LogLevel before = log_level();
  set_log_level(LogLevel::off);
  error("{}", text);  // to the log file
  set_log_level(before);
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const std::string lines = marked("error: " + text, rank ? std::atoi(rank) : 0);
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

// OpenMP and OpenBLAS read these when they are loaded, so a single rank starts itself again with them.
void ensure_environment(const LaunchPlan& plan, const std::vector<std::string>& program) {
  bool missing = false;
  for (const auto& [key, value] : plan.environment) {
    if (std::getenv(key.c_str())) continue;
    setenv(key.c_str(), value.c_str(), 1);
    missing = true;
  }
  if (!missing || program.empty() || std::getenv("REDCO_STARTED")) return;
  setenv("REDCO_STARTED", "1", 1);
  std::vector<char*> argv;
  for (const std::string& a : program) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(argv[0], argv.data());  // on failure: go on with the defaults
}

// An error that all ranks have agreed on is said by the first of them; one of this rank alone ends them all.
int end_rank(const std::exception& e, int rank, int n_ranks) {
  const bool everywhere = n_ranks == 1 || was_agreed(e.what());
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

int run_rank(std::unique_ptr<Group> world, const ParallelSettings& p, const SessionOptions& o, int threads,
             const std::function<int(Context&)>& body) {
  Group* const ranks = world.get();
  const int rank = ranks->rank(), n = ranks->size();
  if (rank != 0 && log_level() < LogLevel::error) set_log_level(LogLevel::error);
  try {
    kernels::set_threads(threads);
    kernels::check_blas();
    ranks->set_timeout(o.timeout);
    if (n % p.n_model_shards != 0)
      throw UsageError("[mesh] {} ranks were started, no multiple of n_model_shards={}", n, p.n_model_shards);
    const Mesh mesh{static_cast<int>(n / p.n_model_shards), static_cast<int>(p.n_model_shards)};
    Context context(mesh, std::move(world));
    Context::Use use(context);
    int code = body(context);
    // All ranks end with the highest code.
    i32 agreed = code;
    if (n > 1) context.world().all_reduce_max<i32>(&agreed, 1);
    return agreed;
  } catch (const std::exception& e) {
    return end_rank(e, rank, n);
  } catch (...) {
    return end_rank(BugError("an exception that is no std::exception"), rank, n);
  }
}

}  // namespace

int report_error(const std::exception& e) {
  const Report r = report_of(e);
  say(r.text);
  return r.code;
}

int run_session(const ParallelSettings& p, const SessionOptions& o,
                const std::function<int(Context&)>& body) {
  LaunchRequest request = launch_request(p);
  if (!is_rank_process() && (!p.hosts.empty() || p.hostfile))
    request.facts = probe_hosts(request, program_path());
  const LaunchPlan plan = plan_launch(request);
  if (plan.way == LaunchPlan::Way::mpirun) {
    for (const std::string& note : plan.notes) info("{}", note);
    LaunchPlan marking = plan;
    marking.argv.insert(marking.argv.end(), {"-x", std::string(kMarkErrors) + "=1"});
    return exec_under_mpirun(marking, o.program,
                             {.save_on_signal = o.save_on_signal,
                              .passes_input = o.passes_input,
                              .passes_interrupts = o.passes_interrupts});
  }
  int code;
  if (plan.way == LaunchPlan::Way::alone) {
    ensure_environment(plan, o.program);
    for (const std::string& note : plan.notes) info("{}", note);
    code =
        run_rank(make_self_group(), p, o, plan.threads_per_rank.value_or(this_machine().usable_cores), body);
  } else {
    if (const std::string wrong = mpi_mismatch(); !wrong.empty())
      throw UsageError("{}", wrong);  // before MPI_Init may end us
    auto world = make_mpi_world();
    int threads = plan.threads_per_rank.value_or(0);
    if (threads == 0) {
      if (const char* omp = std::getenv("OMP_NUM_THREADS")) threads = std::atoi(omp);
      if (threads <= 0) threads = 1;
      // The least of all hosts: kernels must run alike everywhere.
      i32 least = -threads;
      world->all_reduce_max<i32>(&least, 1);
      threads = -least;
    }
    code = run_rank(std::move(world), p, o, threads, body);
    mpi_finalize();
  }
  return code;
}

}  // namespace redco
