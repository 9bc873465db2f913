// Parallel copies of an environment: each behaves like the single environment, and their state can be saved
// and restored.
#include "env/env_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "env/make_environment.h"

namespace redco {
namespace {

// Draws in [0, 1) that differ between positions.
std::vector<float> uniforms(std::size_t n, unsigned from) {
  std::vector<float> u(n);
  for (std::size_t i = 0; i < n; ++i) u[i] = static_cast<float>((i * 37 + from * 101) % 97) / 97;
  return u;
}

TEST(EnvRows, EachCopyBehavesLikeASingleEnvironment) {
  for (const std::string& name : environment_names()) {
    const std::shared_ptr<const Environment> env = make_environment(name);
    const i64 n = 3, s = env->state_size(), o = env->observation_size(), a = env->action_size();
    EnvRows rows(env, n);
    rows.begin(uniforms(n * s, 0));
    // The second copy, stepped as a single environment.
    std::vector<double> state(s);
    const std::vector<float> first = uniforms(n * s, 0);
    env->reset(std::vector<double>(first.begin() + s, first.begin() + 2 * s), state);
    i64 length = 0, ended = 0;
    for (unsigned t = 1; t < 1200; ++t) {
      std::vector<float> actions = uniforms(n * a, t);
      for (float& x : actions)
        x = env->n_actions() ? static_cast<float>(static_cast<int>(x * env->n_actions())) : 2 * x - 1;
      const std::vector<float> resets = uniforms(n * s, t);
      const EnvRows::Outcome out = rows.step(actions, resets);
      const EnvOutcome one = env->step(state, std::span<const float>(actions).subspan(a, a));
      std::vector<float> seen(o);
      env->observe(state, seen);
      ++length;
      EXPECT_EQ(out.rewards[1], static_cast<float>(one.reward));
      EXPECT_EQ(out.terminated[1], one.terminated);
      EXPECT_EQ(out.ended[1], one.terminated || length == env->time_limit());
      EXPECT_EQ(std::vector<float>(out.next_observations.begin() + o, out.next_observations.begin() + 2 * o),
                seen);
      if (out.ended[1]) {
        ++ended;
        length = 0;
        env->reset(std::vector<double>(resets.begin() + s, resets.begin() + 2 * s), state);
        env->observe(state, seen);
      }
      const std::vector<float> now = rows.observations();
      ASSERT_EQ(std::vector<float>(now.begin() + o, now.begin() + 2 * o), seen) << name << " step " << t;
    }
    EXPECT_GE(ended, 1) << name;
    EXPECT_EQ(rows.steps(), 1199 * n);
    EXPECT_EQ(rows.notes().count("episode_return"), 1u);
  }
}

TEST(EnvRows, NotesCoverEndedEpisodesOnly) {
  EnvRows rows(make_environment("CartPole-v1"), 2);
  rows.begin(uniforms(8, 1));
  const std::vector<float> right = {1, 1};
  EXPECT_EQ(rows.notes().count("episode_length"), 0u);
  i64 steps = 0, first = 0, second = 0;
  while (first == 0 || second == 0) {
    const auto out = rows.step(right, uniforms(8, 2));
    ++steps;
    if (out.ended[0] && first == 0) first = steps;
    if (out.ended[1] && second == 0) second = steps;
  }
  if (first == second) {
    EXPECT_EQ(rows.notes().at("episode_length"), static_cast<double>(first));
  }
  EXPECT_EQ(rows.notes().at("episode_length"), rows.notes().at("episode_return"));  // a reward of 1 per step
}

TEST(EnvRows, TheStateIsRestoredExactly) {
  const auto env = std::shared_ptr<const Environment>(make_environment("Pendulum-v1"));
  EnvRows a(env, 2), b(env, 2);
  a.begin(uniforms(4, 3));
  for (unsigned t = 0; t < 250; ++t) a.step(uniforms(2, t), uniforms(4, t));
  b.restore(a.state());
  EXPECT_EQ(b.state(), a.state());
  for (unsigned t = 0; t < 250; ++t) {
    const auto x = a.step(uniforms(2, t), uniforms(4, t)), y = b.step(uniforms(2, t), uniforms(4, t));
    ASSERT_EQ(x.next_observations, y.next_observations);
    ASSERT_EQ(x.ended, y.ended);
  }
  EXPECT_EQ(a.notes(), b.notes());
  EnvRows other(make_environment("CartPole-v1"), 2), more(env, 3);
  EXPECT_THROW(other.restore(a.state()), ContentsError);
  EXPECT_THROW(more.restore(a.state()), ContentsError);
  for (const char* bad :
       {"", "{", "[]", "{\"env\": \"Pendulum-v1\"}",
        "{\"env\": \"Pendulum-v1\", \"states\": [\"x\"], \"lengths\": [], \"returns\": []}"})
    EXPECT_THROW(b.restore(bad), ContentsError) << bad;
}

}  // namespace
}  // namespace redco
