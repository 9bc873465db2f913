// Deep deterministic policy gradient (Lillicrap et al. 2016). An epoch is n_steps in each of N environments
// with the actor's actions and exploration noise, then gradient_steps minibatches from the replay buffer.
// Critic and actor are updated in the same step; their target networks follow both.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipelines/rl_algorithm.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTarget = "target.";

class Ddpg : public RlAlgorithm {
 public:
  explicit Ddpg(RlJob job)
      : RlAlgorithm(std::move(job)),
        s_(job_.rl),
        actor_(Mlp::of(job_, "actor", job_.observations(), job_.actions())),
        critic_(Mlp::of(job_, "critic", job_.observations() + job_.actions(), 1)),
        noise_(static_cast<std::size_t>(s_.n_envs * job_.actions()), 0.f) {
    if (job_.discrete())
      throw UsageError(
          "[rl] rl.algorithm=ddpg needs continuous actions, but {} has {} discrete ones. Use ppo",
          job_.env->name(), job_.env->n_actions());
    if (s_.normalize_observations || s_.normalize_rewards)
      throw UsageError(
          "[rl] rl.normalize_observations and rl.normalize_rewards are for rl.algorithm=ppo. Remove them");
    memory_ = std::make_shared<RlTable>();
    memory_->columns = {{"action", job_.actions(), {}},
                        {"discount", 1, {}},  // of the next value: gamma, or 0 after a terminal step
                        {"next_observation", job_.observations(), {}},
                        {"observation", job_.observations(), {}},
                        {"reward", 1, {}}};
  }

  ModelParams params() const override {
    ModelParams p;
    for (const std::string of : {"", kTarget}) {
      named(of, actor_).declare_uniform(p, 3e-3);
      named(of, critic_).declare_uniform(p, 3e-3);
    }
    return p;
  }

  std::vector<ParamGroup> groups() const override {
    const auto begins = [](const std::string& prefix) {
      return [prefix](const std::string& name) { return name.starts_with(prefix); };
    };
    ParamGroup critic{.name = "critic", .has = begins("critic."), .term = "critic"};
    ParamGroup actor{.name = "actor",
                     .has = begins("actor."),
                     .term = "actor",
                     .learning_rate_factor = s_.actor_learning_rate_factor};
    ParamGroup targets{.name = "targets", .has = begins(kTarget)};
    targets.ema_of = [](const std::string& name) { return name.substr(std::string_view(kTarget).size()); };
    targets.tau = s_.tau;
    return {critic, actor, targets};
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    const TransitionColumns columns(*memory_, mine);
    for (const RlTable::Column& c : memory_->columns) b.fields[c.name] = columns.field(c.name, s);
    b.weights["critic"] = b.weights["actor"] = static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& p, const Batch& b) const override {
    Tensor wanted;
    {
      const NoGrad off;
      const Tensor next = b["next_observation"], action = tanh(named(kTarget, actor_)(p, next));
      wanted = b["reward"] + b["discount"] * named(kTarget, critic_)(p, concat({next, action}, -1));
    }
    const Tensor critic = square(critic_(p, concat({b["observation"], b["action"]}, -1)) - wanted);
    const Tensor best = critic_(p, concat({b["observation"], tanh(actor_(p, b["observation"]))}, -1));
    return {{"critic", sum_all(critic)}, {"actor", scale(sum_all(best), -1)}};
  }

  std::shared_ptr<const Dataset> source(const ParamTree& params, i64 epoch) override {
    if (job_.batch_size < 1)
      throw UsageError(
          "[rl] train.global_batch_size is missing: rl.algorithm=ddpg needs it as the minibatch size");
    if (epoch != epoch_) explore(params, epoch);
    const i64 n = s_.gradient_steps * job_.batch_size, rows = memory_->rows();
    std::vector<i32> order;
    for (const float u : job_.uniforms("minibatch", epoch, {n}))
      order.push_back(
          static_cast<i32>(std::min<i64>(static_cast<i64>(u * static_cast<double>(rows)), rows - 1)));
    return std::make_shared<RlRows>(
        memory_, std::move(order),
        fmt::format("ddpg {} {} x {}, {} of {}", job_.env->name(), s_.n_envs, s_.n_steps, n, s_.buffer_size));
  }

  std::vector<float> best_actions(const ParamTree& params,
                                  std::span<const float> observations) const override {
    std::vector<float> actions;
    for (const float a : think(params, observations)) actions.push_back(job_.to_bounds(a));
    return actions;
  }

  std::string state() const override {
    return Json{{"epoch", epoch_},
                {"envs", Json::parse(envs_.state())},
                {"next_row", next_row_},
                {"noise", noise_},
                {"memory", Json::parse(memory_->text())}}
        .dump();
  }

  void restore(const std::string& json) override {
    try {
      const Json j = Json::parse(json);
      envs_.restore(j.at("envs").dump());
      memory_->from_text(j.at("memory").dump(), -1);
      const i64 next = j.at("next_row");
      const auto noise = j.at("noise").get<std::vector<float>>();
      // A ring buffer: after the last row, writing continues at the first.
      const i64 rows = memory_->rows(), full = s_.buffer_size;
      const bool fits = rows < full ? next == rows && rows > 0 : rows == full && next >= 0 && next < full;
      if (!fits || noise.size() != noise_.size())
        throw ContentsError("[rl] the checkpoint has {} steps at {}, which contradicts rl.buffer_size={}",
                            rows, next, full);
      next_row_ = next;
      noise_ = noise;
      epoch_ = j.at("epoch");
    } catch (const Json::exception& e) {
      throw ContentsError("[rl] the state in the checkpoint is not readable: {}", e.what());
    }
  }

 private:
  static Mlp named(const std::string& prefix, Mlp m) {
    m.name = prefix + m.name;
    return m;
  }

  // The actor's actions in [-1, 1].
  std::vector<float> think(const ParamTree& params, std::span<const float> observations) const {
    std::vector<float> out = actor_.outputs(params, observations);
    for (float& a : out) a = std::tanh(a);
    return out;
  }

  // An epoch's steps; before the first epoch, learning_starts random ones.
  void explore(const ParamTree& params, i64 epoch) {
    if (epoch_ < 0) {
      envs_.begin(job_.uniforms("begin", 0, {s_.n_envs, job_.env->state_size()}));
      const i64 steps = ceil_div(s_.learning_starts, s_.n_envs);
      // Ornstein-Uhlenbeck noise explores on its own; independent noise hardly moves the state, so first
      // actions are uniform.
      const bool wanders = s_.noise_type != "normal";
      const Shape shape = {steps, s_.n_envs, job_.actions()};
      const std::vector<float> random =
          wanders ? job_.normals("random", 0, shape) : job_.uniforms("random", 0, shape);
      play("first reset", epoch, steps, [&](i64 i) {
        const float draw = random[static_cast<std::size_t>(i)];
        return wanders ? static_cast<float>(disturbance(static_cast<std::size_t>(i) % noise_.size(), draw))
                       : 2 * draw - 1;
      });
    }
    const std::vector<float> draws = job_.normals("noise", epoch, {s_.n_steps, s_.n_envs, job_.actions()});
    std::vector<float> means;
    play("reset", epoch, s_.n_steps, [&](i64 i) {
      const auto place =
          static_cast<std::size_t>(i) % noise_.size();  // index into all environments' action components
      if (place == 0) means = think(params, envs_.observations());
      return static_cast<float>(means[place] + disturbance(place, draws[static_cast<std::size_t>(i)]));
    });
    epoch_ = epoch;
  }

  // Steps the environments with the actions of `act`, which is called per component.
  template <class Act>
  void play(const char* site, i64 epoch, i64 steps, const Act& act) {
    const i64 n = s_.n_envs, a = job_.actions(), s = n * job_.env->state_size();
    const std::vector<float> resets = job_.uniforms(site, epoch, {steps, n, job_.env->state_size()});
    std::vector<float> actions(static_cast<std::size_t>(n * a)), own(actions.size());
    for (i64 t = 0; t < steps; ++t) {
      for (i64 i = 0; i < n * a; ++i) {
        actions[i] = std::clamp(act(t * n * a + i), -1.f, 1.f);
        own[i] = job_.to_bounds(actions[i]);
      }
      const std::vector<float> before = envs_.observations();
      const EnvRows::Outcome o =
          envs_.step(own, std::span<const float>(resets).subspan(static_cast<std::size_t>(t * s),
                                                                 static_cast<std::size_t>(s)));
      for (i64 e = 0; e < n; ++e) {
        remember(e, before, actions, o);
        if (o.ended[e]) std::fill_n(noise_.begin() + e * a, a, 0.f);
      }
    }
  }

  void remember(i64 e, const std::vector<float>& before, const std::vector<float>& actions,
                const EnvRows::Outcome& o) {
    const auto put = [&](const char* name, const float* from) {
      RlTable::Column& c = (*memory_)[name];
      const auto at = static_cast<std::size_t>(next_row_ * c.width);
      if (at == c.values.size()) c.values.resize(at + static_cast<std::size_t>(c.width));
      std::copy_n(from, c.width, c.values.begin() + static_cast<std::ptrdiff_t>(at));
    };
    const float discount = o.terminated[e] ? 0 : static_cast<float>(s_.gamma);
    put("action", actions.data() + e * job_.actions());
    put("discount", &discount);
    put("next_observation", o.next_observations.data() + e * job_.observations());
    put("observation", before.data() + e * job_.observations());
    put("reward", o.rewards.data() + e);
    next_row_ = (next_row_ + 1) % s_.buffer_size;
  }

  // Noise for one component of one environment's action, from a normal draw.
  double disturbance(std::size_t place, float normal) {
    if (s_.noise_type == "normal") return s_.noise_std * normal;
    constexpr double kTheta = 0.15;  // the value of Lillicrap et al.
    float& x = noise_[place];
    x = static_cast<float>((1 - kTheta) * x + s_.noise_std * normal);
    return x;
  }

  const RlSettings& s_;
  Mlp actor_, critic_;
  std::shared_ptr<RlTable> memory_;
  i64 next_row_ = 0;
  std::vector<float> noise_;  // state of the Ornstein-Uhlenbeck process per environment and action component
};

}  // namespace

std::unique_ptr<RlAlgorithm> make_ddpg(RlJob job) { return std::make_unique<Ddpg>(std::move(job)); }

}  // namespace redco
