// Scaling of observations and rewards by their running statistics (Andrychowicz et al. 2021; gymnasium's
// NormalizeObservation and NormalizeReward).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "nn/param_tree.h"

namespace redco {

// Running mean, variance and count of each dim (Chan et al.'s parallel update), in fp32 as stored.
struct RunningMoments {
  std::vector<float> mean, var;
  float count = 0;
  void add(std::span<const float> rows);  // [n, dims]
};

// Scales values to mean 0 and standard deviation 1; fewer than two values don't change.
void standardize(std::vector<float>& values);

// The moments are buffers of the parameters, observation.mean, .var and .count: stored with the weights,
// because a policy needs the same scaling in prediction.
class ObservationNormalizer {
 public:
  // If not `on`: no buffers, and observations don't change.
  ObservationNormalizer(i64 dims, bool on) : dims_(dims), on_(on) {}
  void declare(ModelParams& out) const;
  static bool owns(const std::string& parameter) { return parameter.starts_with("observation."); }
  std::vector<float> operator()(const ParamTree& p, std::span<const float> rows) const;  // [n, dims]
  void see(const ParamTree& p, std::span<const float> rows) const;

 private:
  i64 dims_;
  bool on_;
};

// Divides rewards by the running standard deviation of discounted returns.
class RewardNormalizer {
 public:
  RewardNormalizer(i64 n_envs, double gamma, bool on)
      : gamma_(gamma), on_(on), returns_(static_cast<std::size_t>(n_envs), 0.f) {}
  // [steps, n_envs], in place.
  void operator()(std::vector<float>& rewards, const std::vector<bool>& ended);
  // JSON. restore: ContentsError if the number of environments differs.
  std::string state() const;
  void restore(const std::string& json);

 private:
  double gamma_;
  bool on_;
  std::vector<float> returns_;  // running return of each environment
  RunningMoments moments_{{0}, {0}, 0};
};

}  // namespace redco
