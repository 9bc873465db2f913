#include "train/evaluate.h"

#include "base/error.h"
#include "base/signals.h"
#include "train/prefetch.h"
#include "train/step.h"

namespace redco {

namespace {

// Throws on all ranks if one rank received a request to end.
void leave_if_asked() {
  if (Context::current().world().any(end_requested() != 0))
    throw Error(ExitCode::interrupted, "[eval] the evaluation was stopped by a signal");
}

}  // namespace

std::map<std::string, double> evaluate(Pipeline& pipeline, const ParamTree& params,
                                       const std::shared_ptr<const Dataset>& data, i64 per_device,
                                       i64 max_batches) {
  if (!in_pipeline(pipeline, "evaluates_loss()", [&] { return pipeline.evaluates_loss(); })) return {};
  const auto parts = micro_batches(data->size(), per_device, Context::current().mesh().dp());
  i64& row_offset = Context::current().random.row_offset;
  const Restore<i64> first_row(row_offset, 0);
  Prefetcher prefetcher(pipeline.settings->data.n_workers);
  size_t i = 0;
  const size_t n = max_batches >= 0 ? std::min<size_t>(parts.size(), max_batches) : parts.size();
  const auto request = [&](size_t k) {
    if (k >= n) return StepRequest{};
    return StepRequest{request_rows(parts[k].rows, [&](i64 r) { return parts[k].first + r; })};
  };
  const auto means = mean_terms(pipeline, params, [&](Batch* b) {
    if (i == n) return false;
    leave_if_asked();
    row_offset = parts[i].first;
    *b = collate_examples(pipeline, prefetcher.take(data, request(i), request(i + 1)).front());
    ++i;
    return true;
  });
  return in_pipeline(pipeline, "metrics()", [&] { return pipeline.metrics(means); });
}

Evaluation evaluate_sets(Pipeline& pipeline, const ParamTree& params, const std::vector<EvalSet>& sets,
                         i64 per_device, i64 n_outputs, bool little) {
  const i64 most = little ? 1 : -1;
  const bool answers = n_outputs > 0 || in_pipeline(pipeline, "measures_outputs()",
                                                    [&] { return pipeline.measures_outputs(); });
  Evaluation e;
  for (const EvalSet& set : sets) {
    auto metrics = evaluate(pipeline, params, set.data, per_device, most);
    EvalOutputs& outputs = e.outputs.emplace_back();
    if (answers) {
      outputs = make_outputs(pipeline, params, *set.data, per_device, n_outputs, most);
      leave_if_asked();  // the answers may be incomplete
      metrics.insert(outputs.metrics.begin(), outputs.metrics.end());
    }
    outputs.set = set.name;
    for (const auto& [name, value] : metrics)
      e.metrics[set.name.empty() ? name : set.name + "_" + name] = value;
  }
  return e;
}

}  // namespace redco
