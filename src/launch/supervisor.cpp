#include "launch/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

using Kind = Outcome::Kind;

// The waits give a host time to come back: a switch that restarts takes seconds.
constexpr std::array<double, 3> kWaits = {1, 5, 30};  // s

// Signals of a crash in the program, which another start would repeat.
bool is_crash(int signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGILL || signal == SIGFPE ||
         signal == SIGTRAP || signal == SIGSYS;
}

bool is_lack_of_memory(const Outcome& o) {
  return o.kind == Kind::memory ||
         (o.kind == Kind::error && o.code == static_cast<int>(ExitCode::doesnt_fit));
}

}  // namespace

bool can_mend(const Outcome& o, Reached reached) {
  switch (o.kind) {
    case Kind::done:
    case Kind::stopped:
    case Kind::error:
    case Kind::exited:
    case Kind::memory:
      return false;
    case Kind::killed:
      return !is_crash(o.signal);
    case Kind::no_start:
      return reached == Reached::ranks   ? may_answer_later(o.start)
             : reached == Reached::hosts ? o.start.kind == StartFailure::Kind::no_connection
                                         : false;
    case Kind::absent:
      return reached == Reached::ranks;
    case Kind::lost_rank:
    case Kind::silent:
    case Kind::stuck:
    case Kind::gone:
    case Kind::deadlock:
    case Kind::lost_host:
    case Kind::lost_mpirun:
      return true;
  }
  return false;
}

Restart Supervisor::after(const Outcome& o, i64 checkpoint) {
  if (o.ran) reached_ = Reached::ranks;
  if (checkpoint > checkpoint_) used_ = 0;
  checkpoint_ = std::max(checkpoint_, checkpoint);
  Restart r;
  const bool shrinks = rules_.shrink_batch && !shrunk_ && is_lack_of_memory(o);
  if (rules_.max_restarts == 0 || (!shrinks && !can_mend(o, reached_))) return r;
  if (used_ >= rules_.max_restarts) {
    r.reason = fmt::format("no further start: {} brought no newer checkpoint (fault.max_restarts)",
                           counted(used_, "restart"));
    return r;
  }
  r.restarts = true;
  r.shrinks_batch = shrinks;
  shrunk_ = shrunk_ || shrinks;
  r.wait = kWaits[std::min(static_cast<std::size_t>(used_), kWaits.size() - 1)];
  r.number = ++used_;
  return r;
}

i64 lost_steps(const Outcome& o, i64 checkpoint) {
  return o.step < 0 ? 0 : std::max<i64>(0, o.step - std::max<i64>(checkpoint, 0));
}

}  // namespace redco
