// Rewards that a program can verify, for algorithms that learn from rollouts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redco {

// 1 if the answer is right, otherwise 0. kind: "exact_match": the texts are equal but for space around them;
// "number": their last numbers are equal, as decimal numbers of any length ("1,234" is 1234, "1e3" is 1000,
// the hyphen of "40-42" is no sign); "contains": the answer has the expected text in it. BugError for another
// kind.
double verified_reward(std::string_view kind, const std::string& answer, const std::string& expected);

// How much better each answer of a group is than their mean, in units of their standard deviation + 1e-4
// (of n - 1), or as a difference if not `scaled`. Exactly 0 if all rewards are equal.
std::vector<double> group_advantages(const std::vector<double>& rewards, bool scaled);

}  // namespace redco
