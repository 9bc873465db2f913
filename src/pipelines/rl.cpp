// Reinforcement learning: the parts of pipeline rl that do not depend on the algorithm. The pipeline has its
// own networks, the data are steps of an environment, and evaluations play episodes.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "env/make_environment.h"
#include "pipelines/pipelines.h"
#include "pipelines/rl_algorithm.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

class Rl : public Pipeline {
 public:
  const ModelParams& params() const override {
    algorithm();
    return params_;
  }
  std::vector<ParamGroup> groups() const override { return algorithm().groups(); }

  Batch collate(std::span<const Example> mine, const BatchShape& shape) const override {
    return algorithm().collate(mine, shape);
  }
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext&) const override {
    return algorithm().loss(params, batch);
  }
  std::string unit() const override { return "transitions"; }

  // {"observation": [...]} -> {"action": ...}; {"seed": n} plays an episode -> {"episode_return", "length"}.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext&) const override {
    const RlJob& job = algorithm().job();
    std::vector<std::string> out(examples.size());
    std::vector<std::size_t> episodes, asked;
    std::vector<float> observations;
    for (std::size_t i = 0; i < examples.size(); ++i) {
      const auto o = examples[i].values.find("observation");
      if (o == examples[i].values.end()) {
        episodes.push_back(i);
        continue;
      }
      asked.push_back(i);
      observations.insert(observations.end(), o->second.begin(), o->second.end());
    }
    if (!asked.empty()) {
      const std::vector<float> actions = algorithm().best_actions(params, observations);
      for (std::size_t k = 0; k < asked.size(); ++k) {
        const auto first = actions.begin() + static_cast<std::ptrdiff_t>(k) * job.actions();
        const Json action = job.discrete() ? Json(static_cast<i64>(*first))
                                           : Json(std::vector<float>(first, first + job.actions()));
        out[asked[k]] = Json{{"action", action}}.dump();
      }
    }
    play(params, examples, episodes, out);
    return out;
  }
  bool predicts_any_number() const override { return true; }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    throw UsageError("[data] data.{}: pipeline rl needs no data. Remove the key",
                     request.evaluation ? "eval" : "train");
  }

  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    const RlJob& job = algorithm().job();
    const auto j = Json::parse(json, nullptr, false);
    const auto given = [&](const char* key) { return j.is_object() && j.contains(key); };
    Example e;
    if (given("seed") && !given("observation")) {
      if (!j["seed"].is_number_unsigned())
        throw ContentsError("{}: \"seed\" must be an integer >= 0, got {}", where, excerpt(j["seed"].dump()));
      e.values["start"] = start_of(job, j["seed"].get<u64>());
      return e;
    }
    if (!given("observation"))
      throw ContentsError(
          "{}: expected a line with \"observation\": [{} numbers] or \"seed\": an integer >= 0", where,
          job.observations());
    const Json& o = j["observation"];
    bool good = o.is_array() && static_cast<i64>(o.size()) == job.observations();
    for (std::size_t i = 0; good && i < o.size(); ++i) {
      good = o[i].is_number() && std::isfinite(o[i].get<float>());
      if (good) e.values["observation"].push_back(o[i].get<float>());
    }
    if (!good)
      throw ContentsError("{}: \"observation\" of {} must be a list of {} numbers, got {}", where,
                          job.env->name(), job.observations(), excerpt(o.dump()));
    return e;
  }

  std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx) override {
    return algorithm().source(params, ctx.epoch);
  }
  std::map<std::string, double> notes() const override { return algorithm().envs().notes(); }

  // Evaluation episodes, with their own initial states.
  std::vector<EvalSet> evaluation() override {
    const RlJob& job = algorithm().job();
    std::vector<Example> out(static_cast<std::size_t>(job.rl.n_eval_episodes));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].ordinal = static_cast<i64>(i);
      out[i].values["start"] = start_of(job, kEvaluationSeeds + i);
    }
    if (out.empty()) return {};
    return {{std::make_shared<ExampleList>(std::move(out), "episodes of " + job.env->name())}};
  }
  bool evaluates_loss() const override { return false; }
  bool measures_outputs() const override { return true; }
  std::map<std::string, double> output_metrics(std::span<const Example>,
                                               const std::vector<std::string>& outputs) const override {
    double sum = 0, squares = 0, length = 0, least = INFINITY, most = -INFINITY;
    const double n = static_cast<double>(outputs.size());
    std::vector<double> returns;
    for (const std::string& text : outputs) {
      const auto j = Json::parse(text);
      const double r = returns.emplace_back(j.at("episode_return").get<double>());
      sum += r;
      length += j.at("length").get<double>();
      least = std::min(least, r);
      most = std::max(most, r);
    }
    for (const double r : returns) squares += (r - sum / n) * (r - sum / n);
    const std::map<std::string, double> all = {{"mean_return", sum / n},
                                               {"std_return", std::sqrt(squares / n)},
                                               {"min_return", least},
                                               {"max_return", most},
                                               {"mean_length", length / n}};
    return wanted_metrics("rl", settings->eval.metrics, all);
  }

  std::string state() const override { return algorithm().state(); }
  void restore(const std::string& json) override { algorithm().restore(json); }

 private:
  static constexpr u64 kEvaluationSeeds = u64{1} << 32;  // beyond the seeds that users choose

  // Created at first use, when the settings are known.
  RlAlgorithm& algorithm() const {
    if (algorithm_) return *algorithm_;
    if (model)
      throw UsageError(
          "[model] pipeline rl has its own networks (rl.hidden_sizes). Remove the section `model`");
    RlJob job{.rl = settings->rl,
              .seed = settings->train.seed,
              .batch_size = settings->train.global_batch_size.value_or(0),
              .env = nullptr};
    if (job.rl.env.empty())
      throw UsageError("[rl] rl.env is missing. Set it to an environment, e.g. CartPole-v1");
    job.env = make_environment(job.rl.env);
    algorithm_ = job.rl.algorithm == "ppo" ? make_ppo(std::move(job)) : make_ddpg(std::move(job));
    params_ = algorithm_->params();
    return *algorithm_;
  }

  // Uniform draws of a seed for an episode's initial state, independent of training's, which have other
  // sites.
  static std::vector<float> start_of(const RlJob& job, u64 seed) {
    RlJob other = job;
    other.seed = static_cast<i64>(seed >> 1);
    return other.uniforms("start", static_cast<i64>(seed & 1), {job.env->state_size()});
  }

  void play(const ParamTree& params, std::span<const Example> examples, const std::vector<std::size_t>& which,
            std::vector<std::string>& out) const {
    const RlJob& job = algorithm().job();
    const std::size_t n = which.size();
    if (n == 0) return;
    EnvRows envs(job.env, static_cast<i64>(n));
    std::vector<float> starts;
    for (const std::size_t i : which) {
      const auto& start = examples[i].values.at("start");
      starts.insert(starts.end(), start.begin(), start.end());
    }
    envs.begin(starts);
    std::vector<double> returns(n, 0);
    std::vector<bool> over(n, false);
    for (i64 t = 1, left = static_cast<i64>(n); left > 0; ++t) {
      // Finished episodes keep stepping; their results are ignored.
      const EnvRows::Outcome o = envs.step(algorithm().best_actions(params, envs.observations()), starts);
      for (std::size_t e = 0; e < n; ++e) {
        if (over[e]) continue;
        returns[e] += o.rewards[e];
        if (!o.ended[e]) continue;
        over[e] = true;
        --left;
        out[which[e]] =
            Json{{"episode_return", returns[e]}, {"length", t}, {"terminated", bool(o.terminated[e])}}.dump();
      }
    }
  }

  mutable std::unique_ptr<RlAlgorithm> algorithm_;
  mutable ModelParams params_;
};

}  // namespace

std::unique_ptr<Pipeline> make_rl_pipeline() { return std::make_unique<Rl>(); }

}  // namespace redco
