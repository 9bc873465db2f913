#include "plan/trace.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "generate/forward_pass.h"
#include "pipeline/rollouts.h"
#include "train/buddy.h"
#include "train/checkpoint_files.h"
#include "train/prefetch.h"
#include "train/step_embeddings.h"

namespace redco {

namespace {

// Batches with rows[i] rows each, as the Trainer collates them.
std::vector<Batch> meta_batches(const TraceRequest& r, const std::vector<i64>& rows,
                                std::vector<i64>* offsets) {
  std::vector<Batch> out;
  i64 at = 0;
  for (const i64 n : rows) {
    const BatchShape shape{.rows = n,
                           .mine = shard_range(n, 1, r.mesh.dp(), coord_of(r.mesh, r.rank).dp()),
                           .length = r.length,
                           .target_length = r.target_length};
    out.push_back(collate_examples(*r.pipeline, {}, shape));
    offsets->push_back(at);
    at += n;
  }
  return out;
}

// Steps of more micro-batches are extrapolated: each further micro-batch adds the same as the second one.
// That does not hold for a loss of all embeddings, which may grow with the square of the examples.
constexpr i64 kAllTraced = 4;

struct OneTrace {
  Trace trace;
  i64 batch_bytes = 0;  // of the first micro-batch
};

OneTrace run_once(const TraceRequest& r, const std::vector<i64>& rows) {
  const auto context = Context::meta(r.mesh, r.rank);
  const Context::Use use(*context);
  context->compute_dtype = r.compute;
  OneTrace out;
  i64 flops = 0;
  {
    ParamTree params = make_params(r.pipeline->all_params(), r.layouts,
                                   {.sharding = r.step.sharding, .weights = r.step.weights, .trains = true});
    TrainStep step(*r.pipeline, params, r.step);
    for (const Tensor& t : params.values()) out.trace.parameters += t.local_bytes();
    for (const Optimizer::State& state : step.state())
      for (const Tensor& t : state.tree.values()) out.trace.optimizer += t.local_bytes();
    const ParamTree masters = step.masters();
    for (size_t i = 0; i < masters.size(); ++i)
      if (const Tensor& t = masters.values()[i]; !t.same_bytes(params.values()[i]))
        out.trace.optimizer += t.local_bytes();
    if (r.checkpoint.async_save)
      for (const ckpt::CopyQueue::Size& of :
           copy_sizes(saved_tensors(*r.pipeline, step, r.checkpoint, params.has_adapters() ? "adapter" : ""),
                      r.checkpoint, r.mesh.ranks()))
        out.trace.checkpoint = std::max(out.trace.checkpoint, of.bytes());
    if (!r.buddy_hosts.empty())
      out.trace.buddy = buddy_bytes(saved_tensors(*r.pipeline, step, {}, ""), r.mesh, r.rank, r.buddy_hosts);
    // Gradients that wait for further micro-batches are whole, unless they are sharded. Reduced ones have the
    // placement of their state.
    const bool whole = rows.size() > 1 && r.step.sharding <= StateSharding::optimizer;
    for (const ParamGroup& g : r.pipeline->checked_groups())
      if (!g.ema_of)
        for (size_t i = 0; i < params.size(); ++i)
          if (const Tensor& p = params.values()[i];
              params.specs()[i].trained() && g.has(params.specs()[i].name)) {
            const Layout l = whole ? p.layout() : state_layout(p, r.step.sharding);
            out.trace.gradients +=
                numel(local_shape(p.shape(), l, r.mesh, context->coord())) * size_of(DType::f32);
          }
    const i64 before = context->arena().in_use();
    std::vector<i64> offsets;
    const std::vector<Batch> batches = meta_batches(r, {rows[0]}, &offsets);
    out.batch_bytes = context->arena().in_use() - before;
    std::vector<Batch> all = batches;
    offsets.clear();
    if (rows.size() > 1) {
      std::vector<i64> rest(rows.begin() + 1, rows.end());
      for (Batch& b : meta_batches(r, rest, &offsets)) all.push_back(std::move(b));
      for (i64& o : offsets) o += rows[0];
    }
    offsets.insert(offsets.begin(), 0);
    // The second step gathers sharded parameters ahead.
    const int steps = r.step.sharding == StateSharding::parameters ? 2 : 1;
    for (int s = 0; s < steps; ++s) {
      context->keep_ledger();
      flops = context->flops();
      step.run(all, offsets, 0, 0, 1e-4, {});
    }
    out.trace.lines = context->ledger()->lines();
    out.trace.collectives = context->ledger()->collectives();
    out.trace.flops = static_cast<double>(context->flops() - flops);
    out.trace.high_water = context->arena().high_water();
    if (r.model) {
      Timeline timeline(*r.model, *r.machines, *context);
      step.run(all, offsets, 1, 0, 1e-4, {});  // what the next step finds in the caches
      timeline.begin();
      context->keep_ledger();
      step.run(all, offsets, 2, 0, 1e-4, {});
      out.trace.time = timeline.time(context->ledger()->ops());
    }
    if (const PlannedAnswers& a = r.evaluation; a.rows > 0) {
      const ParamTree whole = params.gathered();
      const auto replica = Context::mp_submesh(*context);
      const Context::Use alone(*replica);
      trace_generation(*r.pipeline->model, whole, a.rows, a.encoded, a.prompt, a.length, a.cache, [] {});
    }
    if (r.rollout_rows > 0) {
      const i64 answer = r.pipeline->planned_rollouts().max_new_tokens;
      const i64 length = std::max(r.length, i64{2}), prompt = std::max(i64{1}, length - answer);
      trace_sample(*r.pipeline->model, params, r.rollout_rows, prompt, length);
    }
    if (r.evaluation.rows + r.rollout_rows > 0) out.trace.answers_high_water = context->arena().high_water();
  }
  return out;
}

// a += times x (b - base) for each line, in the order of b, which has all lines.
void add_difference(std::vector<LedgerLine>& a, const std::vector<LedgerLine>& b,
                    const std::vector<LedgerLine>& base, i64 times) {
  using Lines = std::map<std::pair<std::string, std::string>, const LedgerLine*>;
  auto index = [](const std::vector<LedgerLine>& lines) {
    Lines at;
    for (const LedgerLine& l : lines) at[{l.what, l.where}] = &l;
    return at;
  };
  const Lines sum = index(a), was = index(base);
  std::vector<LedgerLine> out;
  for (const LedgerLine& l : b) {
    LedgerLine d{l.what, l.where, times * l.count, times * l.flops, times * l.bytes, l.most};
    auto add = [&](const Lines& lines, i64 n) {
      const auto it = lines.find({l.what, l.where});
      if (it == lines.end()) return;
      d.count += n * it->second->count;
      d.flops += n * it->second->flops;
      d.bytes += n * it->second->bytes;
      d.most = std::max(d.most, it->second->most);
    };
    add(sum, 1);
    add(was, -times);
    out.push_back(std::move(d));
  }
  a = std::move(out);
}

// The full micro-batches of a step, and the rows of a smaller last one.
struct Cut {
  i64 each = 0, full = 0, tail = 0;
};
Cut cut_step(const TraceRequest& r) {
  const i64 each = std::min(r.global_batch, r.per_device * r.mesh.dp());
  return {each, r.global_batch / each, r.global_batch % each};
}

}  // namespace

Trace trace_step(const TraceRequest& r) {
  const Cut cut = cut_step(r);
  if (cut.full + (cut.tail > 0) <= kAllTraced || embedding_pipeline(*r.pipeline)) {
    std::vector<i64> rows(cut.full, cut.each);
    if (cut.tail > 0) rows.push_back(cut.tail);
    return run_once(r, rows).trace;
  }
  const OneTrace first = run_once(r, {cut.each});
  Trace out = first.trace;
  auto add = [&](const OneTrace& more, i64 times) {
    add_difference(out.lines, more.trace.lines, first.trace.lines, times);
    add_difference(out.collectives, more.trace.collectives, first.trace.collectives, times);
    out.flops += static_cast<double>(times) * (more.trace.flops - first.trace.flops);
    out.time.add_difference(more.trace.time, first.trace.time, static_cast<double>(times));
    out.high_water = std::max(out.high_water, more.trace.high_water);
  };
  i64 collated = 1;
  if (cut.full > 1) {
    add(run_once(r, {cut.each, cut.each}), cut.full - 1);
    collated = 2;
  }
  if (cut.tail > 0) {
    add(run_once(r, {cut.each, cut.tail}), 1);
    collated = 2;
  }
  // All micro-batches are collated before the first one is computed.
  out.high_water += (cut.full + (cut.tail > 0) - collated) * first.batch_bytes;
  return out;
}

}  // namespace redco
