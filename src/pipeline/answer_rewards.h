// The rewards of a model's answers (grpo.reward): those of pipeline/rewards.h, a command, functions of users'
// shared objects, a reward model; several are added with weights.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/preference_settings.h"
#include "pipeline/reward_command.h"

namespace redco {

// An answer, and what its reward may depend on.
struct RewardedAnswer {
  std::string prompt;  // the text of the prompt's tokens
  std::string answer;  // the model's answer, without special tokens
  std::string record;  // the example's JSON object, unchanged
  // The record's completion; "" if it has none.
  std::string completion;
};

// A reward of a plugin: REDCO_REWARD("name", function). Finite. It may be called on any rank, for any share
// of the answers.
using RewardFunction = std::function<double(const RewardedAnswer&)>;
struct PluginReward {
  std::string name;
  RewardFunction score;
  std::string origin;  // the shared object
};
// Makes the reward known for the rest of the process. UsageError: the name is taken or empty.
void add_reward(const PluginReward& reward);

class AnswerRewards {
 public:
  static constexpr const char* kModel = "model";

  // UsageError: an unknown reward, a number of weights that is not that of the rewards, a command that is
  // missing or not used.
  explicit AnswerRewards(const GrpoSettings& settings);

  bool has_model() const;
  bool verifies() const;  // compares with a completion
  const std::vector<std::string>& names() const { return names_; }
  double weight(std::size_t reward) const { return weights_[reward]; }

  // [rewards][answers]; of the reward `model` zeros, since it needs parameters. ContentsError: a record lacks
  // the completion that a reward compares with. No collective.
  std::vector<std::vector<double>> local(std::span<const RewardedAnswer> answers);
  // The same for answers that all ranks have: each replica rewards a share. Collective.
  std::vector<std::vector<double>> shared(std::span<const RewardedAnswer> answers);

 private:
  std::vector<std::string> names_;
  std::vector<double> weights_;
  std::unique_ptr<RewardCommand> command_;
};

}  // namespace redco
