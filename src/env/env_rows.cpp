#include "env/env_rows.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace redco {

namespace {

constexpr std::size_t kFinished = 100;  // number of episodes in the means of notes()

}  // namespace

EnvRows::EnvRows(std::shared_ptr<const Environment> env, i64 n)
    : env_(std::move(env)),
      n_(n),
      states_(static_cast<std::size_t>(n * env_->state_size())),
      lengths_(static_cast<std::size_t>(n)),
      returns_(static_cast<std::size_t>(n)) {}

std::span<double> EnvRows::state_of(i64 e) {
  const i64 s = env_->state_size();
  return std::span<double>(states_).subspan(static_cast<std::size_t>(e * s), static_cast<std::size_t>(s));
}

void EnvRows::begin_one(i64 e, std::span<const float> uniforms) {
  const auto s = static_cast<std::size_t>(env_->state_size());
  const auto row = uniforms.subspan(static_cast<std::size_t>(e) * s, s);
  const std::vector<double> u(row.begin(), row.end());
  env_->reset(u, state_of(e));
  lengths_[e] = 0;
  returns_[e] = 0;
}

void EnvRows::begin(std::span<const float> uniforms) {
  for (i64 e = 0; e < n_; ++e) begin_one(e, uniforms);
}

std::vector<float> EnvRows::observations() const {
  const auto s = static_cast<std::size_t>(env_->state_size()),
             o = static_cast<std::size_t>(env_->observation_size());
  std::vector<float> out(static_cast<std::size_t>(n_) * o);
  for (std::size_t e = 0; e < static_cast<std::size_t>(n_); ++e)
    env_->observe(std::span<const double>(states_).subspan(e * s, s),
                  std::span<float>(out).subspan(e * o, o));
  return out;
}

EnvRows::Outcome EnvRows::step(std::span<const float> actions, std::span<const float> uniforms) {
  const auto a = static_cast<std::size_t>(env_->action_size());
  Outcome out;
  for (i64 e = 0; e < n_; ++e) {
    const EnvOutcome o = env_->step(state_of(e), actions.subspan(static_cast<std::size_t>(e) * a, a));
    ++lengths_[e];
    returns_[e] += o.reward;
    out.rewards.push_back(static_cast<float>(o.reward));
    out.terminated.push_back(o.terminated);
    out.ended.push_back(o.terminated || lengths_[e] >= env_->time_limit());
  }
  out.next_observations = observations();
  steps_ += n_;
  for (i64 e = 0; e < n_; ++e) {
    if (!out.ended[e]) continue;
    finished_.emplace_back(returns_[e], lengths_[e]);
    if (finished_.size() > kFinished) finished_.pop_front();
    begin_one(e, uniforms);
  }
  return out;
}

std::map<std::string, double> EnvRows::notes() const {
  std::map<std::string, double> out = {{"env_steps", static_cast<double>(steps_)}};
  if (finished_.empty()) return out;
  double returns = 0, lengths = 0;
  for (const auto& [r, l] : finished_) {
    returns += r;
    lengths += static_cast<double>(l);
  }
  out["episode_return"] = returns / static_cast<double>(finished_.size());
  out["episode_length"] = lengths / static_cast<double>(finished_.size());
  return out;
}

std::string EnvRows::state() const {
  return nlohmann::json{{"env", env_->name()}, {"steps", steps_},     {"states", states_},
                        {"lengths", lengths_}, {"returns", returns_}, {"finished", finished_}}
      .dump();
}

void EnvRows::restore(const std::string& json) {
  try {
    const auto j = nlohmann::json::parse(json);
    if (j.at("env") != env_->name())
      throw ContentsError("[env] the saved episodes are from {}, but the job's environment is {}",
                          j.at("env").dump(), env_->name());
    const auto states = j.at("states").get<std::vector<double>>();
    const auto lengths = j.at("lengths").get<std::vector<i64>>();
    const auto returns = j.at("returns").get<std::vector<double>>();
    if (states.size() != states_.size() || lengths.size() != lengths_.size() ||
        returns.size() != returns_.size())
      throw ContentsError(
          "[env] the checkpoint has {} episodes, but the job steps {} environments in parallel",
          lengths.size(), n_);
    finished_ = j.at("finished").get<decltype(finished_)>();
    steps_ = j.at("steps");
    states_ = states;
    lengths_ = lengths;
    returns_ = returns;
  } catch (const nlohmann::json::exception& e) {
    throw ContentsError("[env] cannot read the saved episodes: {}", e.what());
  }
}

}  // namespace redco
