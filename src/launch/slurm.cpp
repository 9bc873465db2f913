#include "launch/slurm.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/error.h"
#include "base/words.h"
#include "launch/capture.h"

namespace redco {

namespace {

constexpr std::size_t kMostNodes = 1 << 16;

constexpr double kScontrolSeconds = 10;
// States after which a job's nodes run nothing more for it.
constexpr std::array<std::string_view, 10> kEnded{"BOOT_FAIL", "CANCELLED",    "COMPLETED", "DEADLINE",
                                                  "FAILED",    "NODE_FAIL",    "PREEMPTED", "REVOKED",
                                                  "TIMEOUT",   "OUT_OF_MEMORY"};

// "JobId=17 ... JobState=COMPLETED Reason=None" -> "COMPLETED". An array has several lines.
std::string state_in(const std::string& text, const std::string& id) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("JobId=" + id + " ")) continue;
    const std::size_t at = line.find("JobState=");
    if (at == std::string::npos) continue;
    const std::size_t begin = at + std::string_view("JobState=").size();
    return line.substr(begin, line.find(' ', begin) - begin);
  }
  return "";
}

}  // namespace

Environment current_environment() {
  Environment e;
  for (char** v = environ; v && *v; v++) {
    const std::string_view s = *v;
    const std::size_t equals = s.find('=');
    if (equals != std::string_view::npos) e.emplace(s.substr(0, equals), s.substr(equals + 1));
  }
  return e;
}

std::vector<int> expand_counts(std::string_view text, const char* variable) {
  const auto bad = [&]() -> UsageError {
    return UsageError("{}='{}' cannot be read; expected counts like 2(x3),1", variable, excerpt(text));
  };
  std::vector<int> counts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string_view part = text.substr(at, end - at);
    at = end + 1;
    i64 repeat = 1;
    const std::size_t open = part.find("(x");
    if (open != std::string_view::npos) {
      if (part.back() != ')') throw bad();
      repeat = digits(part.substr(open + 2, part.size() - open - 3));
      part = part.substr(0, open);
    }
    const i64 n = digits(part);
    if (n < 0 || repeat < 1 || counts.size() + static_cast<std::size_t>(repeat) > kMostNodes) throw bad();
    counts.insert(counts.end(), static_cast<std::size_t>(repeat), static_cast<int>(n));
  }
  return counts;
}

std::optional<SlurmJob> detect_slurm(const Environment& environment) {
  const auto get = [&](const char* name) -> std::string_view {
    const auto it = environment.find(name);
    return it == environment.end() ? std::string_view() : std::string_view(it->second);
  };
  SlurmJob job;
  job.id = get("SLURM_JOB_ID");
  if (job.id.empty() || get("SLURM_JOB_NODELIST").empty()) return std::nullopt;
  const auto nodes_of = [&](const char* name) {
    return parse_list(get(name), fmt::format("{}='{}'", name, excerpt(get(name))));
  };
  const std::vector<Host> all = nodes_of("SLURM_JOB_NODELIST");
  // In a step SLURM_TASKS_PER_NODE counts the tasks of the step, which may be smaller than the job.
  const bool in_step = !get("SLURM_STEP_ID").empty() && !get("SLURM_STEP_NODELIST").empty();
  const char* const list = in_step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const char* const counts = in_step && !get("SLURM_STEP_TASKS_PER_NODE").empty()
                                 ? "SLURM_STEP_TASKS_PER_NODE"
                                 : "SLURM_TASKS_PER_NODE";
  job.nodes = in_step ? nodes_of(list) : all;
  std::vector<int> tasks(job.nodes.size(), 1);
  if (!get(counts).empty()) tasks = expand_counts(get(counts), counts);
  if (tasks.size() != job.nodes.size())
    throw UsageError("{}='{}' has {} nodes, but {}='{}' has {}", counts, excerpt(get(counts)), tasks.size(),
                     list, excerpt(get(list)), job.nodes.size());
  for (std::size_t i = 0; i < tasks.size(); i++) job.nodes[i].slots = std::max(1, tasks[i]);
  if (!get("SLURM_JOB_CPUS_PER_NODE").empty()) {
    const auto cpus = expand_counts(get("SLURM_JOB_CPUS_PER_NODE"), "SLURM_JOB_CPUS_PER_NODE");
    for (const Host& node : job.nodes)
      for (std::size_t i = 0; i < all.size() && cpus.size() == all.size(); i++)
        if (all[i].name == node.name) job.cpus.push_back(cpus[i]);
    if (job.cpus.size() != job.nodes.size()) job.cpus.clear();
  }
  job.cpus_per_task = static_cast<int>(std::max<i64>(0, digits(get("SLURM_CPUS_PER_TASK"))));
  if (!get("SLURM_STEP_ID").empty())
    job.step_tasks = static_cast<int>(std::max<i64>(0, digits(get("SLURM_STEP_NUM_TASKS"))));
  return job;
}

void check_allocation(const Environment& environment) {
  const auto job = detect_slurm(environment);
  if (!job || job->is_shell()) return;
  std::string state;
  try {
    const Answered a =
        run_all({{"scontrol", "show", "job", "-o", job->id}}, environment, kScontrolSeconds)[0];
    state = a.err.find("Invalid job id") != std::string::npos ? "no longer known to SLURM"
                                                              : state_in(a.out, job->id);
    if (a.code == 0 && std::find(kEnded.begin(), kEnded.end(), state) == kEnded.end()) return;
  } catch (const Error&) {  // no scontrol: the ranks' start reports what is wrong
    return;
  }
  if (state.empty()) return;
  throw UsageError(
      "[slurm] job {} has ended ({}), but this shell still has its variables (SLURM_JOB_ID), so no ranks can start "
      "on its nodes. Start redco in a new allocation, or run `unset \"${{!SLURM_JOB@}}\"` to use this machine",
      excerpt(job->id), state);
}

std::string workdir_of_task(const std::string& workdir, const Environment& environment) {
  const auto id = environment.find("SLURM_ARRAY_TASK_ID");
  if (id == environment.end() || digits(id->second) < 0) return workdir;
  std::string out = workdir;
  bool named = false;
  for (std::size_t at = 0; (at = out.find("%a", at)) != std::string::npos; at += id->second.size()) {
    out.replace(at, 2, id->second);
    named = true;
  }
  if (named) return out;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  return out + "/task-" + id->second;
}

std::string trained_workdir_of_task(const std::string& workdir, const Environment& environment,
                                    const std::function<bool(const std::string& workdir)>& holds_run) {
  const std::string own = workdir_of_task(workdir, environment);
  return workdir.find("%a") != std::string::npos || holds_run(own) ? own : workdir;
}

std::string slurm_job_name(const Environment& environment) {
  const auto id = environment.find("SLURM_JOB_ID");
  if (id == environment.end() || digits(id->second) < 0) return "";
  const auto cluster = environment.find("SLURM_CLUSTER_NAME");
  return (cluster == environment.end() || cluster->second.empty() ? "" : cluster->second + "/") + id->second;
}

std::string resume_of_start(const std::string& resume, const std::string& job_of_run,
                            const Environment& environment) {
  const auto restarts = environment.find("SLURM_RESTART_COUNT");
  const bool again = restarts != environment.end() && digits(restarts->second) > 0;
  const bool began = !job_of_run.empty() && job_of_run == slurm_job_name(environment);
  return again && began && resume == "never" ? "auto" : resume;
}

}  // namespace redco
