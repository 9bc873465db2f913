// The `dpo:`, `reward:` and `grpo:` sections: learning from preferences and rewards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace redco {

// Losses of pairs of answers, or of single answers that are labelled good or bad, with the names of TRL:
// DPO (Rafailov et al. 2023), IPO (Azar et al. 2024), SimPO (Meng et al. 2024), ORPO (Hong et al. 2024), KTO
// (Ethayarajh et al. 2024).
struct DpoSettings {
  std::string loss_type = "sigmoid";
  double beta = 0.1, label_smoothing = 0, simpo_gamma = 0.5;
  double desirable_weight = 1, undesirable_weight = 1;

  // Whether the loss compares with the model that the training begins with.
  bool has_reference() const { return loss_type != "simpo" && loss_type != "orpo"; }

  void visit(SettingsVisitor& v) {
    v.field("loss_type", loss_type,
            "loss of a pair of answers with log-ratio h of chosen and rejected, relative to the reference. "
            "sigmoid: -log sigmoid(beta h), DPO; ipo: (h - 1 / (2 beta))^2, IPO; simpo: DPO's loss of mean "
            "log-probabilities per token, without reference; orpo: log-likelihood of the chosen answer and "
            "its odds ratio, without reference; kto: single answers with a label")
        .one_of({"sigmoid", "ipo", "simpo", "orpo", "kto"})
        .on_resume(OnResume::note);
    v.field("beta", beta,
            "strength of the tie to the reference; larger values keep the model closer to it. simpo: factor "
            "of the log-probabilities; orpo: weight of the odds ratio")
        .above(0)
        .on_resume(OnResume::note);
    v.field("label_smoothing", label_smoothing,
            "probability that a pair is labelled the wrong way round (conservative DPO, cDPO)")
        .at_least(0)
        .below(0.5)
        .only_with("dpo.loss_type", {"sigmoid", "simpo"})
        .on_resume(OnResume::note);
    v.field("simpo_gamma", simpo_gamma,
            "target margin of simpo: a pair's loss is -log sigmoid(beta h - simpo_gamma)")
        .at_least(0)
        .only_with("dpo.loss_type", {"simpo"})
        .on_resume(OnResume::note);
    v.field("desirable_weight", desirable_weight, "weight of the loss of good answers")
        .at_least(0)
        .only_with("dpo.loss_type", {"kto"})
        .on_resume(OnResume::note);
    v.field("undesirable_weight", undesirable_weight, "weight of the loss of bad answers")
        .at_least(0)
        .only_with("dpo.loss_type", {"kto"})
        .on_resume(OnResume::note);
  }
};

// A reward model: a score for each answer (Bradley & Terry 1952; Ouyang et al. 2022).
struct RewardSettings {
  double center_rewards_coefficient = 0;

  void visit(SettingsVisitor& v) {
    v.field(
         "center_rewards_coefficient", center_rewards_coefficient,
         "weight of (chosen reward + rejected reward)^2, which keeps the rewards near 0 (Eisenstein et al. "
         "2023)")
        .at_least(0)
        .on_resume(OnResume::note);
  }
};

// Group relative policy optimization, with the names of TRL. An epoch is one set of answers and the optimizer
// steps on it.
struct GrpoSettings {
  std::vector<std::string> reward = {"exact_match"};
  std::vector<double> reward_weights;
  std::optional<std::string> reward_command;
  double reward_timeout = 60;
  std::string loss_type = "grpo", importance_sampling_level = "token";
  i64 prompts_per_epoch = 32, num_generations = 8, max_new_tokens = 64, num_iterations = 1;
  double epsilon = 0.2, epsilon_high = 0.2, beta = 0;
  std::optional<double> delta;
  bool scale_rewards = true, mask_truncated_completions = false;
  i64 dynamic_sampling_rounds = 0;
  std::optional<i64> soft_punish_cache;

  void visit(SettingsVisitor& v) {
    v.field("reward", reward,
            "rewards of an answer; several are added. exact_match: 1 if it equals the completion, else 0; "
            "number: 1 if its last number equals that of the completion; contains: 1 if it contains the "
            "completion; command: grpo.reward_command; model: the reward model models.reward; or the name of "
            "a plugin's reward (REDCO_REWARD)")
        .one_or_more()
        .on_resume(OnResume::note);
    v.field("reward_weights", reward_weights, "factors of the rewards, one for each; empty: all 1")
        .one_or_more()
        .on_resume(OnResume::note);
    v.field("reward_command", reward_command,
            "shell command of the reward `command`. Each replica starts it once. It reads a JSON object per "
            "line, {\"prompt\", \"answer\", the example's keys}, and writes a number per line")
        .literal()
        .on_resume(OnResume::note);
    v.field("reward_timeout", reward_timeout,
            "seconds that reward_command may take for the answers of an epoch that its replica gives it")
        .above(0)
        .on_resume(OnResume::free);
    v.field("prompts_per_epoch", prompts_per_epoch, "prompts that are answered in an epoch")
        .at_least(1)
        .at_most(1 << 24)
        .on_resume(OnResume::error);
    v.field("num_generations", num_generations, "answers to each prompt, the group that is compared")
        .at_least(2)
        .at_most(1 << 16)
        .on_resume(OnResume::error);
    v.field("max_new_tokens", max_new_tokens, "maximum number of tokens per answer")
        .at_least(1)
        .at_most(1 << 24)
        .on_resume(OnResume::note);
    v.field("num_iterations", num_iterations, "passes through an epoch's answers")
        .at_least(1)
        .at_most(1 << 16)
        .on_resume(OnResume::error);
    v.field("loss_type", loss_type,
            "mean of the tokens' losses. grpo: over each answer, then over answers; dapo: over all tokens of "
            "the step; dr_grpo: the sum of an answer divided by max_new_tokens, then over answers")
        .one_of({"grpo", "dapo", "dr_grpo"})
        .on_resume(OnResume::note);
    v.field("scale_rewards", scale_rewards, "the rewards of a group are divided by their standard deviation")
        .on_resume(OnResume::note);
    v.field("mask_truncated_completions", mask_truncated_completions,
            "answers without an end token do not count in the loss (overlong filtering of DAPO)")
        .on_resume(OnResume::note);
    v.field("dynamic_sampling_rounds", dynamic_sampling_rounds,
            "dynamic sampling of DAPO: groups whose rewards are all equal are replaced by groups of other "
            "prompts, at most this many times in an epoch; 0: never")
        .at_least(0)
        .at_most(1 << 10)
        .on_resume(OnResume::note);
    v.field(
         "soft_punish_cache", soft_punish_cache,
         "overlong reward shaping of DAPO: answers of the last soft_punish_cache tokens below max_new_tokens "
         "lose a part of 1 that grows from 0 to 1; at most max_new_tokens; ~: none")
        .at_least(1)
        .on_resume(OnResume::note);
    v.field("importance_sampling_level", importance_sampling_level,
            "probability ratio of the loss. token: of each token; sequence: the geometric mean over the "
            "answer (GSPO: Zheng et al. 2025)")
        .one_of({"token", "sequence"})
        .on_resume(OnResume::note);
    v.field("delta", delta,
            "upper limit of the probability ratio of answers with a negative advantage (two-sided clipping); "
            "more than 1 + epsilon_high; ~: none")
        .above(1)
        .on_resume(OnResume::note);
    v.field("epsilon", epsilon, "clip range of the probability ratio below 1")
        .above(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("epsilon_high", epsilon_high, "clip range of the probability ratio above 1")
        .above(0)
        .on_resume(OnResume::note);
    v.field("beta", beta,
            "weight of the KL divergence to the model that the training begins with; above 0 it needs "
            "models.reference, unless adapters are trained")
        .at_least(0)
        .on_resume(OnResume::note);
  }
};

}  // namespace redco
