// The environments compared with traces recorded from gymnasium, and the parser of such traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "env/make_environment.h"
#include "env/replay.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using testing::HasSubstr;

class Traces : public testing::TestWithParam<const char*> {};

// gymnasium returns observations (and MountainCar keeps its state) in fp32, so steps agree up to its
// rounding: 6e-8 of values up to 28 (Acrobot's velocities).
TEST_P(Traces, EveryStepMatchesTheTrace) {
  const ReplayReport r = replay_trace(std::string(REDCO_FIXTURES "/envs/") + GetParam() + ".jsonl.gz");
  EXPECT_EQ(r.environment, GetParam());
  EXPECT_TRUE(r.passed) << r.first_wrong;
  EXPECT_EQ(r.wrong_ends, 0);
  EXPECT_EQ(r.episodes, 3);
  EXPECT_GT(r.steps, 40);
}
INSTANTIATE_TEST_SUITE_P(Gymnasium, Traces,
                         testing::ValuesIn({"CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0",
                                            "Pendulum-v1"}),
                         [](const auto& info) {
                           std::string name = info.param;
                           return name.substr(0, name.find('-'));
                         });

TEST(Environments, InitialStatesAreInGymnasiumsRanges) {
  for (const std::string& name : environment_names()) {
    const auto env = make_environment(name);
    std::vector<double> low(env->state_size()), high(env->state_size());
    env->reset(std::vector<double>(env->state_size(), 0.0), low);
    env->reset(std::vector<double>(env->state_size(), 1.0), high);
    const double first = name == "CartPole-v1"   ? 0.05
                         : name == "Acrobot-v1"  ? 0.1
                         : name == "Pendulum-v1" ? M_PI
                                                 : -0.4;
    EXPECT_DOUBLE_EQ(high[0], first) << name;
    EXPECT_DOUBLE_EQ(low[0], name == "MountainCarContinuous-v0" ? -0.6 : -first) << name;
  }
}

TEST(Environments, NamesAndActionsAreChecked) {
  EXPECT_THAT(error_text<Error>([] { make_environment("CartPole-v0"); }),
              HasSubstr("did you mean CartPole-v1?"));
  const auto env = make_environment("CartPole-v1");
  std::vector<double> s(4, 0.0);
  EXPECT_THAT(error_text<Error>([&] { env->step(s, std::vector<float>{2}); }),
              HasSubstr("actions 0 to 1, but the action is 2"));
}

TEST(Replay, ReportsWrongStepsAndMalformedLines) {
  test::TempDir dir;
  auto replay = [&](const std::string& text) {
    test::spill(dir / "Pendulum-v1.jsonl", text);
    return replay_trace(dir / "Pendulum-v1.jsonl");
  };
  const std::string reset = "{\"reset_observation\": [1, 0, 0], \"internal_state\": [0, 0]}\n";
  const std::string step =
      "{\"action\": [0], \"observation\": [1, 0, 0], \"reward\": 0, \"terminated\": false, \"truncated\": "
      "false, "
      "\"internal_state\": [0, 0]}\n";
  EXPECT_TRUE(replay(reset + step).passed);
  std::string wrong = step;
  wrong.replace(wrong.find("\"reward\": 0"), 11, "\"reward\": 1");
  const ReplayReport r = replay(reset + step + wrong);
  EXPECT_FALSE(r.passed);
  EXPECT_THAT(r.first_wrong, HasSubstr(":3: reward[0] is"));
  auto refused = [&](const std::string& text) { return error_text<Error>([&] { replay(text); }); };
  EXPECT_THAT(refused(step), HasSubstr(":1: a step before the first reset"));
  EXPECT_THAT(refused(reset), HasSubstr("has no steps"));
  EXPECT_THAT(refused(reset + "[1]\n"), HasSubstr(":2: not a JSON object"));
  EXPECT_THAT(refused(reset + "{\"action\": [0, 1]}\n"), HasSubstr("action: Pendulum-v1 needs 1 numbers"));
  EXPECT_THAT(refused(reset + "{\"action\": \"left\"}\n"), HasSubstr("action: Pendulum-v1 needs 1 numbers"));
  EXPECT_THAT(refused(reset + "{}\n"), HasSubstr("no \"action\""));
}

}  // namespace
}  // namespace redco
