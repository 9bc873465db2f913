// The `maml:`, `rl:`, `distillation:`, `contrastive:` and `diffusion:` sections: settings of single
// algorithms. Those of preferences and rewards are in preference_settings.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "pipeline/preference_settings.h"

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
    v.field("n_ways", n_ways, "number of classes in a task")
        .at_least(2)
        .at_most(1 << 20)
        .on_resume(OnResume::error);
    v.field("n_shots", n_shots, "support examples per class, which a task adapts to")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::overridable);
    v.field("n_query", n_query, "query examples per class, on which the adapted model is measured")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::overridable);
    v.field("inner_steps", inner_steps, "number of inner-loop gradient steps")
        .at_least(0)
        .at_most(1000)
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::overridable);
    v.field("inner_learning_rate", inner_learning_rate, "inner-loop learning rate")
        .at_least(0)
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::overridable);
    v.field("first_order", first_order,
            "first-order MAML: inner gradients are constants; false: the outer gradient includes second "
            "derivatives")
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::job);
    v.field("tasks_per_epoch", tasks_per_epoch, "training tasks per epoch; every epoch draws new tasks")
        .at_least(1)
        .at_most(i64{1} << 40)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::job);
    v.field("eval_tasks", eval_tasks, "tasks per evaluation; every evaluation uses the same tasks")
        .at_least(1)
        .at_most(1 << 30)
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);
    v.field("rotations", rotations,
            "rotated classes for training on images: each class turned by 90, 180 and 270 degrees is another "
            "class")
        .on_resume(OnResume::error);
  }
};

// Knowledge distillation (Hinton et al. 2015).
struct DistillationSettings {
  double temperature = 2, alpha = 0.5;

  void visit(SettingsVisitor& v) {
    v.field("temperature", temperature, "temperature of the distributions of teacher and student")
        .above(0)
        .on_resume(OnResume::note);
    v.field("alpha", alpha,
            "weight of the teacher: loss = (1 - alpha) cross-entropy + alpha temperature^2 KL(teacher || "
            "student), in nats per token")
        .at_least(0)
        .at_most(1)
        .on_resume(OnResume::note);
  }
};

// Contrastive learning of images and texts (CLIP: Radford et al. 2021; SigLIP: Zhai et al. 2023).
struct ContrastiveSettings {
  std::optional<std::string> loss_type;
  std::optional<double> temperature;
  double logit_bias = -10;

  void visit(SettingsVisitor& v) {
    v.field(
         "loss_type", loss_type,
         "loss over all pairs of an image and a text in a step. softmax: cross-entropy in both directions, "
         "as CLIP (symmetric InfoNCE); sigmoid: binary cross-entropy of each pair, as SigLIP. Default: sigmoid "
         "for a model with a logit_bias (siglip), else softmax")
        .one_of({"softmax", "sigmoid"})
        .on_resume(OnResume::error);
    v.field("temperature", temperature,
            "initial temperature of the cosine similarities. It is trained; its inverse is at most 100. "
            "Default: that of a model with a logit_scale (clip, siglip), else 0.07")
        .above(0)
        .on_resume(OnResume::free);
    v.field("logit_bias", logit_bias, "initial bias of the logits, which is trained; for sigmoid")
        .only_with("contrastive.loss_type", {"sigmoid"})
        .on_resume(OnResume::free);
  }
};

// Text to image by rectified flow (Liu et al. 2022) with classifier-free guidance (Ho & Salimans 2022).
struct DiffusionSettings {
  double caption_dropout = 0.1, guidance_scale = 3;
  i64 num_inference_steps = 20;

  void visit(SettingsVisitor& v) {
    v.field("caption_dropout", caption_dropout,
            "share of the training examples whose caption is hidden, so that the model also learns images "
            "without a caption, which guidance needs")
        .at_least(0)
        .at_most(1)
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::job);
    v.field("guidance_scale", guidance_scale,
            "classifier-free guidance of the velocity: v = without caption + guidance_scale (with caption - "
            "without caption). 1: no guidance; larger values follow the caption more closely")
        .at_least(0)
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::overridable);
    v.field("num_inference_steps", num_inference_steps, "Euler steps from noise to an image")
        .at_least(1)
        .at_most(100'000)
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::overridable);
  }
};

// Reinforcement learning, with the names of Stable-Baselines3. An epoch is one rollout (n_steps steps in each
// environment) and the optimizer steps on it.
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
    v.field("algorithm", algorithm, "learning algorithm: PPO or DDPG")
        .one_of({"ppo", "ddpg"})
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("env", env, "environment name, e.g. CartPole-v1, or one of a plugin (REDCO_ENVIRONMENT)")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("n_envs", n_envs, "number of environments that are stepped in parallel")
        .at_least(1)
        .at_most(1 << 16)
        .on_resume(OnResume::error);
    v.field("n_steps", n_steps, "rollout length: steps per environment and epoch")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::error);
    v.field("hidden_sizes", hidden_sizes, "widths of the hidden layers of the policy and value networks")
        .at_least(1)
        .at_most(1 << 16)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("activation", activation, "activation function of the hidden layers")
        .one_of({"tanh", "relu", "gelu", "silu"})
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    v.field("gamma", gamma, "discount factor per step").at_least(0).at_most(1).on_resume(OnResume::note);
    v.field("n_eval_episodes", n_eval_episodes,
            "episodes per evaluation, without exploration and from initial states that training does not "
            "use; 0: no evaluation")
        .at_least(0)
        .at_most(most)
        .on_resume(OnResume::free)
        .decided_by(DecidedBy::job);

    const auto ppo = [&v](const char* name, auto& x, const char* help) -> Setting& {
      return v.field(name, x, help).only_with("rl.algorithm", {"ppo"});
    };
    ppo("update_epochs", update_epochs, "passes through the rollout per epoch")
        .at_least(1)
        .at_most(1000)
        .on_resume(OnResume::error);
    ppo("gae_lambda", gae_lambda, "lambda of generalized advantage estimation (GAE)")
        .at_least(0)
        .at_most(1)
        .on_resume(OnResume::note);
    ppo("clip_range", clip_range, "PPO clip range of the probability ratio")
        .above(0)
        .on_resume(OnResume::note);
    ppo("clip_range_vf", clip_range_vf, "clip range of the value function; ~: no clipping")
        .above(0)
        .on_resume(OnResume::note);
    ppo("ent_coef", ent_coef, "coefficient of the entropy bonus in the loss")
        .at_least(0)
        .on_resume(OnResume::note);
    ppo("vf_coef", vf_coef, "coefficient of the value loss (squared error)")
        .at_least(0)
        .on_resume(OnResume::note);
    ppo("normalize_advantage", normalize_advantage,
        "normalization of a rollout's advantages to mean 0 and standard deviation 1")
        .on_resume(OnResume::note);
    ppo("normalize_observations", normalize_observations,
        "normalization of observations by their running mean and standard deviation")
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::checkpoint);
    ppo("normalize_rewards", normalize_rewards,
        "scaling of rewards by the running standard deviation of the discounted return")
        .on_resume(OnResume::error);
    ppo("log_std_init", log_std_init, "initial log standard deviation of continuous actions")
        .at_least(-10)
        .at_most(10)
        .on_resume(OnResume::error);

    const auto ddpg = [&v](const char* name, auto& x, const char* help) -> Setting& {
      return v.field(name, x, help).only_with("rl.algorithm", {"ddpg"});
    };
    ddpg("gradient_steps", gradient_steps, "optimizer steps per epoch")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::error);
    ddpg("buffer_size", buffer_size, "capacity of the replay buffer in transitions")
        .at_least(1)
        .at_most(1'000'000)
        .on_resume(OnResume::error);
    ddpg("learning_starts", learning_starts,
         "number of transitions with random actions before the first optimizer step")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::note);
    ddpg("tau", tau, "soft update coefficient of the target networks")
        .above(0)
        .at_most(1)
        .on_resume(OnResume::note);
    ddpg("noise_type", noise_type, "exploration noise: independent normal or Ornstein-Uhlenbeck")
        .one_of({"normal", "ornstein-uhlenbeck"})
        .on_resume(OnResume::note);
    ddpg("noise_std", noise_std, "standard deviation of the exploration noise, for actions scaled to [-1, 1]")
        .at_least(0)
        .on_resume(OnResume::note);
    ddpg("actor_learning_rate_factor", actor_learning_rate_factor,
         "actor learning rate as a multiple of train.learning_rate, which the critic uses")
        .above(0)
        .on_resume(OnResume::note);
  }
};

}  // namespace redco
