#include "launch/join/starter.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/words.h"
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

// The different hosts of a file with one name a line, in order.
std::vector<std::string> hosts_in_file(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> out;
  for (std::string name; in >> name && out.size() < 65536;)
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  return out;
}

Told torch(const Environment& e) {
  Told t;
  t.host0 = text(e, "MASTER_ADDR");
  t.port = integer(e, "MASTER_PORT");
  const auto nodes = integer(e, "PET_NNODES"), node = integer(e, "PET_NODE_RANK");
  const i64 local = integer(e, "LOCAL_WORLD_SIZE").value_or(1);
  t.n = nodes ? nodes : local == 1 ? integer(e, "WORLD_SIZE") : integer(e, "GROUP_WORLD_SIZE");
  t.id = node ? node : local == 1 ? integer(e, "RANK") : integer(e, "GROUP_RANK");
  t.source = nodes ? "MASTER_ADDR, PET_NNODES and PET_NODE_RANK" : "MASTER_ADDR, WORLD_SIZE and RANK";
  return t;
}

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

Told pbs(const Environment& e) {
  Told t;
  t.id = integer(e, "PBS_NODENUM");
  const auto hosts = hosts_in_file(text(e, "PBS_NODEFILE"));
  if (hosts.empty()) return t;
  t.n = static_cast<i64>(hosts.size());
  t.host0 = hosts[0];
  t.source = "PBS_NODENUM and PBS_NODEFILE";
  return t;
}

// LSB_MCPU_HOSTS: "node1 4 node2 4"; LSF_PM_TASKID counts from 1.
Told lsf(const Environment& e) {
  Told t;
  if (const auto id = integer(e, "LSF_PM_TASKID"); id && *id > 0) t.id = *id - 1;
  std::istringstream in(text(e, "LSB_MCPU_HOSTS"));
  std::string name;
  for (i64 slots = 0, n = 0; in >> name >> slots;) {
    if (n == 0) t.host0 = name;
    t.n = ++n;
  }
  t.source = "LSF_PM_TASKID and LSB_MCPU_HOSTS";
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
  const bool complete =
      !by_torch.host0.empty() && by_torch.port && by_torch.n && by_torch.id && *by_torch.n > 1;
  if (!asked && !complete) return std::nullopt;
  Told t;
  t.n = o.n_processes;
  t.id = o.process_id;
  t.host0 = o.host0_address;
  t.port = o.host0_port;
  std::vector<std::string> sources;
  if (asked) sources.emplace_back("the options");
  for (const Told& starter : {by_torch, kubernetes(e), slurm(e), pbs(e), lsf(e)}) {
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

}  // namespace redco
