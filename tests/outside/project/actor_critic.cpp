// Deep deterministic policy gradient (Lillicrap et al. 2016): an agent pushes a point to the origin. Two
// losses and three parameter groups: the critic minimizes the error of its estimates, the actor (every second
// step) the negative estimate for its actions, and the target networks follow both slowly. The examples of an
// epoch are transitions of the current actor.
#include <cmath>

#include "redco.h"

using namespace redco;

class ActorCritic : public Pipeline {
 public:
  ActorCritic() {
    SpecBuilder b(params_);
    for (const std::string target : {"", "target."}) {
      network(b, target + "actor", kState, kAction);
      network(b, target + "critic", kState + kAction, 1);
    }
  }
  const ModelParams& params() const override { return params_; }

  std::vector<ParamGroup> groups() const override {
    auto begins = [](const std::string& prefix) {
      return [prefix](const std::string& name) { return name.starts_with(prefix); };
    };
    ParamGroup critic{.name = "critic", .has = begins("critic."), .term = "critic"};
    ParamGroup actor{
        .name = "actor", .has = begins("actor."), .term = "actor", .learning_rate_factor = 0.5, .period = 2};
    ParamGroup targets{.name = "targets", .has = begins("target.")};
    targets.ema_of = [](const std::string& name) { return name.substr(std::string("target.").size()); };
    targets.tau = 0.1;
    return {critic, actor, targets};
  }

  // Episodes of the current actor with noise. All ranks call it together, so it may run the actor.
  std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx) override {
    const i64 n = kEpisodes * kLength;
    if (kept_ && kept_->get(0).ordinal == ctx.epoch * n) return kept_;  // the run continues inside this epoch
    std::vector<Example> out;
    const std::vector<double> start =
        to_values(random_normal({kEpisodes, kState}, Context::current().key("start")));
    std::vector<float> state(start.begin(), start.end());  // [episodes, kState], now
    for (i64 t = 0; t < kLength; ++t) {
      const Tensor s = from_values({kEpisodes, kState}, std::span<const float>(state));
      const Tensor noise =
          random_normal({kEpisodes, kAction}, Context::current().key(fmt::format("noise {}", t)));
      const std::vector<double> action = to_values(act(params, "actor", s) + 0.3 * noise);
      for (i64 e = 0; e < kEpisodes; ++e) {
        Example x;
        x.ordinal = ctx.epoch * n + t * kEpisodes + e;
        float reward = 0;
        for (i64 i = 0; i < kAction; ++i)
          x.values["action"].push_back(static_cast<float>(action[e * kAction + i]));
        for (i64 i = 0; i < kState; ++i) {
          float& v = state[e * kState + i];
          x.values["state"].push_back(v);
          v = 0.9f * v + 0.4f * x.values["action"][i % kAction];
          x.values["next"].push_back(v);
          reward -= v * v;
        }
        x.values["reward"] = {reward};
        out.push_back(std::move(x));
      }
    }
    kept_ =
        std::make_shared<ExampleList>(std::move(out), fmt::format("{} episodes of {}", kEpisodes, kLength));
    return kept_;
  }

  // The transitions of this epoch come from an earlier actor, so the checkpoint saves them.
  std::string state() const override { return kept_ ? examples_to_json(kept_->examples()) : "[]"; }
  void restore(const std::string& json) override {
    auto examples = examples_from_json(json);
    if (!examples.empty())
      kept_ = std::make_shared<ExampleList>(std::move(examples),
                                            fmt::format("{} episodes of {}", kEpisodes, kLength));
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    b.fields["state"] = value_rows(mine, s, "state", {kState});
    b.fields["next"] = value_rows(mine, s, "next", {kState});
    b.fields["action"] = value_rows(mine, s, "action", {kAction});
    b.fields["reward"] = value_rows(mine, s, "reward", {1});
    b.weights["critic"] = b.weights["actor"] = static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& p, const Batch& b, const StepContext&) const override {
    const Tensor next = estimate(p, "target.critic", b["next"], act(p, "target.actor", b["next"]));
    const Tensor wanted = stop_gradient(b["reward"] + kDiscount * next);
    const Tensor critic = square(estimate(p, "critic", b["state"], b["action"]) - wanted);
    const Tensor actor = -estimate(p, "critic", b["state"], act(p, "actor", b["state"]));
    return {{"critic", sum_all(critic)}, {"actor", sum_all(actor)}};
  }

 private:
  static constexpr i64 kState = 4, kAction = 2, kHidden = 32, kEpisodes = 8, kLength = 4;
  static constexpr double kDiscount = 0.9;

  static void network(SpecBuilder& b, const std::string& name, i64 in, i64 out) {
    b.linear(name + ".fc1", kHidden, in, true, 1 / std::sqrt(static_cast<double>(in)));
    b.linear(name + ".fc2", out, kHidden, true, 1 / std::sqrt(static_cast<double>(kHidden)));
  }
  static Tensor run(const ParamTree& p, const std::string& name, const Tensor& x) {
    return dense(p, name + ".fc2", tanh(dense(p, name + ".fc1", x)));
  }
  static Tensor act(const ParamTree& p, const std::string& name, const Tensor& s) {
    return tanh(run(p, name, s));
  }
  static Tensor estimate(const ParamTree& p, const std::string& name, const Tensor& s, const Tensor& a) {
    return run(p, name, concat({s, a}, -1));
  }

  ModelParams params_;
  std::shared_ptr<const ExampleList> kept_;
};

REDCO_PIPELINE(ActorCritic)
