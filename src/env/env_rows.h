// Copies of one environment that one policy steps in parallel. When an episode ends, its copy starts a new
// one.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/environment.h"

namespace redco {

class EnvRows {
 public:
  EnvRows(std::shared_ptr<const Environment> env, i64 n);

  i64 size() const { return n_; }
  i64 steps() const { return steps_; }  // sum over all copies
  // Starts an episode in every copy, from its row of uniform draws [n, state_size].
  void begin(std::span<const float> uniforms);
  std::vector<float> observations() const;  // [n, observation_size]

  struct Outcome {
    std::vector<float> rewards;            // [n]
    std::vector<float> next_observations;  // [n, observation_size]; for an ended episode its last observation
    std::vector<bool> terminated, ended;   // ended: terminated, or truncated by the time limit
  };
  // actions: [n, action_size] in the environment's units. If an episode ends, its copy starts the next one
  // from its row of uniforms [n, state_size].
  Outcome step(std::span<const float> actions, std::span<const float> uniforms);

  // episode_return and episode_length: means over the last 100 ended episodes (absent if none has ended); and
  // env_steps.
  std::map<std::string, double> notes() const;

  // The exact state of all copies as JSON. restore() throws ContentsError if it is from another environment
  // or number of copies.
  std::string state() const;
  void restore(const std::string& json);

 private:
  void begin_one(i64 e, std::span<const float> uniforms);
  std::span<double> state_of(i64 e);

  std::shared_ptr<const Environment> env_;
  i64 n_, steps_ = 0;
  std::vector<double> states_;   // [n, state_size]
  std::vector<i64> lengths_;     // of the current episodes
  std::vector<double> returns_;  // of the current episodes
  std::deque<std::pair<double, i64>> finished_;
};

}  // namespace redco
