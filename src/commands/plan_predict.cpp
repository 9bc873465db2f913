#include "commands/plan_predict.h"

#include <algorithm>

#include "assembly/job_params.h"
#include "base/error.h"
#include "base/words.h"
#include "commands/predict_requests.h"
#include "generate/forward_pass.h"
#include "generate/generate.h"
#include "launch/resource_limits.h"
#include "plan/memory.h"
#include "train/step_embeddings.h"

namespace redco {

PredictPlan plan_predict(const JobConfig& job) {
  const PredictModel m = load_predict_model(job);
  PredictPlan p;
  p.title = m.source.config.source();
  const PredictScan prompts = scan_requests(job, m);
  p.n_prompts = prompts.n;
  p.longest_prompt = prompts.longest;
  p.skipped = prompts.skipped;

  const i64 n_ranks = declared_ranks(job).value_or(job.parallel.n_model_shards);
  const Mesh mesh = mesh_of(job, n_ranks);
  p.dp = mesh.dp();
  p.mp = mesh.mp();
  p.answers = job.predict.num_return_sequences;
  const i64 jobs = p.n_prompts * (job.predict.num_beams > 1 ? 1 : p.answers);
  p.rows = std::min(job.predict.batch_size, ceil_div(jobs, p.dp)) * job.predict.num_beams;
  // Other pipelines generate nothing: their loss on as many rows is traced instead.
  const bool generates = m.model && m.model->generates_text();
  const bool pair = m.model && m.model->is_encoder_decoder();
  const i64 prompt = pair ? 1 : p.longest_prompt;
  p.length = generates ? std::min(prompt + job.predict.max_new_tokens, m.model->length_limit())
                       : std::max<i64>(1, p.longest_prompt);
  i64 available = 0;
  read_memory("", p.limit, available);
  if (job.parallel.hosts.empty() && !job.parallel.hostfile) p.limit /= n_ranks;
  p.base = base_memory(n_ranks);

  const ModelParams all = m.pipeline->all_params();
  const auto sharded = shard_specs(all.specs, p.mp, custom_rules(job), inference_storage(job).weights);
  const PredictPlan nothing = p;
  // The first ranks have the larger shards: the first rank of a replica is the fullest, the last the
  // emptiest.
  for (const int rank : {0, p.mp - 1}) {
    const auto context = Context::meta(mesh, rank);
    context->compute_dtype = job.train.compute_dtype;
    const auto replica = Context::mp_submesh(*context);
    PredictPlan of = nothing;
    {
      const Context::Use use(*replica);
      const ParamTree params = make_params(all, sharded.layouts, inference_storage(job));
      for (const Tensor& t : params.values()) of.parameters += t.local_bytes();
      const i64 before = replica->flops();
      if (generates) {
        of.cache =
            trace_generation(*m.model, params, p.rows, pair ? p.longest_prompt : 0, prompt, p.length,
                             job.predict.cache_dtype, [&] { of.prefill_flops = replica->flops() - before; });
        of.step_flops = replica->flops() - before - of.prefill_flops;
      } else {
        const NoGrad off;
        const BatchShape shape{.rows = p.rows,
                               .mine = {0, p.rows},
                               .length = p.length,
                               .target_length = job.predict.max_new_tokens};
        m.pipeline->loss(params, loss_batch(*m.pipeline, params, m.pipeline->collate({}, shape), {}), {});
        of.prefill_flops = replica->flops() - before;
      }
    }
    of.activations = std::max<i64>(0, context->arena().high_water() - of.parameters - of.cache);
    if (of.total() >= p.total()) p = of;
  }
  return p;
}

std::string to_text(const PredictPlan& p) {
  const auto size = [](i64 bytes) { return human_bytes(static_cast<u64>(bytes)); };
  std::string s = fmt::format("predict: {}\n", p.title);
  s += fmt::format("  {}{}, {} each; dp {} x mp {}, {} rows of a replica together\n",
                   counted(p.n_prompts, "prompt"),
                   p.skipped ? fmt::format(" ({} bad lines left out)", p.skipped) : "",
                   counted(p.answers, "answer"), p.dp, p.mp, p.rows);
  s += fmt::format("  the longest prompt has {} tokens; with its answer the decoder holds up to {}\n",
                   p.longest_prompt, p.length);
  s += "memory of the fullest rank\n";
  for (const auto& [name, bytes] : {std::pair{"weights", p.parameters},
                                    {"cache", p.cache},
                                    {"activations", p.activations},
                                    {"process", p.base},
                                    {"total", p.total()}})
    s += fmt::format("  {:<12} {:>10}\n", name, size(bytes));
  s += fmt::format("  {} {} that a rank may use\n", p.fits() ? "fits" : "DOES NOT FIT", size(p.limit));
  s += fmt::format(
      "work of that rank: {} FLOP for a batch of such prompts, {} FLOP for a token of every row\n",
      human_count(static_cast<double>(p.prefill_flops)), human_count(static_cast<double>(p.step_flops)));
  return s;
}

}  // namespace redco
