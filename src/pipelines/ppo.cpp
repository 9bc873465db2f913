// Proximal policy optimization (Schulman et al. 2017), with the details that matter according to "The 37
// Implementation Details of PPO" (Huang et al. 2022). An epoch is a rollout, n_steps in each of N
// environments with the current policy, then update_epochs passes through these steps in shuffled
// minibatches.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/error.h"
#include "data/index/epoch_order.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "pipelines/rl_algorithm.h"
#include "pipelines/rl_normalize.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

const double kHalfLogTwoPi = 0.5 * std::log(2 * std::numbers::pi);

class Ppo : public RlAlgorithm {
 public:
  explicit Ppo(RlJob job)
      : RlAlgorithm(std::move(job)),
        s_(job_.rl),
        actor_(Mlp::of(job_, "actor", job_.observations(),
                       job_.discrete() ? job_.env->n_actions() : job_.actions())),
        critic_(Mlp::of(job_, "critic", job_.observations(), 1)),
        normalized_(job_.observations(), s_.normalize_observations),
        normalize_rewards_(s_.n_envs, s_.gamma, s_.normalize_rewards) {
    if (s_.n_envs * s_.n_steps > (i64{1} << 28) / s_.update_epochs)
      throw UsageError("[rl] {} environments x {} steps x {} update epochs are too many examples per epoch",
                       s_.n_envs, s_.n_steps, s_.update_epochs);
    table_ = std::make_shared<RlTable>();
    table_->columns = {{"action", job_.actions(), {}},           {"advantage", 1, {}}, {"log_prob", 1, {}},
                       {"observation", job_.observations(), {}}, {"return", 1, {}},    {"value", 1, {}}};
  }

  ModelParams params() const override {
    ModelParams p;
    actor_.declare_orthogonal_size(p, std::numbers::sqrt2, 0.01);
    critic_.declare_orthogonal_size(p, std::numbers::sqrt2, 1);
    if (!job_.discrete())
      SpecBuilder(p).add("actor.log_std", {job_.actions()}, ParamKind::norm,
                         {Init::Kind::constant, s_.log_std_init});
    normalized_.declare(p);
    return p;
  }

  std::vector<ParamGroup> groups() const override {
    return {{.name = "all",
             .has = [](const std::string& name) { return !ObservationNormalizer::owns(name); },
             .term = "loss"}};
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    const TransitionColumns columns(*table_, mine);
    for (const RlTable::Column& c : table_->columns)
      if (!job_.discrete() || c.name != "action") b.fields[c.name] = columns.field(c.name, s);
    if (job_.discrete()) {
      const std::vector<float> actions = columns.values("action");
      b.fields["action"] = from_local_ids({s.rows}, std::vector<i32>(actions.begin(), actions.end()));  // [B]
    }
    // min(r A, clip(r, 1 - c, 1 + c) A) = min(r A, bound); the bound depends on A's sign.
    std::vector<float> bounds = columns.values("advantage");
    for (float& x : bounds) {
      const double a = x;
      x = static_cast<float>(a * (a >= 0 ? 1 + s_.clip_range : 1 - s_.clip_range));
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
    std::vector<Tensor> parts = {policy, scale(values, s_.vf_coef)};
    if (s_.ent_coef != 0) parts.push_back(scale(entropy, -s_.ent_coef));
    return {{"loss", add(parts)}, {"policy", policy}, {"value", values}, {"entropy", entropy}};
  }

  std::shared_ptr<const Dataset> source(const ParamTree& params, i64 epoch) override {
    if (epoch != epoch_) roll_out(params, epoch);
    const i64 n = s_.n_envs * s_.n_steps;
    std::vector<i32> order;
    order.reserve(static_cast<std::size_t>(n * s_.update_epochs));
    for (i64 u = epoch * s_.update_epochs; u < (epoch + 1) * s_.update_epochs; ++u) {
      const EpochOrder shuffled(n, static_cast<u64>(job_.seed), static_cast<u64>(u));
      for (const i64 row : shuffled.range(0, n)) order.push_back(static_cast<i32>(row));
    }
    return std::make_shared<RlRows>(
        table_, std::move(order),
        fmt::format("ppo {} {} x {} x {}", job_.env->name(), s_.n_envs, s_.n_steps, s_.update_epochs));
  }

  std::vector<float> best_actions(const ParamTree& params,
                                  std::span<const float> observations) const override {
    const std::vector<float> out = actor_.outputs(params, normalized_(params, observations));
    std::vector<float> actions;
    for (auto row = out.begin(); row != out.end(); row += actor_.sizes.back()) {
      const auto last = row + actor_.sizes.back();
      if (job_.discrete()) actions.push_back(static_cast<float>(std::max_element(row, last) - row));
      for (auto a = row; a != last && !job_.discrete(); ++a) actions.push_back(job_.to_bounds(*a));
    }
    return actions;
  }

  std::string state() const override {
    return Json{{"epoch", epoch_},
                {"envs", Json::parse(envs_.state())},
                {"rollout", Json::parse(table_->text())},
                {"rewards", Json::parse(normalize_rewards_.state())}}
        .dump();
  }

  void restore(const std::string& json) override {
    try {
      const Json j = Json::parse(json);
      envs_.restore(j.at("envs").dump());
      table_->from_text(j.at("rollout").dump(), s_.n_envs * s_.n_steps);
      normalize_rewards_.restore(j.at("rewards").dump());
      epoch_ = j.at("epoch");
    } catch (const Json::exception& e) {
      throw ContentsError("[rl] the state in the checkpoint is not readable: {}", e.what());
    }
  }

 private:
  // Log-probabilities [B, 1] of the batch's actions, and the policy's entropy summed over its rows.
  std::pair<Tensor, Tensor> judge(const ParamTree& p, const Batch& b) const {
    const Tensor out = actor_(p, b["observation"]);
    const double rows = static_cast<double>(b.shape.rows), a = static_cast<double>(job_.actions());
    // With ent_coef = 0 the entropy is only reported and needs no gradient.
    const auto recorded = [this](const auto& entropy) {
      bool& recording = Context::current().recording;
      const Restore<bool> tape(recording, recording && s_.ent_coef != 0);
      return entropy();
    };
    if (job_.discrete()) {
      const Tensor log_probs = log_softmax(out);
      return {reshape(pick(log_probs, b["action"]), {b.shape.rows, 1}),
              recorded([&] { return scale(sum_all(exp(log_probs) * log_probs), -1); })};
    }
    // log N(a; m, s) = -z^2 / 2 - log s - log(2 pi) / 2 summed over the action's numbers
    const Tensor log_std = p["actor.log_std"], all = sum_all(log_std);
    const Tensor z = (b["action"] - out) * exp(-log_std);
    return {add_scalar(scale(sum(square(z), {-1}, true), -0.5) - all, -a * kHalfLogTwoPi),
            recorded([&] { return add_scalar(scale(all, rows), rows * a * (0.5 + kHalfLogTwoPi)); })};
  }

  // Chooses a step's actions from the policy's outputs [N, width] and random draws, and writes them with
  // their log-probabilities to the table. Returns them in the environment's units [N, A].
  std::vector<float> act(const std::vector<float>& out, const float* draws,
                         const std::vector<float>& log_std) {
    auto &acted = (*table_)["action"].values, &log_probs = (*table_)["log_prob"].values;
    std::vector<float> actions;
    for (std::size_t at = 0; at < out.size(); at += static_cast<std::size_t>(actor_.sizes.back())) {
      double log_prob = 0;
      if (job_.discrete()) {
        const auto [action, l] =
            chosen({out.data() + at, static_cast<std::size_t>(actor_.sizes.back())}, *draws++);
        actions.push_back(action);
        acted.push_back(action);
        log_prob = l;
      } else {
        for (std::size_t k = 0; k < log_std.size(); ++k, ++draws) {
          acted.push_back(static_cast<float>(out[at + k] + std::exp(log_std[k]) * *draws));
          actions.push_back(job_.to_bounds(acted.back()));
          log_prob += -0.5 * *draws * *draws - log_std[k] - kHalfLogTwoPi;
        }
      }
      log_probs.push_back(static_cast<float>(log_prob));
    }
    return actions;
  }

  // Samples an action from the softmax of logits with a uniform draw; returns it with its log-probability.
  static std::pair<float, double> chosen(std::span<const float> logits, float uniform) {
    const double top = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const double l : logits) total += std::exp(l - top);
    double rest = uniform * total;
    std::size_t k = 0;
    for (; k + 1 < logits.size(); ++k) {
      rest -= std::exp(logits[k] - top);
      if (rest < 0) break;
    }
    return {static_cast<float>(k), logits[k] - top - std::log(total)};
  }

  void roll_out(const ParamTree& params, i64 epoch) {
    const i64 n = s_.n_envs, steps = s_.n_steps, states = job_.env->state_size();
    if (epoch_ < 0) envs_.begin(job_.uniforms("begin", 0, {n, states}));
    const std::vector<float> resets = job_.uniforms("reset", epoch, {steps, n, states});
    const std::vector<float> draws = job_.discrete()
                                         ? job_.uniforms("action", epoch, {steps, n, 1})
                                         : job_.normals("action", epoch, {steps, n, job_.actions()});
    std::vector<double> log_std;
    if (!job_.discrete()) log_std = to_values(params["actor.log_std"]);
    for (RlTable::Column& c : table_->columns) c.values.clear();
    std::vector<float> seen, followed, rewards;  // observations before normalization
    std::vector<bool> terminated, ended;
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (i64 t = 0; t < steps; ++t) {
      const std::vector<float> raw = envs_.observations(), now = normalized_(params, raw);
      const std::vector<float> actions =
          act(actor_.outputs(params, now), draws.data() + t * n * job_.actions(),
              {log_std.begin(), log_std.end()});
      const EnvRows::Outcome o =
          envs_.step(actions, {resets.data() + t * n * states, static_cast<std::size_t>(n * states)});
      append(seen, raw);
      append((*table_)["observation"].values, now);
      append(followed, o.next_observations);
      append(rewards, o.rewards);
      append(terminated, o.terminated);
      append(ended, o.ended);
    }
    normalize_rewards_(rewards, ended);
    auto &value = (*table_)["value"].values, &advantage = (*table_)["advantage"].values,
         &returns = (*table_)["return"].values;
    value = critic_.outputs(params, (*table_)["observation"].values);
    advantage = generalized_advantages(rewards, value, critic_.outputs(params, normalized_(params, followed)),
                                       terminated, ended, n, s_.gamma, s_.gae_lambda);
    for (std::size_t i = 0; i < value.size(); ++i) returns.push_back(advantage[i] + value[i]);
    if (s_.normalize_advantage) standardize(advantage);
    normalized_.see(params, seen);
    epoch_ = epoch;
  }

  const RlSettings& s_;
  Mlp actor_, critic_;
  ObservationNormalizer normalized_;
  RewardNormalizer normalize_rewards_;
  std::shared_ptr<RlTable> table_;
};

}  // namespace

std::unique_ptr<RlAlgorithm> make_ppo(RlJob job) { return std::make_unique<Ppo>(std::move(job)); }

}  // namespace redco
