// Copies of one environment, stepped side by side by one policy; an episode that ends begins anew.
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
  i64 steps() const { return steps_; }  // of all copies together
  // Every copy begins an episode from its row of uniform draws [n, state_size].
  void begin(std::span<const float> uniforms);
  std::vector<float> observations() const;  // [n, observation_size]

  struct Outcome {
    std::vector<float> rewards;            // [n]
    std::vector<float> next_observations;  // [n, observation_size]: an ended episode's last one
    std::vector<bool> terminated, ended;   // ended: terminated, or truncated by the time limit
  };
  // actions [n, action_size], the environment's own. Where an episode ends, the copy's row of uniforms
  // [n, state_size] begins the next one.
  Outcome step(std::span<const float> actions, std::span<const float> uniforms);

  // episode_return and episode_length, means of the last 100 episodes that ended (none: neither), and
  // env_steps.
  std::map<std::string, double> notes() const;

  // JSON of all that it holds, exactly. restore: ContentsError where it is of another environment or number.
  std::string state() const;
  void restore(const std::string& json);

 private:
  void begin_one(i64 e, std::span<const float> uniforms);
  std::span<double> state_of(i64 e);

  std::shared_ptr<const Environment> env_;
  i64 n_, steps_ = 0;
  std::vector<double> states_;   // [n, state_size]
  std::vector<i64> lengths_;     // of the episodes so far
  std::vector<double> returns_;  // the same
  std::deque<std::pair<double, i64>> finished_;
};

}  // namespace redco
