// Replays a recorded trace of an environment.
#pragma once

#include <string>

#include "base/types.h"

namespace redco {

struct ReplayReport {
  std::string environment;
  i64 episodes = 0, steps = 0;
  // Largest differences in one step, each computed from the trace's state before the step.
  double observation = 0, reward = 0, state = 0;
  i64 wrong_ends = 0;       // steps whose `terminated` or `truncated` differ
  std::string first_wrong;  // "line 17: ..." of the first step outside the tolerance; "" if none
  bool passed = false;
};

// The trace has lines of JSON (plain or compressed). {seed, reset_observation, internal_state} starts an
// episode; {t, action, observation, reward, terminated, truncated, internal_state} is a step. environment:
// its name;
// "": the file's name ("Pendulum-v1.jsonl"). A step passes if observation, reward and state are within
// `tolerance` + tolerance * |value|. ContentsError with file and line if the file is not such a trace.
ReplayReport replay_trace(const std::string& path, const std::string& environment = "",
                          double tolerance = 2e-6);

}  // namespace redco
