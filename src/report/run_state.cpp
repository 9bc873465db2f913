#include "report/run_state.h"

#include <fmt/format.h>

namespace redco {

const char* name_of(RunState::Kind kind) {
  using Kind = RunState::Kind;
  switch (kind) {
    case Kind::running:
      return "running";
    case Kind::finished:
      return "finished";
    case Kind::stopped:
      return "stopped";
    case Kind::failed:
      return "failed";
    case Kind::killed:
      return "killed";
    case Kind::unknown:
      break;
  }
  return "not running";
}

i64 total_steps(const std::vector<ckpt::RunEvent>& events) {
  for (auto e = events.rbegin(); e != events.rend(); ++e)
    if (e->kind == ckpt::RunEvent::Kind::start) return e->total_steps;
  return 0;
}

RunState run_state(const std::vector<ckpt::RunEvent>& events, const std::string& holder) {
  using Kind = RunState::Kind;
  using Event = ckpt::RunEvent::Kind;
  if (!holder.empty()) return {Kind::running, "in use by " + holder, ""};
  if (events.empty()) return {Kind::unknown, "", ""};
  const ckpt::RunEvent& last = events.back();
  const i64 total = total_steps(events);
  std::string at;
  if (last.step >= 0) {
    at = fmt::format(" after step {}", last.step);
    if (total > last.step) at += fmt::format(" of {}", total);
  }
  switch (last.kind) {
    case Event::finished:
      return {Kind::finished, "finished" + at + (last.reason.empty() ? "" : " (" + last.reason + ")"), ""};
    case Event::stopped:
      return {Kind::stopped,
              "stopped by " + last.reason + at + (total > last.step ? "; the same command resumes it" : ""),
              ""};
    case Event::failed:
      return {Kind::failed, fmt::format("failed with exit code {}", last.code), last.reason};
    case Event::restart:
      return {Kind::failed, "ended, and was not started again" + at, last.reason};
    case Event::start:
      break;
  }
  return {Kind::killed, "ended without a record: the process was killed, or its host went down", ""};
}

}  // namespace redco
