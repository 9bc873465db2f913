// The passes of the model over the rows of a batch of answers, and their cache.
#pragma once

#include <span>

#include "generate/generate.h"
#include "generate/row_cache.h"
#include "generate/scheduler.h"

namespace redco {

class AnswerPasses {
 public:
  // The arguments outlive the object.
  AnswerPasses(const Model& model, const ParamTree& params, std::span<const GenerationPrompt> prompts,
               const GenerationSettings& settings, const GenerationTokens& tokens,
               const GenerateOptions& options);

  // Prefills each of the prompts once, and puts it into its rows of a batch of `rows`. -> logits, [prompts,
  // 1, V].
  Tensor prefill(const Start& start, i64 rows);
  // One token of each row. -> logits, [rows, 1, V].
  Tensor step(const Step& step);
  void fork(const Forks& forks) { rows_.fork(forks.source, forks.columns); }
  void drop_rows(std::span<const i64> kept) { rows_.drop_rows(kept); }
  // Gives the cache to options.prefix; ids: of its only row, and maybe more.
  void keep_prefix(std::vector<i32> ids);

 private:
  ModelCache new_cache(i64 capacity) const;
  Tensor prefill_rest(std::span<const i32> ids, i64 most_new);

  const Model& model_;
  const ParamTree& params_;
  std::span<const GenerationPrompt> prompts_;
  const GenerationTokens& tokens_;
  const GenerateOptions& o_;
  const CacheDType dtype_;
  RowCache rows_;
};

}  // namespace redco
