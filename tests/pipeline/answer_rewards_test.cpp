#include "pipeline/answer_rewards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using namespace redco::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GrpoSettings with_command(const std::string& command, double timeout = 20) {
  GrpoSettings o;
  o.reward = {"command"};
  o.reward_command = command;
  o.reward_timeout = timeout;
  return o;
}

std::vector<RewardedAnswer> some_answers(int n) {
  std::vector<RewardedAnswer> out;
  for (int i = 0; i < n; ++i)
    out.push_back({"1+1=", std::to_string(i), R"({"prompt": "1+1=", "completion": "2", "level": 3})", "2"});
  return out;
}

TEST(AnswerRewards, UnknownNamesAndMissingSettingsAreErrors) {
  GrpoSettings o;
  o.reward = {"number", "nmber"};
  EXPECT_THAT(
      error_text<UsageError>([&] { AnswerRewards r(o); }),
      HasSubstr("no reward is called 'nmber'; expected exact_match, number, contains, command, model"));
  o.reward = {"number", "contains"};
  o.reward_weights = {1};
  EXPECT_THAT(error_text<UsageError>([&] { AnswerRewards r(o); }), HasSubstr("give one for each"));
  o.reward_weights = {};
  o.reward_command = "cat";
  EXPECT_THAT(error_text<UsageError>([&] { AnswerRewards r(o); }), HasSubstr("grpo.reward has no 'command'"));
  o.reward = {"command"};
  o.reward_command.reset();
  EXPECT_THAT(error_text<UsageError>([&] { AnswerRewards r(o); }), HasSubstr("reward_command is not set"));
}

// Every replica rewards a share with its own process; all ranks get all rewards. The shell gets the record's
// other keys, too.
TEST(AnswerRewards, OfACommandArriveInOrderOnEveryMesh) {
  GrpoSettings o = with_command(
      R"(while read -r line; do case $line in *'"level":3'*'"answer":"2"'*) echo 1;; *) echo '{"reward": -0.5}';; esac; done)");
  o.reward = {"number", "command"};
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}, Mesh{3, 1}})
    on_mesh(mesh, [&](Context&) {
      AnswerRewards rewards(o);
      for (int round = 0; round < 2; ++round) {  // the process stays
        const auto got = rewards.shared(some_answers(5));
        ASSERT_EQ(got.size(), 2u);
        EXPECT_THAT(got[0], ElementsAre(0, 0, 1, 0, 0));
        EXPECT_THAT(got[1], ElementsAre(-0.5, -0.5, 1, -0.5, -0.5));
      }
    });
}

// More than the buffers of the pipes hold, in both directions.
TEST(AnswerRewards, ManyAnswersDoNotBlockTheCommand) {
  std::vector<RewardedAnswer> answers = some_answers(2000);
  for (RewardedAnswer& a : answers) a.answer.append(200, 'x');
  EXPECT_EQ(AnswerRewards(with_command("sed -u 's/.*/1/'")).local(answers)[0], std::vector<double>(2000, 1));
}

TEST(AnswerRewards, FailuresOfACommandAreNamedOnAllRanks) {
  const std::vector<std::pair<GrpoSettings, std::string>> cases = {
      {with_command("echo fine; cat"), "wrote 'fine' for answer 1 of 2; expected a number"},
      {with_command("exit 3"), "ended after 0 of 2 rewards"},
      {with_command("no-such-program-of-redco 2> /dev/null"), "ended after 0 of 2 rewards"},
      {with_command("yes 1"), "wrote more than one line for each of 2 answers"},
      {with_command("exec sleep 100", 0.05), "written 0 of 2 rewards within grpo.reward_timeout=0.05 s"}};
  for (const auto& [settings, what] : cases)
    on_mesh({2, 1}, [&](Context&) {
      AnswerRewards rewards(settings);
      EXPECT_THAT(error_text<UsageError>([&] { rewards.shared(some_answers(4)); }), HasSubstr(what));
    });
}

TEST(AnswerRewards, OfAPluginAreCheckedAndItsNameIsItsOwn) {
  add_reward({"length", [](const RewardedAnswer& a) { return a.answer == "3" ? NAN : 0.25; }, "./mine.so"});
  GrpoSettings o;
  o.reward = {"length"};
  EXPECT_THAT(AnswerRewards(o).local(some_answers(2))[0], ElementsAre(0.25, 0.25));
  EXPECT_THAT(error_text<UsageError>([&] { AnswerRewards(o).local(some_answers(4)); }),
              HasSubstr("[rewards] length (./mine.so) returned nan for the answer '3'"));
  EXPECT_THAT(error_text<UsageError>([&] {
                add_reward({"number", nullptr, "./mine.so"});
              }),
              HasSubstr("REDCO_REWARD(\"number\"): this reward is built in"));
}

}  // namespace
}  // namespace redco
