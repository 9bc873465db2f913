#include "pipeline/text_scores.h"

#include <algorithm>

#include "base/error.h"
#include "ops/reduce.h"

namespace redco {

void require_text_scorer(const Model& model, const std::string& what) {
  if (model.task() != ModelTask::sequence_classification || model.num_labels() != 1)
    throw UsageError(
        "[model] {} needs a model that gives one number for a text (class ...ForSequenceClassification with "
        "num_labels 1), and this {} model is for {} ({} outputs). Train one with pipeline: reward",
        what, model.family(), name_of(model.task()), model.num_labels());
}

void add_text_rows(Batch& batch, std::span<const std::vector<i32>> mine, const std::string& prefix) {
  std::vector<Example> rows(mine.size());
  for (std::size_t r = 0; r < mine.size(); ++r) {
    rows[r].ids["input_ids"] = mine[r];
    rows[r].ids["key_mask"].assign(mine[r].size(), 1);
  }
  for (const char* field : {"input_ids", "key_mask"})
    batch.fields[prefix + field] = id_rows(rows, batch.shape, field, 0);
}

Tensor text_scores(const Model& model, const ParamTree& params, const Batch& batch,
                   const ApplyOptions& options, const std::string& prefix) {
  const EncoderInputs in{.input_ids = batch[prefix + "input_ids"], .key_mask = batch[prefix + "key_mask"]};
  return sum(model.apply_encoder(params, in, options), {1});  // of [B, 1]
}

Tensor text_scores(const Model& model, const ParamTree& params, std::span<const std::vector<i32>> texts) {
  Batch b;
  const i64 n = static_cast<i64>(texts.size());
  b.shape = {.rows = n, .mine = {0, n}};
  for (const std::vector<i32>& t : texts)
    b.shape.length = std::max(b.shape.length, static_cast<i64>(t.size()));
  add_text_rows(b, texts);
  return text_scores(model, params, b, {});
}

}  // namespace redco
