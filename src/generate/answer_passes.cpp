#include "generate/answer_passes.h"

#include <algorithm>

#include "base/error.h"
#include "generate/forward_pass.h"

namespace redco {

namespace {
// Columns for the first new tokens of answers; a cache that becomes full grows.
i64 room_for(i64 most_new) { return std::min<i64>(most_new, 256); }
}  // namespace

AnswerPasses::AnswerPasses(const Model& model, const ParamTree& params,
                           std::span<const GenerationPrompt> prompts, const GenerationSettings& settings,
                           const GenerationTokens& tokens, const GenerateOptions& options)
    : model_(model),
      params_(params),
      prompts_(prompts),
      tokens_(tokens),
      o_(options),
      dtype_(settings.cache_dtype) {
  REDCO_CHECK(!model.is_encoder_decoder() || o_.encode, "{} needs an encoder's memory", model.family());
}

ModelCache AnswerPasses::new_cache(i64 capacity) const {
  return model_.make_cache({.capacity = capacity, .dtype = dtype_});
}

Tensor AnswerPasses::prefill(const Start& start, i64 rows) {
  std::vector<std::span<const i32>> prompts;
  for (const i64 p : start.prompts) prompts.emplace_back(prompts_[p].ids);
  if (start.alone && o_.prefix) {
    REDCO_CHECK(start.to.size() == 1 && prompts_.size() == 1 && !o_.encode,
                "a kept cache works for one answer only");
    return prefill_rest(prompts[0], start.most_new);
  }
  const Padded padded = pad_left(prompts, tokens_.pad);
  const i64 n = static_cast<i64>(prompts.size());
  PassMemory memory;
  Memory encoded;
  if (o_.encode) {
    encoded = o_.encode(start.prompts);
    memory = {encoded.states, encoded.mask, encoded.states.shape()[1]};
  }
  ModelCache cache = new_cache(padded.length + (start.alone ? room_for(start.most_new) : 0));
  const Tensor logits = forward(model_, params_, cache, n, padded.length, padded.ids, padded.begin, memory);
  RowCache prefilled(std::move(cache), padded.begin, std::move(encoded.mask));
  // If each row of the batch has its own prompt, this cache is the batch's.
  if (start.alone && n == rows) {
    rows_ = std::move(prefilled);
    return logits;
  }
  if (start.alone) rows_ = RowCache(new_cache(prefilled.capacity()), {}, {});
  rows_.insert(prefilled, start.from, start.to, rows);
  return logits;
}

// Prefills the part of one prompt that is not in the kept cache yet.
Tensor AnswerPasses::prefill_rest(std::span<const i32> ids, i64 most_new) {
  PrefixCache prefix = std::move(*o_.prefix);
  *o_.prefix = {};
  // The last token is computed again, because its logits are needed.
  i64 same = 0;
  while (same + 1 < static_cast<i64>(ids.size()) && same < static_cast<i64>(prefix.ids.size()) &&
         ids[same] == prefix.ids[same])
    ++same;
  if (same == 0 || !prefix.cache.can_drop_columns(same)) {
    same = 0;
    prefix.cache = new_cache(static_cast<i64>(ids.size()) + room_for(most_new));
  }
  prefix.cache.drop_columns(same);
  const i64 rest = static_cast<i64>(ids.size()) - same;
  rows_ = RowCache(std::move(prefix.cache), {0}, {});
  rows_.make_room(rest, {true});
  return forward(model_, params_, rows_.cache(), 1, rest, ids.last(rest), rows_.begins(), {});
}

void AnswerPasses::keep_prefix(std::vector<i32> ids) {
  *o_.prefix = {rows_.release(), std::move(ids)};
  o_.prefix->ids.resize(o_.prefix->cache.length());  // the last token is not in the cache
}

Tensor AnswerPasses::step(const Step& step) {
  rows_.make_room(1, step.live);
  return forward(model_, params_, rows_.cache(), rows_.rows(), 1, step.ids, rows_.begins(),
                 {{}, rows_.memory_mask(), rows_.memory_length()});
}

}  // namespace redco
