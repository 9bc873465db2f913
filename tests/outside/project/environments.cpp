// Environments of a plugin.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "redco.h"

using namespace redco;

// A corridor of cells -5 to 5. Actions: left, right. The end on the right is worth 1, that on the left 0.1.
struct Corridor : Environment {
  Corridor() {
    state_size_ = 1;
    observation_size_ = 2;
    n_actions_ = 2;
    time_limit_ = 30;
  }
  void reset(std::span<const double> uniforms, std::span<double> state) const override {
    state[0] = std::floor(uniforms[0] * 3) - 1;
  }
  void observe(std::span<const double> state, std::span<float> observation) const override {
    observation[0] = static_cast<float>(state[0] / 5);
    observation[1] = 1;
  }
  EnvOutcome step(std::span<double> state, std::span<const float> action) const override {
    state[0] += action[0] > 0 ? 1 : -1;
    if (state[0] >= 5) return {1, true};
    if (state[0] <= -5) return {0.1, true};
    return {-0.01, false};
  }
};

// A point on a line that is pushed, with wind of a state that a counter and a seed decide.
struct Windy : Environment {
  Windy() {
    state_size_ = 4;  // position, velocity, seed, step
    observation_size_ = 2;
    action_low_ = -1;
    action_high_ = 1;
    time_limit_ = 20;
  }
  void reset(std::span<const double> uniforms, std::span<double> state) const override {
    state[0] = 2 * uniforms[0] - 1;
    state[1] = 0;
    state[2] = uniforms[2];
    state[3] = 0;
  }
  void observe(std::span<const double> state, std::span<float> observation) const override {
    for (int i = 0; i < 2; ++i) observation[i] = static_cast<float>(state[i]);
  }
  EnvOutcome step(std::span<double> state, std::span<const float> action) const override {
    state[3] += 1;
    const double wind = 0.05 * std::sin(1000 * state[2] + 7 * state[3]);
    state[1] = 0.5 * state[1] + 0.5 * std::clamp<double>(action[0], -1, 1) + wind;
    state[0] = std::clamp(state[0] + 0.3 * state[1], -1.5, 1.5);
    return {-state[0] * state[0], false};
  }
};

// What can go wrong.
struct Nan : Corridor {
  void observe(std::span<const double> state, std::span<float> observation) const override {
    observation[0] = 1;
    observation[1] = static_cast<float>(std::sqrt(state[0] - 100));
  }
};
struct Short : Corridor {
  void observe(std::span<const double>, std::span<float> observation) const override { observation[0] = 1; }
};
struct Long : Corridor {
  void observe(std::span<const double> state, std::span<float> observation) const override {
    Corridor::observe(state, observation);
    observation.data()[observation.size()] = 3;
  }
};
struct NanReward : Corridor {
  EnvOutcome step(std::span<double>, std::span<const float>) const override { return {std::nan(""), false}; }
};
struct Throws : Corridor {
  EnvOutcome step(std::span<double>, std::span<const float>) const override {
    throw std::runtime_error("no way");
  }
};
struct Endless : Corridor {
  Endless() { time_limit_ = 0; }
};
struct NoRange : Corridor {
  NoRange() { n_actions_ = 0; }
};

REDCO_ENVIRONMENT("corridor", Corridor)
REDCO_ENVIRONMENT("windy", Windy)
REDCO_ENVIRONMENT("nan", Nan)
REDCO_ENVIRONMENT("short", Short)
REDCO_ENVIRONMENT("long", Long)
REDCO_ENVIRONMENT("nan_reward", NanReward)
REDCO_ENVIRONMENT("throws", Throws)
REDCO_ENVIRONMENT("endless", Endless)
REDCO_ENVIRONMENT("no_range", NoRange)
