// A recorded trace of an environment, made again.
#pragma once

#include <string>

#include "base/types.h"

namespace redco {

struct ReplayReport {
  std::string environment;
  i64 episodes = 0, steps = 0;
  // Largest differences of single steps, each from the trace's own state before it.
  double observation = 0, reward = 0, state = 0;
  i64 wrong_ends = 0;       // steps whose `terminated` or `truncated` differ
  std::string first_wrong;  // "line 17: ..." of the first step beyond the tolerance; "" if none
  bool passed = false;
};

// Lines of JSON (plain or .gz): {seed, reset_observation, internal_state} begins an episode, {t, action,
// observation, reward, terminated, truncated, internal_state} is a step. environment: its name; "": that of
// the file ("Pendulum-v1.jsonl"). A step passes where observation, reward and state are within `tolerance` +
// tolerance * |value|. ContentsError with file and line for what is no such trace.
ReplayReport replay_trace(const std::string& path, const std::string& environment = "",
                          double tolerance = 2e-6);

}  // namespace redco
