#include "commands/check_hosts.h"

#include <cstdlib>

#include "base/error.h"
#include "comm/mpi_library.h"
#include "commands/plan_job.h"
#include "launch/child_process.h"
#include "launch/find_mpirun.h"
#include "launch/preflight.h"
#include "run/agreement.h"
#include "run/run.h"
#include "run/supervise.h"

namespace redco {

namespace {

// Bytes that a rank of the job's training needs; 0 if the job cannot be planned here (a user's pipeline
// without a model, no data settings).
i64 planned_memory(const JobConfig& job) {
  if (!job.model.preset && !job.model.path && !job.model.arch) return 0;
  return static_cast<i64>(plan_job(job).memory.total());
}

}  // namespace

HostsCheck check_hosts(const JobConfig& job, const std::string& version, bool json) {
  LaunchRequest launch = launch_request(job);
  const std::vector<Host> hosts = hosts_of_job(launch.hosts, launch.hostfile);
  if (hosts.empty())
    throw UsageError(
        "[hosts] the job names no hosts. Set parallel.hosts: [node1:8, node2:8] or parallel.hostfile; `redco env` "
        "describes this machine. The nodes of a SLURM allocation are not asked");
  const MpiLibrary linked = mpi_library();
  const char* path = std::getenv("PATH");
  launch.mpirun = find_mpirun(linked.path, linked.version, path ? path : "");
  const LaunchPlan plan = plan_launch(launch);
  PreflightNeeds needs = preflight_needs(job, plan.hosts, plan.n_ranks);
  needs.version = version;
  if (plan.threads_per_rank) needs.threads_per_rank = *plan.threads_per_rank;
  needs.memory_per_rank = planned_memory(job);
  const auto answers = ask_hosts(launch, needs, program_path(), preflight_seconds(job));
  HostsCheck out;
  out.text = json ? preflight_json(needs, answers) + "\n" : preflight_text(needs, answers);
  for (const HostFinding& f : findings(needs, answers)) out.ok = out.ok && !f.fails;
  return out;
}

HostReport report_here(const HostQuestions& questions, const std::string& version) {
  HostReport r = report_of_this_host(questions);
  r.version = version;
  r.program = program_build_id();
  r.library = library_build_id();
  r.mpi = mpi_library().version;
  return r;
}

}  // namespace redco
