// Pipeline rl: losses and advantages against PyTorch, equal steps on all meshes, resumed runs, errors.
// tests/fixtures/rl/expected.json is made by scripts/make_rl_fixture.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autograd/grad.h"
#include "base/error.h"
#include "env/make_environment.h"
#include "ops/elementwise.h"
#include "pipelines/pipelines.h"
#include "pipelines/rl_algorithm.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/predictor.h"
#include "train/settings_for_pipeline.h"
#include "train/trainer.h"

namespace redco {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using redco::testing::distance;
using redco::testing::on_mesh;
using redco::testing::on_one_rank;

const Json& expected() {
  static const Json j = Json::parse(std::ifstream(REDCO_FIXTURES "/rl/expected.json"));
  return j;
}

std::unique_ptr<Pipeline> pipeline_of(const RlSettings& rl, const TrainSettings& train = {}) {
  auto p = make_rl_pipeline();
  auto s = std::make_shared<PipelineSettings>();
  s->rl = rl;
  s->train = for_pipeline(train);
  p->settings = s;
  return p;
}

ParamTree fresh_params(const Pipeline& p) {
  const int mp = Context::current().mesh().mp();
  ParamTree t = make_params(p.params(), shard_specs(p.params().specs, mp).layouts);
  initialize(t, 11);
  return t;
}

TEST(Advantages, EqualStableBaselines) {
  const Json& e = expected().at("advantages");
  const auto floats = [&](const char* name) { return e.at(name).get<std::vector<float>>(); };
  const auto got = generalized_advantages(
      floats("rewards"), floats("values"), floats("next_values"), e.at("terminated").get<std::vector<bool>>(),
      e.at("ended").get<std::vector<bool>>(), e.at("n"), e.at("gamma"), e.at("lambda"));
  const auto wanted = floats("advantages");
  ASSERT_EQ(got.size(), wanted.size());
  // Sums of nine numbers of size 1 in fp64, rounded to fp32 once.
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
}

// Terms and gradients of the fixture's batch, in fp32 against fp64: networks of two layers of 8, sums of 12
// rows: some hundred roundings of 6e-8 on numbers of size 1.
void check_losses(const char* name, RlSettings rl) {
  const Json& e = expected().at(name);
  const Json& s = e.at("settings");
  rl.hidden_sizes = {8, 8};
  rl.clip_range = s.value("clip_range", 0.2);
  if (s.contains("clip_range_vf")) rl.clip_range_vf = s.at("clip_range_vf").get<double>();
  rl.ent_coef = s.value("ent_coef", 0.0);
  rl.vf_coef = s.value("vf_coef", 0.5);
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}})
    on_mesh(mesh, [&](Context& c) {
      const auto pipeline = pipeline_of(rl);
      ParamTree params = fresh_params(*pipeline);
      for (std::size_t i = 0; i < params.size(); ++i) {
        const auto v = e.at("params").at(params.specs()[i].name).get<std::vector<float>>();
        params.values()[i] =
            from_values(params.specs()[i].shape, std::span<const float>(v), params.values()[i].layout());
      }
      EXPECT_EQ(params.size(), e.at("params").size());
      const i64 n = static_cast<i64>(e.at("batch").at("observation").size());
      const BatchShape shape{
          .rows = n, .mine = shard_range(n, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
      std::vector<Example> rows;
      for (i64 r = shape.mine.begin; r < shape.mine.end; ++r) {
        Example& x = rows.emplace_back();
        // One field with all columns, which both lists have in alphabetical order.
        for (const auto& [column, values] : e.at("batch").items())
          for (const float v : values[r]) x.values["transition"].push_back(v);
      }
      const Batch batch = pipeline->collate(rows, shape);
      const ParamTree p = params.watched();
      const LossTerms terms = pipeline->loss(p, batch, {});
      ASSERT_EQ(terms.size(), e.at("terms").size());
      for (const LossTerm& t : terms) {
        EXPECT_EQ(batch.weights.at(t.name), static_cast<double>(rows.size()));
        EXPECT_NEAR(item(t.sum) / static_cast<double>(n), e.at("terms").at(t.name).get<double>(), 5e-6)
            << t.name;
      }
      for (const ParamGroup& g : pipeline->groups()) {
        if (g.ema_of) continue;
        for (const LossTerm& t : terms) {
          if (t.name != g.term) continue;
          for (std::size_t i = 0; i < p.size(); ++i) {
            const std::string& of = p.specs()[i].name;
            if (!g.has(of)) continue;
            const auto got = to_values(
                grad(scale(t.sum, 1.0 / static_cast<double>(n)), {p.values()[i]}, {.retain = true})[0]);
            EXPECT_LT(distance(got, e.at("gradients").at(of).get<std::vector<double>>()), 5e-6)
                << g.name << " " << of;
          }
        }
      }
    });
}

TEST(Ppo, DiscreteLossEqualsPyTorch) { check_losses("ppo_discrete", {.env = "CartPole-v1"}); }
TEST(Ppo, ContinuousLossWithClippedValuesEqualsPyTorch) {
  check_losses("ppo_continuous", {.env = "Pendulum-v1"});
}
TEST(Ddpg, LossesEqualPyTorch) {
  check_losses("ddpg", {.algorithm = "ddpg", .env = "Pendulum-v1", .activation = "relu"});
}

// Small jobs, one of each kind.
struct Kind {
  const char* name;
  RlSettings rl;
};
std::vector<Kind> kinds() {
  RlSettings discrete{.env = "CartPole-v1", .n_envs = 4, .n_steps = 32, .hidden_sizes = {16, 16}};
  discrete.update_epochs = 4;
  discrete.n_eval_episodes = 3;
  RlSettings continuous = discrete;
  continuous.env = "Pendulum-v1";
  continuous.normalize_observations = continuous.normalize_rewards = true;
  RlSettings ddpg = discrete;
  ddpg.algorithm = "ddpg";
  ddpg.env = "MountainCarContinuous-v0";
  ddpg.gradient_steps = 24;
  ddpg.learning_starts = 50;
  ddpg.buffer_size = 300;  // the buffer wraps around
  ddpg.noise_type = "ornstein-uhlenbeck";
  return {{"discrete", discrete}, {"continuous", continuous}, {"ddpg", ddpg}};
}
TrainSettings small_training() {
  TrainSettings t;
  t.global_batch_size = 16;
  t.learning_rate = 3e-3;
  t.weight_decay = 0;
  return t;
}

// A rollout recorded by one rank, then 20 steps on each mesh. Relative to 1: fp32 sums in another order,
// after 20 updates.
TEST(Rl, StepsOnARecordedRolloutAreEqualOnAllMeshes) {
  for (const Kind& kind : kinds()) {
    std::vector<Example> recorded;
    std::vector<std::map<std::string, double>> one;
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}, Mesh{1, 2}})
      on_mesh(mesh, [&](Context& c) {
        const auto pipeline = pipeline_of(kind.rl, small_training());
        ParamTree params = fresh_params(*pipeline);
        if (recorded.empty()) {
          const auto data = pipeline->source(params, {});
          EXPECT_TRUE(data->ordered());
          for (i64 i = 0; i < data->size(); ++i) recorded.push_back(data->get(i));
        }
        TrainStep step(*pipeline, params,
                       {.clip_grad_norm = 0.5, .optimizer = AdamWSettings{.weight_decay = 0}});
        step.start_averages();
        for (i64 s = 0; s < 20; ++s) {
          const BatchShape shape{
              .rows = 16, .mine = shard_range(16, 1, c.mesh().dp(), c.coord().dp()), .length = 1};
          const std::span<const Example> mine =
              std::span<const Example>(recorded).subspan(static_cast<std::size_t>(16 * s + shape.mine.begin),
                                                         static_cast<std::size_t>(shape.mine.size()));
          const StepOutcome o = step.run({pipeline->collate(mine, shape)}, {0}, s, 0, 3e-3);
          if (mesh.ranks() == 1) {
            one.push_back(o.terms);
            continue;
          }
          for (const auto& [term, value] : o.terms)
            EXPECT_NEAR(value, one[s].at(term), 1e-4 * std::max(0.1, std::fabs(one[s].at(term))))
                << kind.name << " " << term << " step " << s;
        }
      });
  }
}

// Rollouts don't depend on the number of replicas: the first epoch's examples have the same bits.
TEST(Rl, RolloutsAreTheSameOnReplicas) {
  for (const Kind& kind : kinds()) {
    std::vector<Example> one;
    for (const Mesh& mesh : {Mesh{1, 1}, Mesh{2, 1}})
      on_mesh(mesh, [&](Context& c) {
        const auto pipeline = pipeline_of(kind.rl, small_training());
        const ParamTree params = fresh_params(*pipeline);
        const auto data = pipeline->source(params, {});
        if (mesh.ranks() == 1)
          for (i64 i = 0; i < data->size(); ++i) one.push_back(data->get(i));
        ASSERT_EQ(data->size(), static_cast<i64>(one.size()));
        for (i64 i = 0; i < data->size(); ++i)
          ASSERT_EQ(data->get(i).values, one[i].values) << kind.name << i << c.rank();
      });
  }
}

class RlRun : public ::testing::Test {
 protected:
  TrainResult run(const RlSettings& rl, const std::string& workdir, const std::string& resume) {
    TrainResult result;
    on_one_rank([&](Context&) {
      TrainSettings t = small_training();
      t.n_epochs = 3;
      const auto pipeline = pipeline_of(rl, t);
      ParamTree params = fresh_params(*pipeline);
      TrainJob job{.pipeline = pipeline.get(), .params = &params, .train = t};
      job.eval.every_n_epochs = 2;
      job.checkpoint.every_n_epochs = 1;
      job.checkpoint.every_n_steps = 36;  // inside the second one
      job.checkpoint.keep_last = 100;
      job.checkpoint.save_best_by.max = {"mean_return"};
      job.checkpoint.resume = resume;
      job.global_batch_size = job.per_device_batch_size = 16;
      job.pipeline_name = "rl";
      job.workdir = dir_ / workdir;
      job.progress = false;
      std::filesystem::create_directories(job.workdir);
      result = train(job);
    });
    return result;
  }
  test::TempDir dir_{test::TempDir::in_memory};
};

// Resumed inside an epoch and between two epochs: the last checkpoint's files have the same bytes.
TEST_F(RlRun, AResumedRunEqualsTheUninterruptedRun) {
  for (const Kind& kind : kinds()) {
    const std::string whole = std::string(kind.name) + "-whole";
    const TrainResult r = run(kind.rl, whole, "never");
    EXPECT_EQ(r.evaluation.count("mean_return"), 1u);
    EXPECT_EQ(r.evaluation.count("loss"), 0u);
    const i64 per_epoch = r.steps / 3;
    const auto checkpoint = [&](const std::string& workdir, i64 step) {
      return std::filesystem::path(std::string(dir_ / workdir)) / "checkpoints" /
             fmt::format("step-{:08}", step);
    };
    for (const i64 at : {per_epoch, i64{36}, 2 * per_epoch}) {
      const std::string again = fmt::format("{}-{}", kind.name, at);
      EXPECT_EQ(run(kind.rl, again, checkpoint(whole, at).string()).evaluation, r.evaluation);
      i64 files = 0;
      for (const auto& f : std::filesystem::recursive_directory_iterator(checkpoint(whole, r.steps))) {
        if (!f.is_regular_file()) continue;
        const auto name = std::filesystem::relative(f.path(), checkpoint(whole, r.steps));
        if (name.filename() == "manifest.json") continue;  // has the run's id
        EXPECT_EQ(test::slurp(f.path().string()), test::slurp((checkpoint(again, r.steps) / name).string()))
            << kind.name << " " << at << " " << name;
        ++files;
      }
      EXPECT_GE(files, 3);
    }
  }
}

TEST_F(RlRun, LearningCurveIsInTheLog) {
  run(kinds()[0].rl, "curve", "never");
  const std::string log = test::slurp(dir_ / "curve/metrics.jsonl");
  EXPECT_THAT(log, HasSubstr("\"episode_return\":"));
  EXPECT_THAT(log, HasSubstr("\"env_steps\":384"));
  EXPECT_THAT(log, HasSubstr("\"eval_mean_return\":"));
}

// On CartPole, PPO learns to balance the pole longer.
TEST(Ppo, LearnsCartPole) {
  on_one_rank([&](Context&) {
    RlSettings rl{.env = "CartPole-v1", .n_envs = 8, .n_steps = 32, .gamma = 0.98, .n_eval_episodes = 10};
    rl.gae_lambda = 0.8;
    TrainSettings t;
    t.global_batch_size = 64;
    const auto pipeline = pipeline_of(rl, t);
    ParamTree params = fresh_params(*pipeline);
    TrainStep step(*pipeline, params, {.clip_grad_norm = 0.5, .optimizer = AdamWSettings{.weight_decay = 0}});
    const auto played = [&] {
      const auto data = pipeline->evaluation().at(0).data;
      std::vector<Example> episodes;
      for (i64 i = 0; i < data->size(); ++i) episodes.push_back(data->get(i));
      return pipeline->output_metrics(episodes, predict(*pipeline, params, episodes, 1)).at("mean_return");
    };
    const double before = played();
    i64 s = 0;
    for (i64 epoch = 0; epoch < 15; ++epoch) {
      StepContext ctx;
      ctx.epoch = epoch;
      const auto data = pipeline->source(params, ctx);
      for (i64 i = 0; i < data->size(); i += 64) {
        std::vector<Example> rows;
        for (i64 k = i; k < i + 64; ++k) rows.push_back(data->get(k));
        step.run({pipeline->collate(rows, {.rows = 64, .mine = {0, 64}, .length = 1})}, {0}, s++, epoch,
                 1e-3);
      }
    }
    EXPECT_LT(before, 120);
    EXPECT_GT(played(), 200);
  });
}

TEST(Rl, PredictsActionsAndPlaysEpisodes) {
  for (const Kind& kind : kinds())
    on_mesh({1, 2}, [&](Context&) {
      const auto pipeline = pipeline_of(kind.rl, small_training());
      const ParamTree params = fresh_params(*pipeline);
      const i64 o = make_environment(kind.rl.env)->observation_size();
      const std::string line = Json{{"observation", std::vector<double>(o, 0.01)}}.dump();
      const std::vector<Example> examples = {*pipeline->request(line, "line 1"),
                                             *pipeline->request("{\"seed\": 3}", "line 2"),
                                             *pipeline->request(line, "line 3")};
      const auto out = predict(*pipeline, params, examples, 8);
      EXPECT_TRUE(Json::parse(out[0]).contains("action")) << out[0];
      EXPECT_EQ(out[0], out[2]);
      EXPECT_GE(Json::parse(out[1]).at("length").get<i64>(), 5) << out[1];
    });
}

template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Rl, UnsupportedJobsAreErrors) {
  const auto why = [](const RlSettings& rl) { return refusal([&] { pipeline_of(rl)->params(); }); };
  EXPECT_THAT(why({.env = "Cartpole-v1"}),
              HasSubstr("unknown environment 'Cartpole-v1'; did you mean CartPole-v1?"));
  EXPECT_THAT(why({}), HasSubstr("rl.env is missing"));
  EXPECT_THAT(
      why({.algorithm = "ddpg", .env = "CartPole-v1"}),
      HasSubstr("rl.algorithm=ddpg needs continuous actions, but CartPole-v1 has 2 discrete ones. Use ppo"));
  RlSettings normalized{.algorithm = "ddpg", .env = "Pendulum-v1"};
  normalized.normalize_rewards = true;
  EXPECT_THAT(why(normalized), HasSubstr("are for rl.algorithm=ppo"));
  const auto pipeline = pipeline_of({.env = "Pendulum-v1"});
  EXPECT_THAT(refusal([&] { pipeline->open({}); }), HasSubstr("needs no data. Remove the key"));
  for (const char* bad : {"{}", "[1, 2, 3]", "{\"observation\": [1, 2]}", "{\"observation\": [1, 2, \"x\"]}",
                          "{\"observation\": [1, 2, 1e99]}", "{\"seed\": -1}", "{\"prompt\": \"hello\"}"})
    EXPECT_THAT(refusal([&] { pipeline->request(bad, "in.jsonl line 4"); }), HasSubstr("in.jsonl line 4: "))
        << bad;
  on_one_rank([&](Context&) {
    const auto ddpg = pipeline_of({.algorithm = "ddpg", .env = "Pendulum-v1"});
    const ParamTree params = fresh_params(*ddpg);
    EXPECT_THAT(refusal([&] { ddpg->source(params, {}); }), HasSubstr("train.global_batch_size is missing"));
    TrainSettings train;
    train.global_batch_size = 4;
    const auto source = pipeline_of({.algorithm = "ddpg", .env = "Pendulum-v1"}, train);
    source->source(params, {});
    const std::string state = source->state();
    ddpg->restore(state);
    for (const i64 row : {-1, 5, 100'000}) {  // rows outside the ring buffer
      Json j = Json::parse(state);
      j["next_row"] = row;
      EXPECT_THROW(ddpg->restore(j.dump()), ContentsError) << row;
    }
    for (const char* bad : {"{}", "[]", "{\"epoch\": 1, \"envs\": {}}"}) {
      EXPECT_THROW(ddpg->restore(bad), ContentsError) << bad;
      EXPECT_THROW(pipeline->restore(bad), ContentsError) << bad;
    }
  });
}

// A plan's batch: shapes without examples.
TEST(Rl, CollatesAPlansBatch) {
  for (const Kind& kind : kinds()) {
    const auto c = Context::meta({2, 1}, 0);
    const Context::Use use(*c);
    const auto pipeline = pipeline_of(kind.rl, small_training());
    const Batch b = pipeline->collate({}, {.rows = 16, .mine = {0, 8}, .length = 1});
    EXPECT_EQ(b["observation"].shape()[0], 16);
    ParamTree params = make_params(pipeline->params(), shard_specs(pipeline->params().specs, 1).layouts);
    EXPECT_GE(pipeline->loss(params.watched(), b, {}).size(), 2u);
  }
}

}  // namespace
}  // namespace redco
