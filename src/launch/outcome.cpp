#include "launch/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>

#include "base/error.h"

namespace redco {

namespace {

using Kind = Outcome::Kind;
using Place = Outcome::Place;
constexpr std::size_t kMostNamed = 8;

std::string rank_text(const Place& p) {
  if (p.rank < 0) return p.host.empty() ? "a rank" : "a rank on " + p.host;
  return fmt::format("rank {}{}", p.rank, p.host.empty() ? "" : " on " + p.host);
}

std::string doing(const Place& p) {
  return p.phase.empty()
             ? ""
             : fmt::format("phase: {}{}", p.phase, p.step >= 0 ? fmt::format(", step {}", p.step) : "");
}

// "rank 1 on a (phase: load), rank 2 on b (phase: train, step 7)"
std::string list(const Outcome& o, const std::function<std::string(const Place&)>& detail) {
  std::string text;
  for (std::size_t i = 0; i < std::min(o.places.size(), kMostNamed); ++i) {
    const std::string more = detail(o.places[i]);
    text +=
        fmt::format("{}{}{}", i ? ", " : "", rank_text(o.places[i]), more.empty() ? "" : " (" + more + ")");
  }
  if (o.places.size() > kMostNamed) text += fmt::format(" and {} more ranks", o.places.size() - kMostNamed);
  return text;
}

std::string signal_name(int signal) { return fmt::format("{} ({})", signal, strsignal(signal)); }

std::string killed_text(const Outcome& o) {
  const Place p = o.places.empty() ? Place{} : o.places[0];
  const bool maybe_memory = o.signal == SIGKILL && p.rank >= 0;
  return fmt::format(
      "{} was killed by signal {}; all ranks have ended{}", rank_text(p), signal_name(o.signal),
      maybe_memory ? " (if nobody killed it, the machine was out of memory: see `dmesg`)" : "");
}

}  // namespace

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::done:
      return "done";
    case Kind::stopped:
      return "stopped";
    case Kind::error:
      return "error";
    case Kind::lost_rank:
      return "lost rank";
    case Kind::killed:
      return "killed";
    case Kind::exited:
      return "exited";
    case Kind::memory:
      return "memory";
    case Kind::silent:
      return "silent";
    case Kind::absent:
      return "absent";
    case Kind::stuck:
      return "stuck";
    case Kind::gone:
      return "gone";
    case Kind::deadlock:
      return "deadlock";
    case Kind::lost_host:
      return "lost host";
    case Kind::no_start:
      return "no start";
    case Kind::lost_mpirun:
      return "lost mpirun";
  }
  return "";
}

std::string outcome_message(const Outcome& o) {
  switch (o.kind) {
    case Kind::done:
    case Kind::stopped:
    case Kind::error:
    case Kind::lost_rank:
      return "";
    case Kind::killed:
      return killed_text(o);
    case Kind::exited:
      return fmt::format("{} ended with code {} without a message; all ranks have ended",
                         rank_text(o.places.empty() ? Place{} : o.places[0]), o.number);
    case Kind::memory:
      return fmt::format(
          "[memory] the kernel killed {} for lack of memory (cgroup or host); all ranks have ended. `redco "
          "plan` shows what the job needs",
          o.places.empty() ? "a rank" : fmt::format("rank {}", o.places[0].rank));
    case Kind::silent:
      return fmt::format(
          "[fault] no message for {:g} s from {}: the process is stopped, or its host or network is down; "
          "all ranks end. The job resumes from its last checkpoint; fault.timeout sets the limit",
          o.seconds, list(o, doing));
    case Kind::absent:
      return fmt::format(
          "[fault] no report within {:g} s after the start from {}: the process was not started, is stopped, "
          "or cannot connect to the launcher; all ranks end. Check the host, and that firewalls let all TCP ports "
          "pass between the hosts of the job; or raise fault.timeout",
          o.seconds, list(o, [](const Place&) { return std::string(); }));
    case Kind::stuck:
      return fmt::format(
          "[fault] no progress for {:g} s on {}: the process hangs, or waits for a disk or a network; all "
          "ranks end. The job resumes from its last checkpoint; raise fault.timeout if this work needs more "
          "time",
          o.seconds, list(o, doing));
    case Kind::gone:
      return fmt::format("[fault] the process of {} is gone; all ranks end", list(o, doing));
    case Kind::deadlock:
      return fmt::format(
          "[fault] all ranks have waited for each other for {:g} s: {}; all ranks end. Either the ranks run "
          "different programs, or two hosts cannot connect to each other: firewalls must let all TCP ports pass "
          "between the hosts of the job",
          o.seconds, list(o, [](const Place& p) {
            return fmt::format("in {}, its wait number {}, {}", p.operation, p.waits, doing(p));
          }));
    case Kind::lost_host:
      return fmt::format("the connection to {} was lost; all ranks have ended",
                         o.hosts.empty() ? "a host" : "host " + o.hosts[0]);
    case Kind::no_start:
      return start_failure_message(o.start);
    case Kind::lost_mpirun:
      if (o.number != 0)
        return fmt::format("mpirun ended with its own error {}, which its text names; all ranks have ended",
                           o.number);
      return o.signal != 0
                 ? fmt::format("mpirun was killed by signal {}; all ranks have ended", signal_name(o.signal))
                 : "mpirun ended before its ranks, as it does after a signal; all ranks have ended";
  }
  return "";
}

int code_of(Kind kind) {
  REDCO_CHECK(kind != Kind::error, "the code of an error is the ranks' own");
  const ExitCode code = kind == Kind::done      ? ExitCode::ok
                        : kind == Kind::stopped ? ExitCode::interrupted
                        : kind == Kind::memory  ? ExitCode::doesnt_fit
                                                : ExitCode::rank_failed;
  return static_cast<int>(code);
}

}  // namespace redco
