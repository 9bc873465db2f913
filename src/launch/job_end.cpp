#include "launch/job_end.h"

#include <sys/wait.h>

#include <csignal>

#include "base/error.h"
#include "base/process.h"
#include "launch/host.h"
#include "launch/resource_limits.h"

namespace redco {

namespace {

using Kind = Outcome::Kind;
using Failure = MpirunOutput::Failure;
constexpr int kLostDaemon = 205;        // mpirun's status after it lost a host
constexpr int kNoDaemon = 255;          // mpirun's status if it could not start its daemons
constexpr int kOwnErrors = 128 + NSIG;  // from here on: mpirun's own errors, for example -43 as 213

// The codes of redco's own ends. Any other code comes from exit() in a library.
bool is_ours(int code) {
  return (code >= 0 && code <= static_cast<int>(ExitCode::interrupted)) ||
         code == static_cast<int>(ExitCode::bug);
}

Outcome::Place place_of(const Failure& f) {
  Outcome::Place p;
  p.rank = f.rank;
  p.host = f.host;
  return p;
}

// mpirun writes the same text for a host that it cannot reach and for a host that crashes later.
Outcome no_daemon(const MpirunOutput& output, const RankEnds& ranks) {
  Outcome o;
  o.kind = ranks.all_started ? Kind::lost_host : Kind::no_start;
  o.start = find_start_failure(output.own_text());
  if (!o.start.host.empty()) o.hosts = {o.start.host};
  return o;
}

// The ranks' own code.
Outcome own_end(int code, const RankEnds& ranks) {
  Outcome o;
  o.code = code;
  o.kind = code == static_cast<int>(ExitCode::interrupted)                         ? Kind::stopped
           : code == static_cast<int>(ExitCode::rank_failed) && !ranks.said_code_5 ? Kind::lost_rank
                                                                                   : Kind::error;
  return o;
}

Outcome outcome_of(int status, const MpirunOutput& output, const RankEnds& ranks) {
  const auto& failure = output.failure();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  Outcome o;
  if (WIFSIGNALED(status)) {
    o.kind = Kind::lost_mpirun;
    o.signal = WTERMSIG(status);
  } else if (code == 0) {
    o.kind = Kind::done;
  } else if (code == 1 && !failure && !ranks.said_code_1) {
    // mpirun ends with status 1 when a rank ends with code 1, and also when a signal ends mpirun itself.
    o.kind = Kind::lost_mpirun;
  } else if (failure && failure->kind == Failure::Kind::signal) {
    o.kind = Kind::killed;
    o.signal = failure->number;
    o.places = {place_of(*failure)};
  } else if (failure && failure->kind == Failure::Kind::lost_host) {
    o.kind = Kind::lost_host;
    if (!failure->host.empty()) o.hosts = {failure->host};
  } else if ((failure && failure->kind == Failure::Kind::no_start) || (!failure && code == kNoDaemon)) {
    return no_daemon(output, ranks);
  } else if (failure && (!is_ours(code) || !is_ours(failure->number))) {
    o.kind = Kind::exited;
    o.number = failure->number;
    o.places = {place_of(*failure)};
  } else if (code == kLostDaemon) {
    o.kind = Kind::lost_host;
  } else if (code >= kOwnErrors) {
    o.kind = Kind::lost_mpirun;
    o.number = code;
  } else if (code > 128) {
    // Open MPI 4.1.4 sometimes omits which rank was killed; its status still holds the signal.
    o.kind = Kind::killed;
    o.signal = code - 128;
  } else if (!is_ours(code)) {
    o.kind = Kind::exited;
    o.number = code;
  } else {
    return own_end(code, ranks);
  }
  return o;
}

}  // namespace

Outcome job_outcome(int status, const MpirunOutput& output, const RankEnds& ranks) {
  Outcome o = outcome_of(status, output, ranks);
  if (o.kind != Kind::error) o.code = code_of(o.kind);
  o.ran = ranks.all_started;
  return o;
}

bool ran_out_of_memory(const Outcome& o, i64 kills_before, const std::string& root) {
  if (o.kind != Kind::killed || o.signal != SIGKILL) return false;
  const std::string host = o.places.empty() ? "" : o.places[0].host;
  return (host.empty() || same_host(host, host_name())) && cgroup_oom_kills(root) > kills_before;
}

}  // namespace redco
