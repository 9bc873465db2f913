#include "pipeline/token_rows.h"

#include "base/error.h"
#include "data/text/example_lines.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"

namespace redco {

namespace {

constexpr i32 kIgnored = -100;

}  // namespace

double add_token_rows(Batch& batch, const Model& model, std::span<const TokenRow> mine,
                      const std::string& prefix) {
  const BatchShape& s = batch.shape;
  REDCO_CHECK(static_cast<i64>(mine.size()) == s.mine.size() || mine.empty(),
              "add_token_rows() got {} rows; expected {}, those of BatchShape::mine", mine.size(),
              s.mine.size());
  const std::vector<i32> positions =
      model.positions(std::vector<i32>(static_cast<size_t>(s.length), 1), false);
  std::vector<Example> rows(mine.size());
  i64 labels = 0;
  for (size_t r = 0; r < mine.size(); ++r) {
    const TokenRow& row = mine[r];
    const i64 n = static_cast<i64>(row.ids.size());
    REDCO_CHECK(n >= 1 && row.first >= 1 && row.first <= n,
                "a row has {} tokens, and its answer begins at {}", n, row.first);
    rows[r].ids["input_ids"] = row.ids;
    rows[r].ids["positions"] = positions;
    std::vector<i32>& next = rows[r].ids["labels"];
    next.assign(row.ids.begin() + 1, row.ids.end());
    std::fill_n(next.begin(), row.first - 1, kIgnored);
    labels += n - row.first;
  }
  for (const auto& [field, fill] :
       {std::pair{"input_ids", 0}, std::pair{"positions", 0}, std::pair{"labels", kIgnored}})
    batch.fields[prefix + field] = id_rows(rows, s, field, fill);
  return static_cast<double>(labels);
}

DecoderInputs decoder_inputs(const Batch& batch, const std::string& prefix) {
  return {batch[prefix + "input_ids"], batch[prefix + "positions"], {}};
}

Tensor token_log_probs(const Model& model, const ParamTree& params, const Batch& batch,
                       const ApplyOptions& options, const std::string& prefix) {
  const Tensor logits = model.apply(params, decoder_inputs(batch, prefix), options);
  return -cross_entropy(logits, batch[prefix + "labels"]);
}

std::vector<i32> prompt_ids(const Tokenizer& tokenizer, const Record& record, const std::string& prompt) {
  std::vector<i32> ids = ExampleLines::prompt_ids(tokenizer, prompt);
  if (!ids.empty()) return ids;
  const SpecialIds special = tokenizer.special();
  if (!special.bos && !special.eos) record.fail("the prompt is empty, and no token begins a text");
  return {special.bos ? *special.bos : *special.eos};
}

FixedModel reference_model(const Pipeline& pipeline, const ParamTree& params) {
  if (params.has_adapters()) return {*pipeline.model, params.without_adapters()};
  return {*pipeline.named_model("reference").model, params.part("reference")};
}

Tensor log_sigmoid(const Tensor& x) { return -softplus(-x); }

}  // namespace redco
