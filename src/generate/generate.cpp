#include "generate/generate.h"

#include "generate/agree.h"
#include "generate/answer_passes.h"
#include "generate/scheduler.h"
#include "generate/token_chooser.h"

namespace redco {

std::vector<std::vector<Answer>> generate(const Model& model, const ParamTree& params,
                                          std::span<const GenerationPrompt> prompts,
                                          const GenerationSettings& settings, const GenerationTokens& tokens,
                                          const GenerateOptions& options) {
  NoGrad off;
  Group& mp = Context::current().group(Axis::mp);
  const bool first = mp.rank() == 0;
  Scheduler scheduler(prompts, settings, tokens, model.length_limit(), options.batch_size, first);
  AnswerBatch& batch = scheduler.batch();
  AnswerPasses passes(model, params, prompts, settings, tokens, options);
  TokenChooser chooser(prompts, settings, tokens, options, mp, batch);

  const auto choose = [&](const Tensor& logits, const std::vector<PendingSlot>& pending) {
    std::vector<Decision> decisions(pending.size());
    if (first && options.interrupted) batch.interrupted = options.interrupted();
    const bool finite = chooser.choose(logits, pending, decisions);
    agree_on_decisions(mp, batch, decisions, finite);
    const Forks forks = scheduler.apply(pending, decisions);
    if (batch.width > 1) passes.fork(forks);
    if (options.on_step) options.on_step();
  };

  while (!batch.interrupted) {
    if (scheduler.can_start()) {  // an answer may end with its first token, so this is asked again
      const Start start = scheduler.start();
      choose(passes.prefill(start, scheduler.rows()), start.pending);
    } else if (scheduler.running()) {
      if (const auto kept = scheduler.shrink(); !kept.empty()) passes.drop_rows(kept);
      const Step step = scheduler.step();
      choose(passes.step(step), step.pending);
    } else {
      break;
    }
  }
  agree_on_answers(mp, batch);
  if (options.prefix) {
    std::vector<i32> ids = prompts[0].ids;
    const auto& fresh = batch.answers[0][0].ids;
    ids.insert(ids.end(), fresh.begin(), fresh.end());
    passes.keep_prefix(std::move(ids));
  }
  return std::move(batch.answers);
}

}  // namespace redco
