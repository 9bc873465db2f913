// The sections of algorithms that have some: `maml:` and `rl:`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// Model-agnostic meta-learning (Finn et al. 2017).
struct MamlSettings {
  i64 n_ways = 5, n_shots = 1, n_query = 1;
  i64 inner_steps = 1;
  double inner_learning_rate = 0.5;
  bool first_order = false;
  i64 tasks_per_epoch = 1000, eval_tasks = 200;
  bool rotations = false;

  void visit(SettingsVisitor& v) {
    v.field("n_ways", n_ways, "classes of a task").at_least(2).at_most(1 << 20).on_resume(OnResume::error);
    v.field("n_shots", n_shots, "examples of each class that a task adapts to")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::overridable);
    v.field("n_query", n_query, "examples of each class that it is then tested on")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::overridable);
    v.field("inner_steps", inner_steps, "gradient steps of the adaptation")
        .at_least(0)
        .at_most(1000)
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::overridable);
    v.field("inner_learning_rate", inner_learning_rate, "step size of the adaptation")
        .at_least(0)
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::overridable);
    v.field("first_order", first_order,
            "take the inner gradients as constants; false differentiates through them")
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::job);
    v.field("tasks_per_epoch", tasks_per_epoch, "training tasks of an epoch, each epoch's drawn anew")
        .at_least(1)
        .at_most(i64{1} << 40)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::job);
    v.field("eval_tasks", eval_tasks, "tasks of an evaluation, drawn once")
        .at_least(1)
        .at_most(1 << 30)
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field("rotations", rotations,
            "training classes of images turned by 90, 180 and 270 degrees are classes of their own")
        .on_resume(OnResume::error);
  }
};

// Reinforcement learning, by the names of Stable-Baselines3. An epoch is n_steps steps in each environment,
// and what is learned from them.
struct RlSettings {
  std::string algorithm = "ppo";
  std::string env;
  i64 n_envs = 8, n_steps = 128;
  std::vector<i64> hidden_sizes = {64, 64};
  std::string activation = "tanh";
  double gamma = 0.99;
  i64 n_eval_episodes = 100;
  // PPO
  i64 update_epochs = 10;
  double gae_lambda = 0.95, clip_range = 0.2;
  std::optional<double> clip_range_vf;
  double ent_coef = 0, vf_coef = 0.5;
  bool normalize_advantage = true, normalize_observations = false, normalize_rewards = false;
  double log_std_init = 0;
  // DDPG
  i64 gradient_steps = 128;
  i64 buffer_size = 100'000, learning_starts = 1000;
  double tau = 0.005;
  std::string noise_type = "normal";
  double noise_std = 0.1;
  double actor_learning_rate_factor = 1;

  void visit(SettingsVisitor& v) {
    const double most = 1 << 20;
    v.field("algorithm", algorithm, "how the policy learns")
        .one_of({"ppo", "ddpg"})
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("env", env, "the environment, e.g. CartPole-v1")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("n_envs", n_envs, "environments that are stepped at once")
        .at_least(1)
        .at_most(1 << 16)
        .on_resume(OnResume::error);
    v.field("n_steps", n_steps, "steps in each environment between two phases of learning, an epoch")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::error);
    v.field("hidden_sizes", hidden_sizes, "widths of the hidden layers of policy and value networks")
        .at_least(1)
        .at_most(1 << 16)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("activation", activation, "between these layers")
        .one_of({"tanh", "relu", "gelu", "silu"})
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("gamma", gamma, "discount of a reward for each step that it comes later")
        .at_least(0)
        .at_most(1)
        .on_resume(OnResume::note);
    v.field("n_eval_episodes", n_eval_episodes,
            "episodes of an evaluation, played without exploration from states that training does not begin "
            "from; 0: no evaluation")
        .at_least(0)
        .at_most(most)
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field("update_epochs", update_epochs, "ppo: passes over an epoch's steps")
        .at_least(1)
        .at_most(1000)
        .on_resume(OnResume::error);
    v.field("gae_lambda", gae_lambda, "ppo: decay of generalized advantage estimation")
        .at_least(0)
        .at_most(1)
        .on_resume(OnResume::note);
    v.field("clip_range", clip_range, "ppo: how far an action's probability may move, as a share of it")
        .above(0)
        .on_resume(OnResume::note);
    v.field("clip_range_vf", clip_range_vf, "ppo: how far a value may move; ~ is any distance")
        .above(0)
        .on_resume(OnResume::note);
    v.field("ent_coef", ent_coef, "ppo: weight of the policy's entropy in the loss")
        .at_least(0)
        .on_resume(OnResume::note);
    v.field("vf_coef", vf_coef, "ppo: weight of the values' squared error in the loss")
        .at_least(0)
        .on_resume(OnResume::note);
    v.field("normalize_advantage", normalize_advantage,
            "ppo: advantages of an epoch get mean 0 and deviation 1")
        .on_resume(OnResume::note);
    v.field("normalize_observations", normalize_observations,
            "ppo: observations are scaled by their mean and deviation so far")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("normalize_rewards", normalize_rewards,
            "ppo: rewards are scaled by the deviation of discounted returns so far")
        .on_resume(OnResume::error);
    v.field("log_std_init", log_std_init, "ppo: first logarithm of a continuous action's deviation")
        .at_least(-10)
        .at_most(10)
        .on_resume(OnResume::error);
    v.field("gradient_steps", gradient_steps, "ddpg: updates in an epoch")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::error);
    v.field("buffer_size", buffer_size, "ddpg: steps that are remembered")
        .at_least(1)
        .at_most(1'000'000)
        .on_resume(OnResume::error);
    v.field("learning_starts", learning_starts, "ddpg: random steps before the first update")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::note);
    v.field("tau", tau, "ddpg: share by which target networks follow in each update")
        .above(0)
        .at_most(1)
        .on_resume(OnResume::note);
    v.field("noise_type", noise_type,
            "ddpg: exploration, independent normal draws or an Ornstein-Uhlenbeck process")
        .one_of({"normal", "ornstein-uhlenbeck"})
        .on_resume(OnResume::note);
    v.field("noise_std", noise_std, "ddpg: its deviation, where actions lie between -1 and 1")
        .at_least(0)
        .on_resume(OnResume::note);
    v.field("actor_learning_rate_factor", actor_learning_rate_factor,
            "ddpg: the actor's learning rate as a multiple of train.learning_rate, the critic's")
        .above(0)
        .on_resume(OnResume::note);
  }
};

}  // namespace redco
