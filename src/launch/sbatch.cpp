#include "launch/sbatch.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

// A value on a #SBATCH line. sbatch reads quotes there, but a value cannot contain a quote or a line break.
std::string directive(const char* name, std::string_view value) {
  if (value.empty()) throw UsageError("[sbatch] {} is empty; give a value, or leave the option out", name);
  bool plain = true;
  for (unsigned char c : value) {
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\'' || c == '\\')
      throw UsageError(
          "[sbatch] {}='{}' contains a quote, a backslash or a control character, which a #SBATCH line cannot "
          "hold",
          name, excerpt(value));
    plain = plain && c != ' ' && c != '#' && c != ';';
  }
  return plain ? fmt::format("#SBATCH --{}={}\n", name, value)
               : fmt::format("#SBATCH --{}=\"{}\"\n", name, value);
}
constexpr i64 kMostOfFirst = 1'000'000'000;  // minutes or hours, without days

std::string directive(const char* name, i64 value) { return directive(name, fmt::format("{}", value)); }

void check_range(const char* name, i64 value, i64 least, i64 most) {
  if (value < least || value > most)
    throw UsageError("[sbatch] {}={} is out of range; expected {} to {}", name, value, least, most);
}

// The numbers between colons; empty: another text.
std::vector<i64> numbers(std::string_view text) {
  std::vector<i64> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    i64 n = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (part.empty() || part.size() > 9 || error != std::errc() || stop != part.data() + part.size() || n < 0)
      return {};
    out.push_back(n);
    at = end + 1;
  }
  return out;
}

// sbatch's time formats: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]].
// SLURM rounds up to minutes, and also accepts seconds above 59, which are mistakes. 0: no limit.
i64 seconds_of_limit(const std::string& text) {
  const std::string name = ascii_lower(text);
  if (name == "unlimited" || name == "infinite") return 0;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string::npos;
  const auto days = has_days ? numbers(text.substr(0, dash)) : std::vector<i64>{0};
  std::vector<i64> n = numbers(has_days ? text.substr(dash + 1) : text);
  bool good = text.size() < 32 && days.size() == 1 && !n.empty() && n.size() <= 3;
  for (std::size_t i = 0; good && i < n.size(); ++i)
    good = n[i] < (i > 0 ? 60 : has_days ? 24 : kMostOfFirst);
  if (!good)
    throw UsageError(
        "[sbatch] bad time limit '{}'; expected minutes, minutes:seconds, hours:minutes:seconds, days-hours, "
        "days-hours:minutes, days-hours:minutes:seconds or UNLIMITED, with minutes and seconds below 60 after "
        "a colon, and hours below 24 after days",
        excerpt(text));
  if (!has_days && n.size() < 3) n.insert(n.begin(), 0);  // hours
  n.resize(3);
  const i64 seconds = ((days[0] * 24 + n[0]) * 60 + n[1]) * 60 + n[2];
  return ceil_div(seconds, i64{60}) * 60;
}

// Open MPI names its shared memory after the host name. Nodes with the same name (several on one machine)
// would share it by mistake.
constexpr const char* kSharedNames = R"sh(
names=$(srun --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" hostname | sort -u | wc -l)
[ "$names" -ge "$SLURM_JOB_NUM_NODES" ] || export OMPI_MCA_btl=self,tcp
)sh";

// The part of the script that does not depend on the request. The work runs in the background, because bash
// runs a trap only while it waits for a background job. `wait` returns early after a trap, so the script
// calls it again until it returns because the work has ended.
//
// SIGTERM comes from scancel and at the end of the time limit; SIGKILL follows after KillWait. SLURM sends it
// to all processes of the job. Ranks under srun then save; mpirun ends its ranks immediately.
constexpr const char* kRun = R"sh(
work=
signalled=0
on_usr1() {
  signalled=1
  interrupted=1
  echo "the time limit is near, or the job is preempted: the ranks save" >&2
  [ -z "$work" ] || kill -USR1 "$work"
}
on_term() {
  interrupted=1
  [ -z "$work" ] && exit 143
  if [ "${#launch[@]}" -gt 0 ]; then
    echo "SIGTERM from SLURM: the ranks save, if KillWait is long enough" >&2
  else
    echo "SIGTERM from SLURM: mpirun ends the ranks; steps after the last checkpoint are lost" >&2
  fi
  kill -USR1 "$work"
}
trap on_usr1 USR1
trap on_term TERM INT
"${launch[@]}" "${command[@]}" &
work=$!
[ "$signalled" = 0 ] || kill -USR1 "$work"
while :; do
  interrupted=0
  wait "$work"
  code=$?
  [ "$interrupted" = 1 ] || break
done
)sh";

// 143 and 137: srun ends the other ranks as soon as the first rank has ended with a code. A preemption with a
// GraceTime signals the ranks only, and mpirun ends them (5).
//
// The number of an array's last task is also that of the array: requeueing it would requeue all tasks.
constexpr const char* kRequeue = R"sh(
job=$SLURM_JOB_ID
[ -z "$SLURM_ARRAY_JOB_ID" ] || job=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
preempted() {  # a cancelled job is no longer RUNNING
  state=$(scontrol show job "$job" 2>/dev/null)
  [[ $state == *JobState=RUNNING* && $state == *PreemptTime=[0-9]* ]]
}
again=0
case "$code" in
  8 | 137 | 143) [ "$signalled" = 1 ] || preempted && again=1 ;;
  5) preempted && again=1 ;;
esac
if [ "$again" = 1 ]; then
  echo "the job is requeued (restarts so far: ${SLURM_RESTART_COUNT:-0})" >&2
  scontrol requeue "$job" && exit 0
fi
)sh";

}  // namespace

i64 save_seconds(const std::string& time_limit, i64 wanted) {
  const i64 limit = seconds_of_limit(time_limit);
  return limit == 0 ? wanted : std::min(wanted, limit / 2);
}

std::string make_sbatch_script(const SbatchRequest& r) {
  check_range("nodes", r.nodes, 1, 1 << 16);
  check_range("ranks", r.ranks, r.nodes, 1 << 20);
  check_range("threads_per_rank", r.threads_per_rank, 1, 4096);
  check_range("save_seconds", r.save_seconds, 1, 65535);
  if (r.job_file.empty()) throw UsageError("[sbatch] no job file; give one, like `redco sbatch job.yaml`");
  if (r.time_limit) seconds_of_limit(*r.time_limit);
  if (r.memory_per_node) check_range("memory_per_node", *r.memory_per_node, 1, i64{1} << 40);

  std::string s = "#!/bin/bash\n";
  s += directive("job-name", r.job_name);
  s += directive("nodes", r.nodes);
  s += directive("ntasks", r.ranks);
  s += directive("ntasks-per-node", ceil_div(r.ranks, r.nodes));
  s += directive("cpus-per-task", r.threads_per_rank);
  if (r.partition) s += directive("partition", *r.partition);
  if (r.account) s += directive("account", *r.account);
  if (r.qos) s += directive("qos", *r.qos);
  if (r.constraint) s += directive("constraint", *r.constraint);
  if (r.tasks > 0) s += directive("array", fmt::format("0-{}", r.tasks - 1));
  if (r.time_limit) s += directive("time", *r.time_limit);
  if (r.memory_per_node) s += directive("mem", fmt::format("{}M", *r.memory_per_node));
  s += directive("output", r.output);
  s += "#SBATCH --open-mode=append\n";  // otherwise a requeued job truncates its log
  s += fmt::format("#SBATCH --signal=B:USR1@{}\n", r.save_seconds);
  s += r.requeue ? "#SBATCH --requeue\n" : "#SBATCH --no-requeue\n";

  s += "\n# Written by `redco sbatch`; you may edit it.\n";
  for (const std::string& m : r.modules) s += "module load " + shell_quote(m) + " || exit 2\n";
  std::vector<std::string> words{shell_quote(r.program), shell_quote(r.command), shell_quote(r.job_file)};
  for (const auto& o : r.overrides) words.push_back(shell_quote(o));
  s += fmt::format("command=({})\n", fmt::join(words, " "));
  if (r.tasks > 0)
    s += fmt::format(
        "values={}/task-\"$SLURM_ARRAY_TASK_ID\".txt\n"
        "[ -e \"$values\" ] || {{ echo \"array task '$SLURM_ARRAY_TASK_ID' is not in the sweep: $values does not "
        "exist\" >&2; exit 2; }}\n"
        "mapfile -t sweep <\"$values\" || exit 2\ncommand+=(\"${{sweep[@]}}\")\n",
        shell_quote(r.sweep_folder));
  // Since SLURM 22.05 srun does not inherit --cpus-per-task from the job. Without --kill-on-bad-exit a step
  // hangs when a rank is killed.
  const std::string srun =
      "launch=(srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=\"$SLURM_CPUS_PER_TASK\")\n";
  const std::string environment = "export OMP_NUM_THREADS=\"$SLURM_CPUS_PER_TASK\" OMP_WAIT_POLICY=passive\n";
  switch (r.launcher) {
    case SbatchRequest::Launcher::srun:
      s += srun + environment;
      break;
    case SbatchRequest::Launcher::mpirun:
      s += "launch=()  # redco starts mpirun itself\n";
      break;
    case SbatchRequest::Launcher::automatic:
      s += "if srun --mpi=list 2>&1 | grep -qw 'pmix\\|pmix_v[0-9]*'; then\n  " + srun + "  " + environment +
           "else\n  launch=()  # redco starts mpirun itself\nfi\n";
  }
  if (r.nodes > 1 && r.ranks > r.nodes) s += kSharedNames;
  s += kRun;
  if (r.requeue) s += kRequeue;
  s += "[ \"$code\" -gt 128 ] && code=5  # a rank was killed\nexit \"$code\"\n";
  return s;
}

}  // namespace redco
