#include "train/mean_terms.h"

#include "comm/group.h"
#include "pipeline/bad_ids.h"
#include "train/step_checks.h"

namespace redco {

std::map<std::string, double> mean_terms(Pipeline& pipeline, const ParamTree& params,
                                         const std::function<bool(Batch*)>& next) {
  Context& c = Context::current();
  c.phase = "evaluation";
  std::map<std::string, std::pair<double, double>> sums;  // this rank's share of sum and weight
  double difference = 0;                                  // this rank's part, see part_of_difference()
  LossTerms terms;
  Batch batch;
  c.begin_constants();
  while (next(&batch)) {
    StepContext ctx;
    terms = in_pipeline(pipeline, "loss()", [&] { return pipeline.loss(params, batch, ctx); });
    check_terms(terms, pipeline);
    for (const LossTerm& t : terms) {
      sums[t.name].first += share(t.sum);
      difference += copies_differ(t);
      if (c.coord().mp() == 0)
        sums[t.name].second += batch.weights.count(t.name) ? batch.weights.at(t.name) : 0;
    }
  }
  const std::optional<BadId> bad_id = c.queue().take_bad_id();
  std::vector<double> flat = {difference + constants_differ(), bad_id ? 1.0 : 0.0};
  for (const auto& [name, s] : sums) {
    flat.push_back(s.first);
    flat.push_back(s.second);
  }
  if (c.world().size() > 1) c.world().all_reduce<double>(flat.data(), static_cast<i64>(flat.size()));
  if (flat[1] != 0) report_bad_id(pipeline, "evaluation", bad_id);
  if (flat[0] != 0) report_difference(pipeline, terms, "evaluation");
  std::map<std::string, double> means;
  size_t i = 2;
  for (const auto& [name, s] : sums) {
    means[name] = flat[i + 1] > 0 ? flat[i] / flat[i + 1] : 0;
    i += 2;
  }
  return means;
}

}  // namespace redco
