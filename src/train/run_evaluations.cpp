#include "train/run_evaluations.h"

#include <algorithm>

#include "base/activity.h"
#include "base/log.h"
#include "base/tolerate.h"
#include "base/words.h"
#include "metrics/metric_text.h"
#include "workdir/workdir_names.h"

namespace redco {

bool RunEvaluations::have_results() const {
  const Pipeline& p = *job_.pipeline;
  return n_outputs() > 0 || in_pipeline(p, "evaluates_loss()", [&] { return p.evaluates_loss(); }) ||
         in_pipeline(p, "measures_outputs()", [&] { return p.measures_outputs(); });
}

Evaluation RunEvaluations::run(bool little) const {
  const activity::Phase phase("evaluate");
  return evaluate_sets(*job_.pipeline, *job_.params, sets_,
                       job_.eval.per_device_batch_size.value_or(job_.per_device_batch_size), n_outputs(),
                       little);
}

void RunEvaluations::report(const Evaluation& e, i64 step, double epoch, double seconds,
                            MetricsLog& log) const {
  Values v = {{"epoch", epoch}};
  for (const auto& [name, value] : e.metrics) v.emplace_back("eval_" + name, value);
  v.emplace_back("eval_s", seconds);
  log.write(step, v);
  if (!e.metrics.empty())
    info("step {} evaluation:  {}  ({})", step, metrics_text(e.metrics, "  "), human_duration(seconds));
  for (const EvalOutputs& outputs : e.outputs) keep(outputs, step, log);
}

void RunEvaluations::keep(const EvalOutputs& outputs, i64 step, MetricsLog& log) const {
  constexpr std::size_t kShown = 4;
  tolerate(fmt::format("[eval] {}: outputs were not saved", job_.workdir),
           [&] { save_outputs(job_.workdir, step, outputs, n_outputs()); });
  const auto table = outputs_table(outputs, std::min<std::size_t>(kShown, n_outputs()));
  if (table.empty()) return;
  log.text(step, outputs.set.empty() ? workdir::kEvalOutputs : workdir::eval_output(outputs.set), table);
  for (std::size_t i = 0; i + 1 < table.size(); ++i) debug("step {} output {}", step, outputs.lines[i]);
}

}  // namespace redco
