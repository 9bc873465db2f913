#include "launch/join/starter.h"

#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "launch/batch_hosts.h"
#include "launch/host.h"

namespace redco {

namespace {

std::optional<i64> integer(const Environment& e, const char* name) {
  const auto it = e.find(name);
  if (it == e.end()) return std::nullopt;
  i64 n = 0;
  const char* const end = it->second.data() + it->second.size();
  const auto r = std::from_chars(it->second.data(), end, n);
  return r.ec == std::errc() && r.ptr == end && n >= 0 ? std::optional(n) : std::nullopt;
}

std::string text(const Environment& e, const char* name) {
  const auto it = e.find(name);
  return it == e.end() ? "" : it->second;
}

// What a starter tells; empty values are unknown.
struct Told {
  std::optional<i64> n, id, port;
  std::string host0, source;
};

Told torch(const Environment& e) {
  Told t;
  t.host0 = text(e, "MASTER_ADDR");
  t.port = integer(e, "MASTER_PORT");
  // torchrun itself listens on this port.
  if (t.port && text(e, "TORCHELASTIC_USE_AGENT_STORE") == "True") t.port = kJoinPort;
  const auto nodes = integer(e, "PET_NNODES"), node = integer(e, "PET_NODE_RANK");
  t.n = nodes ? nodes : integer(e, "WORLD_SIZE");
  t.id = node ? node : integer(e, "RANK");
  t.source = nodes ? "MASTER_ADDR, PET_NNODES and PET_NODE_RANK" : "MASTER_ADDR, WORLD_SIZE and RANK";
  return t;
}

bool is_complete(const Told& t) { return !t.host0.empty() && t.port && t.n && t.id && *t.n > 1; }

Told kubernetes(const Environment& e) {
  Told t;
  t.id = integer(e, "JOB_COMPLETION_INDEX");
  t.source = "JOB_COMPLETION_INDEX";
  return t;
}

Told slurm(const Environment& e) {
  Told t;
  t.id = integer(e, "SLURM_PROCID");
  t.n = integer(e, "SLURM_STEP_NUM_TASKS");
  if (const std::string list = text(e, "SLURM_STEP_NODELIST"); !list.empty())
    if (const auto hosts = parse_list(list, "SLURM_STEP_NODELIST"); !hosts.empty()) t.host0 = hosts[0].name;
  t.source = "SLURM_PROCID, SLURM_STEP_NUM_TASKS and SLURM_STEP_NODELIST";
  return t;
}

// PBS_NODENUM counts from 0, LSF_PM_TASKID from 1.
Told batch(const Environment& e) {
  Told t;
  // Some PBS write the file on the first host only.
  if (const std::string file = text(e, "PBS_NODEFILE"); !file.empty() && !exists(file)) return t;
  const BatchHosts given = batch_hosts(e);
  if (given.hosts.empty()) return t;
  const bool pbs = given.source == "PBS_NODEFILE";
  t.id = integer(e, pbs ? "PBS_NODENUM" : "LSF_PM_TASKID");
  if (t.id && !pbs) t.id = *t.id > 0 ? std::optional(*t.id - 1) : std::nullopt;
  t.n = static_cast<i64>(given.hosts.size());
  t.host0 = given.hosts[0].name;
  t.source = (pbs ? "PBS_NODENUM and " : "LSF_PM_TASKID and ") + given.source;
  return t;
}

i64 within(const char* what, i64 value, i64 least, i64 most) {
  if (value < least || value > most)
    throw UsageError("[join] {} is {}, expected {} to {}", what, value, least, most);
  return value;
}

}  // namespace

std::optional<JoinPlace> join_place(const JoinOptions& o, const Environment& e) {
  const bool asked = o.n_processes || o.process_id || !o.host0_address.empty() || o.host0_port;
  const Told by_torch = torch(e);
  const bool complete = is_complete(by_torch);
  if (!asked && !complete) return std::nullopt;
  if (const i64 local = integer(e, "LOCAL_WORLD_SIZE").value_or(1); complete && local > 1)
    throw UsageError(
        "[join] torchrun started {} processes on this host (LOCAL_WORLD_SIZE), expected one, which starts the "
        "ranks. Use torchrun --nproc-per-node=1, and parallel.n_ranks for the number of ranks",
        local);
  Told t;
  t.n = o.n_processes;
  t.id = o.process_id;
  t.host0 = o.host0_address;
  t.port = o.host0_port;
  std::vector<std::string> sources;
  if (asked) sources.emplace_back("the options");
  for (const Told& starter : {by_torch, kubernetes(e), slurm(e), batch(e)}) {
    // Its number of this process comes with its number of processes, unless it does not know that.
    if (t.id && t.n && !t.host0.empty()) break;
    if (!starter.id || (t.n && starter.n && *starter.n != *t.n)) continue;
    if (!starter.n && !t.n) continue;
    bool used = false;
    const auto take = [&](auto& mine, const auto& theirs, bool missing, bool known) {
      if (missing && known) mine = theirs, used = true;
    };
    take(t.n, starter.n, !t.n, starter.n.has_value());
    take(t.id, starter.id, !t.id, true);
    take(t.host0, starter.host0, t.host0.empty(), !starter.host0.empty());
    if (!t.port && starter.port) t.port = starter.port;
    if (used) sources.push_back(starter.source);
  }
  const auto needs = [](bool known, const char* option) {
    if (!known)
      throw UsageError(
          "[join] {} is missing. A start without ssh needs --n-processes, --process-id and --host0-address on "
          "each host, or the variables of a starter (docs/running.md)",
          option);
  };
  needs(t.n.has_value(), "--n-processes");
  needs(t.id.has_value(), "--process-id");
  needs(!t.host0.empty(), "--host0-address");
  JoinPlace p;
  p.n_processes = within("--n-processes", *t.n, 1, 1 << 16);
  p.process_id = within("--process-id", *t.id, 0, p.n_processes - 1);
  p.host0 = t.host0;
  p.port = static_cast<int>(within("--host0-port", t.port.value_or(kJoinPort), 1, 65535));
  p.source = fmt::format("{}", fmt::join(sources, "; "));
  return p;
}

std::string incomplete_place(const Environment& e) {
  const Told t = torch(e);
  if (t.host0.empty() || !t.n || *t.n < 2 || is_complete(t)) return "";
  return fmt::format(
      "[join] MASTER_ADDR={} names the first of {}, but {} is not set, so this process starts all ranks. Set it to "
      "start one process on each host",
      excerpt(t.host0), counted(*t.n, "host"),
      !t.port                    ? "MASTER_PORT"
      : e.contains("PET_NNODES") ? "PET_NODE_RANK"
                                 : "RANK");
}

}  // namespace redco
