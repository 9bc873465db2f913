#include "plan/generation_time.h"

#include "generate/agree.h"
#include "generate/forward_pass.h"
#include "generate/local_scores.h"
#include "generate/sampling.h"
#include "pipeline/pipeline.h"

namespace redco {

namespace {

// What the ranks of a model copy tell each other to choose the most likely token of each row.
void exchange_choices(Group& mp, i64 rows) {
  const auto n = static_cast<std::size_t>(rows);
  static_cast<void>(gathered(mp, true, std::vector<ScoredToken>(n)));
  AnswerBatch batch;
  std::vector<Decision> decisions(n);
  agree_on_decisions(mp, batch, decisions, true);
}

GenerationTime time_on(const GenerationRequest& r, int rank) {
  const auto context = Context::meta(r.mesh, rank);
  context->compute_dtype = r.compute;
  const auto replica = Context::mp_submesh(*context);
  const Context::Use use(*replica);
  const NoGrad off;
  GenerationTime out;
  const ParamTree params = make_params(r.pipeline->params(), r.layouts, r.storage);
  const i64 length = r.prompt + r.new_tokens;
  const std::vector<i32> ids(static_cast<std::size_t>(r.rows * r.prompt), 0);
  const std::vector<i64> begin(static_cast<std::size_t>(r.rows), 0);
  Timeline timeline(*r.costs, *r.machines, *replica);
  const auto pass = [&](ModelCache& cache, i64 n) {
    timeline.begin();
    replica->keep_ledger();
    forward(*r.model, params, cache, r.rows, n, std::span(ids).first(static_cast<std::size_t>(r.rows * n)),
            begin, {});
    exchange_choices(replica->group(Axis::mp), r.rows);
    return timeline.time(replica->ledger()->ops());
  };
  // The second pass of each kind finds in the caches what the one before has left there.
  for (const bool last : {false, true}) {
    ModelCache cache = r.model->make_cache({.capacity = length + 2, .dtype = r.cache});
    out.prefill = pass(cache, r.prompt);
    if (!last) continue;
    if (r.new_tokens > 1) cache.move(r.new_tokens / 2, length + 2);
    pass(cache, 1);
    out.step = pass(cache, 1);
  }
  return out;
}

}  // namespace

GenerationTime generation_time(const GenerationRequest& r) {
  GenerationTime first = time_on(r, 0);
  if (r.mesh.mp() == 1) return first;
  GenerationTime last = time_on(r, r.mesh.mp() - 1);
  if (last.prefill.total > first.prefill.total) first.prefill = last.prefill;
  if (last.step.total > first.step.total) first.step = last.step;
  return first;
}

}  // namespace redco
