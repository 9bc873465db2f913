// Proximal policy optimization (Schulman et al. 2017), with what "The 37 Implementation Details of PPO"
// (Huang et al. 2022) finds to matter. An epoch is a rollout: n_steps in each of N environments with the
// policy as it is, then update_epochs passes over these steps in shuffled minibatches.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "data/epoch_order.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "pipelines/rl_algorithm.h"

namespace redco {

namespace {

using Json = nlohmann::json;

constexpr double kMostNormalized = 10;  // deviations beyond which observations and rewards are cut
const double kHalfLogTwoPi = 0.5 * std::log(2 * std::numbers::pi);

class Ppo : public RlAlgorithm {
 public:
  explicit Ppo(RlJob job)
      : RlAlgorithm(std::move(job)),
        s_(job_.rl),
        actor_(Mlp::of(job_, "actor", job_.observations(),
                       job_.discrete() ? job_.env->n_actions() : job_.actions())),
        critic_(Mlp::of(job_, "critic", job_.observations(), 1)),
        discounted_(static_cast<std::size_t>(s_.n_envs), 0.f) {
    const i64 rows = s_.n_envs * s_.n_steps;
    if (rows > (i64{1} << 28) / s_.update_epochs)
      throw UsageError("[rl] {} environments x {} steps x {} update epochs are too many examples of an epoch",
                       s_.n_envs, s_.n_steps, s_.update_epochs);
    table_ = std::make_shared<RlTable>();
    table_->columns = {{"action", job_.actions(), {}},           {"advantage", 1, {}}, {"log_prob", 1, {}},
                       {"observation", job_.observations(), {}}, {"return", 1, {}},    {"value", 1, {}}};
  }

  ModelParams params() const override {
    ModelParams p;
    actor_.declare_orthogonal_size(p, std::numbers::sqrt2, 0.01);
    critic_.declare_orthogonal_size(p, std::numbers::sqrt2, 1);
    SpecBuilder b(p);
    if (!job_.discrete())
      b.add("actor.log_std", {job_.actions()}, ParamKind::norm, {Init::Kind::constant, s_.log_std_init});
    if (s_.normalize_observations) {
      // Stored with the weights: who answers with the policy must see as it does.
      b.buffer("observation.count", {1}, ParamKind::norm);
      b.buffer("observation.mean", {job_.observations()}, ParamKind::norm);
      b.buffer("observation.var", {job_.observations()}, ParamKind::norm);
    }
    return p;
  }

  std::vector<ParamGroup> groups() const override {
    return {{.name = "all",
             .has = [](const std::string& name) { return !name.starts_with("observation."); },
             .term = "loss"}};
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    for (const RlTable::Column& c : table_->columns)
      if (!job_.discrete() || c.name != "action")
        b.fields[c.name] = value_rows(mine, s, c.name, {c.width});
    if (job_.discrete()) {
      std::vector<i32> actions;
      for (const Example& e : mine) actions.push_back(static_cast<i32>(e.values.at("action")[0]));
      b.fields["action"] = from_local_ids({s.rows}, actions);  // [B]
    }
    // min(r A, clip(r, 1 - c, 1 + c) A) = min(r A, bound): what A's sign lets the ratio reach.
    std::vector<float> bounds;
    for (const Example& e : mine) {
      const double a = e.values.at("advantage")[0];
      bounds.push_back(static_cast<float>(a * (a >= 0 ? 1 + s_.clip_range : 1 - s_.clip_range)));
    }
    b.fields["bound"] = from_local_values({s.rows, 1}, bounds);
    for (const char* term : {"loss", "policy", "value", "entropy"})
      b.weights[term] = static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& p, const Batch& b) const override {
    const auto [log_prob, entropy] = judge(p, b);  // [B, 1], the sum over B
    const Tensor ratio = exp(log_prob - b["log_prob"]);
    const Tensor policy = scale(sum_all(minimum(ratio * b["advantage"], b["bound"])), -1);
    const Tensor value = critic_(p, b["observation"]);
    Tensor error = square(value - b["return"]);
    if (s_.clip_range_vf) {
      const Tensor most = full({1, 1}, *s_.clip_range_vf);
      const Tensor moved = maximum(minimum(value - b["value"], most), -most);
      error = maximum(error, square(b["value"] + moved - b["return"]));
    }
    const Tensor values = sum_all(error);
    return {{"loss", add({policy, scale(values, s_.vf_coef), scale(entropy, -s_.ent_coef)})},
            {"policy", policy},
            {"value", values},
            {"entropy", entropy}};
  }

  std::shared_ptr<const Dataset> source(const ParamTree& params, i64 epoch) override {
    if (epoch != epoch_) roll_out(params, epoch);
    const i64 n = s_.n_envs * s_.n_steps;
    std::vector<i32> order;
    for (i64 u = 0; u < s_.update_epochs; ++u) {
      const EpochOrder shuffled(n, static_cast<u64>(job_.seed),
                                static_cast<u64>(epoch * s_.update_epochs + u));
      for (i64 i = 0; i < n; ++i) order.push_back(static_cast<i32>(shuffled.at(i)));
    }
    return std::make_shared<RlRows>(
        table_, std::move(order),
        fmt::format("ppo {} {} x {} x {}", job_.env->name(), s_.n_envs, s_.n_steps, s_.update_epochs));
  }

  std::vector<float> best_actions(const ParamTree& params,
                                  std::span<const float> observations) const override {
    const std::vector<double> out = think(params, normalized(params, observations));
    const std::size_t width = static_cast<std::size_t>(actor_.sizes.back());
    std::vector<float> actions;
    for (std::size_t i = 0; i < out.size(); i += width) {
      const auto first = out.begin() + static_cast<std::ptrdiff_t>(i), last = first + actor_.sizes.back();
      if (job_.discrete()) {
        actions.push_back(static_cast<float>(std::max_element(first, last) - first));
      } else {
        for (auto a = first; a != last; ++a) actions.push_back(job_.to_bounds(static_cast<float>(*a)));
      }
    }
    return actions;
  }

  std::string state() const override {
    Json j = {
        {"epoch", epoch_}, {"envs", Json::parse(envs_.state())}, {"rollout", Json::parse(table_->text())}};
    if (s_.normalize_rewards)
      j["rewards"] = {{"count", returns_.count},
                      {"var", returns_.var},
                      {"mean", returns_.mean},
                      {"discounted", discounted_}};
    return j.dump();
  }

  void restore(const std::string& json) override {
    try {
      const Json j = Json::parse(json);
      envs_.restore(j.at("envs").dump());
      table_->from_text(j.at("rollout").dump(), s_.n_envs * s_.n_steps);
      if (s_.normalize_rewards) {
        const Json& r = j.at("rewards");
        returns_ = {
            {r.at("mean").at(0).get<float>()}, {r.at("var").at(0).get<float>()}, r.at("count").get<float>()};
        const auto discounted = r.at("discounted").get<std::vector<float>>();
        if (discounted.size() != discounted_.size())
          throw ContentsError("[rl] the saved returns are of {} environments", discounted.size());
        discounted_ = discounted;
      }
      epoch_ = j.at("epoch");
    } catch (const Json::exception& e) {
      throw ContentsError("[rl] the saved state can't be read: {}", e.what());
    }
  }

 private:
  // Log-probabilities [B, 1] of the batch's actions, and the policy's entropy summed over its rows.
  std::pair<Tensor, Tensor> judge(const ParamTree& p, const Batch& b) const {
    const Tensor out = actor_(p, b["observation"]);
    const i64 rows = b.shape.rows;
    if (job_.discrete()) {
      const Tensor log_probs = log_softmax(out);
      return {reshape(pick(log_probs, b["action"]), {rows, 1}),
              scale(sum_all(exp(log_probs) * log_probs), -1)};
    }
    // log N(a; m, s) = -z^2 / 2 - log s - log(2 pi) / 2 summed over the action's numbers
    const Tensor log_std = p["actor.log_std"];
    const Tensor z = (b["action"] - out) * exp(-log_std);
    const Tensor log_stds = sum_all(log_std);
    const double a = static_cast<double>(job_.actions());
    const Tensor log_prob =
        add_scalar(scale(sum(square(z), {-1}, true), -0.5) - log_stds, -a * kHalfLogTwoPi);
    const double n = static_cast<double>(rows);
    return {log_prob, add_scalar(scale(log_stds, n), n * a * (0.5 + kHalfLogTwoPi))};
  }

  // The policy's output for observations as it sees them, the same on all ranks.
  std::vector<double> think(const ParamTree& params, std::span<const float> observations) const {
    const NoGrad off;
    const i64 o = job_.observations(), n = static_cast<i64>(observations.size()) / o;
    return to_values(actor_(params, from_values({n, o}, observations)));
  }
  std::vector<double> values(const ParamTree& params, std::span<const float> observations) const {
    const NoGrad off;
    const i64 o = job_.observations(), n = static_cast<i64>(observations.size()) / o;
    return to_values(critic_(params, from_values({n, o}, observations)));
  }

  std::vector<float> normalized(const ParamTree& p, std::span<const float> rows) const {
    std::vector<float> out(rows.begin(), rows.end());
    if (!s_.normalize_observations || p["observation.count"].data<float>()[0] == 0) return out;
    const float *mean = p["observation.mean"].data<float>(), *var = p["observation.var"].data<float>();
    const std::size_t dims = static_cast<std::size_t>(job_.observations());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double z = (out[i] - mean[i % dims]) / std::sqrt(var[i % dims] + 1e-8);
      out[i] = static_cast<float>(std::clamp(z, -kMostNormalized, kMostNormalized));
    }
    return out;
  }

  void see(const ParamTree& p, std::span<const float> rows) const {
    float *mean = p["observation.mean"].mutable_data<float>(),
          *var = p["observation.var"].mutable_data<float>(),
          *count = p["observation.count"].mutable_data<float>();
    const auto dims = job_.observations();
    RunningMoments m{{mean, mean + dims}, {var, var + dims}, *count};
    m.add(rows);
    std::copy(m.mean.begin(), m.mean.end(), mean);
    std::copy(m.var.begin(), m.var.end(), var);
    *count = m.count;
  }

  void roll_out(const ParamTree& params, i64 epoch) {
    const i64 n = s_.n_envs, steps = s_.n_steps, a = job_.actions(), width = actor_.sizes.back();
    if (epoch_ < 0) envs_.begin(job_.uniforms("begin", 0, {n, job_.env->state_size()}));
    const std::vector<float> resets = job_.uniforms("reset", epoch, {steps, n, job_.env->state_size()});
    const std::vector<float> draws = job_.discrete() ? job_.uniforms("action", epoch, {steps, n, 1})
                                                     : job_.normals("action", epoch, {steps, n, a});
    std::vector<float> log_std(static_cast<std::size_t>(a));
    if (!job_.discrete()) {
      const std::vector<double> l = to_values(params["actor.log_std"]);
      log_std.assign(l.begin(), l.end());
    }
    for (RlTable::Column& c : table_->columns) c.values.clear();
    auto& observed = (*table_)["observation"].values;
    auto& acted = (*table_)["action"].values;
    auto& log_probs = (*table_)["log_prob"].values;
    std::vector<float> seen, followed, rewards;  // observations as the environment shows them
    std::vector<bool> terminated, ended;
    for (i64 t = 0; t < steps; ++t) {
      const std::vector<float> raw = envs_.observations(), now = normalized(params, raw);
      const std::vector<double> out = think(params, now);
      std::vector<float> actions;
      for (i64 e = 0; e < n; ++e) {
        const std::span<const double> mine(out.data() + e * width, static_cast<std::size_t>(width));
        const float* draw = draws.data() + (t * n + e) * (job_.discrete() ? 1 : a);
        if (job_.discrete()) {
          const auto [action, log_prob] = chosen(mine, *draw);
          acted.push_back(static_cast<float>(action));
          log_probs.push_back(log_prob);
          actions.push_back(static_cast<float>(action));
          continue;
        }
        double log_prob = 0;
        for (i64 k = 0; k < a; ++k) {
          const double z = draw[k];
          const float action = static_cast<float>(mine[k] + std::exp(log_std[k]) * z);
          log_prob += -0.5 * z * z - log_std[k] - kHalfLogTwoPi;
          acted.push_back(action);
          actions.push_back(job_.to_bounds(action));
        }
        log_probs.push_back(static_cast<float>(log_prob));
      }
      const auto s = static_cast<std::size_t>(n * job_.env->state_size());
      const EnvRows::Outcome o =
          envs_.step(actions, std::span<const float>(resets).subspan(static_cast<std::size_t>(t) * s, s));
      seen.insert(seen.end(), raw.begin(), raw.end());
      observed.insert(observed.end(), now.begin(), now.end());
      followed.insert(followed.end(), o.next_observations.begin(), o.next_observations.end());
      rewards.insert(rewards.end(), o.rewards.begin(), o.rewards.end());
      terminated.insert(terminated.end(), o.terminated.begin(), o.terminated.end());
      ended.insert(ended.end(), o.ended.begin(), o.ended.end());
    }
    if (s_.normalize_rewards) rewards = normalized_rewards(rewards, ended);
    value_them(params, rewards, normalized(params, followed), terminated, ended);
    if (s_.normalize_observations) see(params, seen);
    epoch_ = epoch;
  }

  // An action of the softmax of logits, by a uniform draw, and its log-probability.
  static std::pair<i64, float> chosen(std::span<const double> logits, float uniform) {
    const double top = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const double l : logits) total += std::exp(l - top);
    double rest = uniform * total;
    std::size_t k = 0;
    for (; k + 1 < logits.size(); ++k) {
      rest -= std::exp(logits[k] - top);
      if (rest < 0) break;
    }
    return {static_cast<i64>(k), static_cast<float>(logits[k] - top - std::log(total))};
  }

  // By the deviation of the discounted return so far, as gymnasium's NormalizeReward.
  std::vector<float> normalized_rewards(std::vector<float> rewards, const std::vector<bool>& ended) {
    std::vector<float> returns;
    const std::size_t n = discounted_.size();
    for (std::size_t i = 0; i < rewards.size(); ++i) {
      float& r = discounted_[i % n];
      r = static_cast<float>(s_.gamma * r + rewards[i]);
      returns.push_back(r);
      if (ended[i]) r = 0;
    }
    returns_.add(returns);
    const double scale = 1 / std::sqrt(returns_.var[0] + 1e-8);
    for (float& r : rewards) r = static_cast<float>(std::clamp(r * scale, -kMostNormalized, kMostNormalized));
    return rewards;
  }

  void value_them(const ParamTree& params, const std::vector<float>& rewards,
                  const std::vector<float>& followed, const std::vector<bool>& terminated,
                  const std::vector<bool>& ended) {
    auto floats = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
    auto& value = (*table_)["value"].values = floats(values(params, (*table_)["observation"].values));
    auto& advantage = (*table_)["advantage"].values =
        generalized_advantages(rewards, value, floats(values(params, followed)), terminated, ended, s_.n_envs,
                               s_.gamma, s_.gae_lambda);
    auto& returns = (*table_)["return"].values = advantage;
    for (std::size_t i = 0; i < returns.size(); ++i) returns[i] += value[i];
    if (!s_.normalize_advantage || advantage.size() < 2) return;
    RunningMoments m{{0}, {0}, 0};
    m.add(advantage);
    const double deviation = std::sqrt(m.var[0] * static_cast<double>(advantage.size()) /
                                       static_cast<double>(advantage.size() - 1));
    for (float& x : advantage) x = static_cast<float>((x - m.mean[0]) / (deviation + 1e-8));
  }

  const RlSettings& s_;
  Mlp actor_, critic_;
  std::shared_ptr<RlTable> table_;
  RunningMoments returns_{{0}, {0}, 0};
  std::vector<float> discounted_;  // return of each environment so far
};

}  // namespace

std::unique_ptr<RlAlgorithm> make_ppo(RlJob job) { return std::make_unique<Ppo>(std::move(job)); }

}  // namespace redco
