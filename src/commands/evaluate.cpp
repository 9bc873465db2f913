#include "commands/evaluate.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "assembly/data_cache.h"
#include "assembly/job_pipeline.h"
#include "assembly/lm_data.h"
#include "assembly/predict_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "comm/group.h"
#include "commands/trained_request.h"
#include "run/run.h"
#include "train/evaluate.h"

namespace redco {

namespace {

int evaluate_on_ranks(const JobConfig& job, Context& c) {
  Group& world = c.world();
  PredictModel m;
  BatchSizes sizes;
  std::string cache;
  world.together([&] { sizes = batch_sizes(job, c.mesh().dp()); });
  m = open_predict_model(job, world, NamedUse::loss);
  world.together([&] { check_metrics(job, *m.pipeline); });
  std::optional<DataCache> own;  // on the first rank
  const bool several_hosts = are_on_several_hosts(world);
  world.on_first([&] { cache = own.emplace(job, several_hosts).path(); });
  cache = world.agree(cache);
  m.pipeline->eval_sets = make_eval_sets(job, *m.pipeline, m.source.folder, cache);
  c.random.seed = static_cast<u64>(job.train.seed);
  c.compute_dtype = job.train.compute_dtype;
  const ParamTree params = make_predict_params(job, m);
  const std::vector<EvalSet> sets = m.pipeline->checked_evaluation();
  if (sets.empty()) throw UsageError("[eval] the pipeline has no evaluation data. Set data.eval");
  const i64 rows = job.eval.per_device_batch_size.value_or(sizes.per_device);
  auto settings = std::make_shared<PipelineSettings>(*m.pipeline->settings);
  settings->generation = {job.eval.generation, m.tokens, rows};
  m.pipeline->settings = std::move(settings);
  const auto metrics = evaluate_sets(*m.pipeline, params, sets, rows, 0).metrics;
  world.on_first([&] {
    for (const auto& [name, value] : metrics)
      if (!std::isfinite(value))
        throw Error(ExitCode::non_finite, fmt::format("[eval] the metric {} of {} is not finite: {}", name,
                                                      m.source.config.source(), value));
    nlohmann::ordered_json j;
    for (const auto& [name, value] : metrics) j[name] = value;
    for (const EvalSet& set : sets)
      j[set.name.empty() ? "examples" : set.name + "_examples"] = set.data->size();
    const std::string folder = m.source.folder.empty() ? "random weights" : m.source.folder;
    j["model"] = m.source.adapter.empty() ? folder : m.source.adapter;
    if (!m.source.adapter.empty()) j["base_model"] = folder;
    std::puts(j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  });
  return 0;
}

}  // namespace

int run_evaluate(const RunRequest& request) {
  return run(trained_request(request, Weights::needed, JobUse::evaluate),
             [](Run& run) { return evaluate_on_ranks(run.job(), run.context()); });
}

}  // namespace redco
