#include "pipelines/rl_normalize.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/spec_builder.h"
#include "tensor/transfer.h"

namespace redco {

namespace {

constexpr double kMost = 10;  // clip range in standard deviations
constexpr double kEpsilon = 1e-8;

float cut(double x) { return static_cast<float>(std::clamp(x, -kMost, kMost)); }

}  // namespace

void RunningMoments::add(std::span<const float> rows) {
  const std::size_t dims = mean.size();
  const double n = static_cast<double>(rows.size() / dims), before = count, all = before + n;
  for (std::size_t d = 0; d < dims; ++d) {
    double sum = 0, squares = 0;
    for (std::size_t i = d; i < rows.size(); i += dims) sum += rows[i];
    const double m = sum / n, delta = m - mean[d];
    for (std::size_t i = d; i < rows.size(); i += dims) squares += (rows[i] - m) * (rows[i] - m);
    var[d] = static_cast<float>((var[d] * before + squares + delta * delta * before * n / all) / all);
    mean[d] = static_cast<float>(mean[d] + delta * n / all);
  }
  count = static_cast<float>(all);
}

void standardize(std::vector<float>& values) {
  if (values.size() < 2) return;
  RunningMoments m{{0}, {0}, 0};
  m.add(values);
  const double n = static_cast<double>(values.size()), deviation = std::sqrt(m.var[0] * n / (n - 1));
  for (float& x : values) x = static_cast<float>((x - m.mean[0]) / (deviation + kEpsilon));
}

void ObservationNormalizer::declare(ModelParams& out) const {
  if (!on_) return;
  SpecBuilder b(out);
  b.buffer("observation.mean", {dims_}, ParamKind::norm);
  b.buffer("observation.var", {dims_}, ParamKind::norm);
  b.buffer("observation.count", {1}, ParamKind::norm);
}

std::vector<float> ObservationNormalizer::operator()(const ParamTree& p, std::span<const float> rows) const {
  std::vector<float> out(rows.begin(), rows.end());
  if (!on_ || host_copy<float>(p["observation.count"])[0] == 0) return out;
  const auto mean = host_copy<float>(p["observation.mean"]), var = host_copy<float>(p["observation.var"]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t d = i % static_cast<std::size_t>(dims_);
    out[i] = cut((out[i] - mean[d]) / std::sqrt(var[d] + kEpsilon));
  }
  return out;
}

void ObservationNormalizer::see(const ParamTree& p, std::span<const float> rows) const {
  if (!on_) return;
  const Tensor &mean = p["observation.mean"], &var = p["observation.var"], &count = p["observation.count"];
  RunningMoments m{host_copy<float>(mean), host_copy<float>(var), host_copy<float>(count)[0]};
  m.add(rows);
  copy_from_host<float>(m.mean, mean);
  copy_from_host<float>(m.var, var);
  copy_from_host<float>(std::span(&m.count, 1), count);
}

void RewardNormalizer::operator()(std::vector<float>& rewards, const std::vector<bool>& ended) {
  if (!on_) return;
  std::vector<float> returns;
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    float& r = returns_[i % returns_.size()];
    r = static_cast<float>(gamma_ * r + rewards[i]);
    returns.push_back(r);
    if (ended[i]) r = 0;
  }
  moments_.add(returns);
  for (float& r : rewards) r = cut(r / std::sqrt(moments_.var[0] + kEpsilon));
}

std::string RewardNormalizer::state() const {
  return nlohmann::json{
      {"returns", returns_}, {"mean", moments_.mean[0]}, {"var", moments_.var[0]}, {"count", moments_.count}}
      .dump();
}

void RewardNormalizer::restore(const std::string& json) {
  try {
    const auto j = nlohmann::json::parse(json);
    auto returns = j.at("returns").get<std::vector<float>>();
    if (returns.size() != returns_.size())
      throw ContentsError("[rl] the checkpoint has returns of {} environments, but the job has {}",
                          returns.size(), returns_.size());
    moments_ = {{j.at("mean").get<float>()}, {j.at("var").get<float>()}, j.at("count").get<float>()};
    returns_ = std::move(returns);
  } catch (const nlohmann::json::exception& e) {
    throw ContentsError("[rl] the returns in the checkpoint are not readable: {}", e.what());
  }
}

}  // namespace redco
