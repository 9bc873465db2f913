#include "train/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "base/signals.h"
#include "train/mean_terms.h"
#include "train/prefetch.h"
#include "train/step.h"
#include "train/step_embeddings.h"

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
  const Restore<i64> step(Context::current().random.step, 0);  // all evaluations have the same draws
  const i64 rows = data->size(), dp = Context::current().mesh().dp();
  const EmbeddingPipeline* const embedding = embedding_pipeline(pipeline);
  // The examples of one loss: a micro-batch, or the embeddings of as many as in a step of training.
  const i64 each = embedding ? pipeline.settings->train.global_batch_size.value_or(per_device * dp)
                             : std::max<i64>(1, per_device * dp);
  const i64 losses = (rows + each - 1) / each;
  const i64 n = max_batches >= 0 ? std::min(losses, max_batches) : losses;
  const auto parts = [&](i64 i) { return micro_batches(std::min(each, rows - i * each), per_device, dp); };
  const auto request = [&](i64 i) {
    StepRequest out;
    if (i >= n) return out;
    for (const MicroBatch& m : parts(i))
      out.push_back(request_rows(m.rows, [&](i64 r) { return i * each + m.first + r; }));
    return out;
  };
  i64& row_offset = Context::current().random.row_offset;
  const Restore<i64> first_row(row_offset, 0);
  Prefetcher prefetcher(pipeline.settings->data.n_workers);
  i64 i = 0;
  const auto means = mean_terms(pipeline, params, [&](Batch* b) {
    if (i == n) return false;
    leave_if_asked();
    std::vector<Batch> batches;
    std::vector<i64> offsets;
    for (const MicroBatchExamples& m : prefetcher.take(data, request(i), request(i + 1)))
      batches.push_back(collate_examples(pipeline, m.mine, m.shape));
    for (const MicroBatch& m : parts(i)) offsets.push_back(i * each + m.first);
    row_offset = i * each;
    *b = embedding ? StepEmbeddings(*embedding, params, batches, offsets, {}).all() : std::move(batches[0]);
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
  const Restore<i64> step(Context::current().random.step, 0);
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
