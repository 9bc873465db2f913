#include "pipeline/answer_rewards.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/registry.h"
#include "base/user_code.h"
#include "base/words.h"
#include "pipeline/rewards.h"
#include "pipeline/rollouts.h"

namespace redco {

namespace {

constexpr const char* kCommand = "command";
const std::vector<std::string> kVerified = {"exact_match", "number", "contains"};

Registry<PluginReward>& plugin_rewards() {
  static auto& known = *new Registry<PluginReward>("reward");
  return known;
}

bool is_verified(const std::string& name) { return std::ranges::find(kVerified, name) != kVerified.end(); }
bool is_built_in(const std::string& name) {
  return is_verified(name) || name == kCommand || name == AnswerRewards::kModel;
}

double score_by_plugin(const PluginReward& p, const RewardedAnswer& a) {
  const double value = in_user_code(
      [&](const std::string& why) {
        return fmt::format("[rewards] {} ({}) failed{}", p.name, p.origin, why);
      },
      [&] { return p.score(a); });
  if (!std::isfinite(value))
    throw UsageError("[rewards] {} ({}) returned {} for the answer '{}'; expected a finite number", p.name,
                     p.origin, value, excerpt(a.answer));
  return value;
}

std::string line_of(const RewardedAnswer& a) {
  auto j = nlohmann::ordered_json::parse(a.record, nullptr, false);
  if (!j.is_object()) j = nlohmann::ordered_json::object();
  j["prompt"] = a.prompt;
  j["answer"] = a.answer;
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void add_reward(const PluginReward& reward) {
  plugin_rewards().add(reward, fmt::format("REDCO_REWARD(\"{}\")", reward.name), is_built_in(reward.name));
}

AnswerRewards::AnswerRewards(const GrpoSettings& o) : names_(o.reward), weights_(o.reward_weights) {
  if (names_.empty()) throw UsageError("[grpo] grpo.reward is empty; expected one reward or more");
  for (const std::string& name : names_) {
    if (is_built_in(name) || plugin_rewards().find(name)) continue;
    std::vector<std::string> known = kVerified;
    known.insert(known.end(), {kCommand, kModel});
    for (const PluginReward& p : plugin_rewards().all()) known.push_back(p.name);
    throw UsageError(
        "[grpo] grpo.reward: no reward is called '{}'; expected {}. A plugin may add others (plugins: [./x.so] "
        "with REDCO_REWARD)",
        excerpt(name), fmt::join(known, ", "));
  }
  if (weights_.empty()) weights_.assign(names_.size(), 1);
  if (weights_.size() != names_.size())
    throw UsageError(
        "[grpo] grpo.reward_weights has {} numbers, and grpo.reward {} rewards; give one for each",
        weights_.size(), names_.size());
  const bool uses = std::ranges::find(names_, kCommand) != names_.end();
  if (uses && !o.reward_command)
    throw UsageError("[grpo] grpo.reward has 'command', but grpo.reward_command is not set");
  if (!uses && o.reward_command)
    throw UsageError("[grpo] grpo.reward_command is set, but grpo.reward has no 'command'. Add it");
  if (uses) command_ = std::make_unique<RewardCommand>(*o.reward_command, o.reward_timeout);
}

bool AnswerRewards::has_model() const { return std::ranges::find(names_, kModel) != names_.end(); }

bool AnswerRewards::verifies() const { return std::ranges::any_of(names_, is_verified); }

std::vector<std::vector<double>> AnswerRewards::local(std::span<const RewardedAnswer> answers) {
  std::vector<std::vector<double>> out;
  for (const std::string& name : names_) {
    std::vector<double>& values = out.emplace_back(answers.size());
    if (name == kModel) continue;
    if (name == kCommand) {
      std::vector<std::string> lines;
      for (const RewardedAnswer& a : answers) lines.push_back(line_of(a));
      values = command_->score(lines);
      continue;
    }
    const PluginReward* plugin = plugin_rewards().find(name);
    for (std::size_t i = 0; i < answers.size(); ++i)
      values[i] = plugin ? score_by_plugin(*plugin, answers[i])
                         : verified_reward(name, answers[i].answer, answers[i].completion);
  }
  return out;
}

std::vector<std::vector<double>> AnswerRewards::shared(std::span<const RewardedAnswer> answers) {
  return score_shares(static_cast<i64>(answers.size()), static_cast<i64>(names_.size()),
                      [&](const std::vector<i64>& indices) {
                        std::vector<RewardedAnswer> share;
                        for (const i64 i : indices) share.push_back(answers[static_cast<std::size_t>(i)]);
                        return local(share);
                      });
}

}  // namespace redco
