// Environments: functions of a state that the caller holds, so any number of copies can run in parallel and
// a resumed run continues exactly. The caller supplies random numbers.
//
// redco has those of classic control (env/classic_control.h). A plugin adds others: a class sets the
// protected members in its constructor and implements the functions, and REDCO_ENVIRONMENT("name", Class)
// exports it (pipeline/plugin.h). They depend on their arguments only, and may be called from several
// threads.
#pragma once

#include <span>
#include <string>

#include "base/types.h"

namespace redco {

struct EnvOutcome {
  double reward = 0;
  bool terminated = false;  // the task has ended; the caller applies the time limit
};

class Environment {
 public:
  virtual ~Environment() = default;

  const std::string& name() const { return name_; }  // "CartPole-v1"; of a plugin: the exported name
  i64 state_size() const { return state_size_; }     // numbers in a state
  i64 observation_size() const { return observation_size_; }
  i64 n_actions() const { return n_actions_; }       // discrete: 0 .. n_actions - 1; 0: continuous
  i64 action_size() const { return action_size_; }   // numbers in an action; 1 where discrete
  double action_low() const { return action_low_; }  // continuous: actions are clipped to this range
  double action_high() const { return action_high_; }
  i64 time_limit() const { return time_limit_; }  // steps after which an episode is truncated

  // The initial state from state_size() uniform draws in [0, 1).
  virtual void reset(std::span<const double> uniforms, std::span<double> state) const = 0;
  // The observation of a state.
  virtual void observe(std::span<const double> state, std::span<float> observation) const = 0;
  // One step, in place. A discrete action is a whole number; UsageError if it is out of range. A transition
  // that is random needs numbers from the state, for example a counter and a seed drawn by reset().
  virtual EnvOutcome step(std::span<double> state, std::span<const float> action) const = 0;

 protected:
  std::string name_;
  i64 state_size_ = 0, observation_size_ = 0, n_actions_ = 0, action_size_ = 1, time_limit_ = 0;
  double action_low_ = 0, action_high_ = 0;
};

}  // namespace redco
