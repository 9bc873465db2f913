#include "verify/sentences.h"

#include <algorithm>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "pipelines/pooling.h"
#include "pipelines/sentence_folder.h"

namespace redco {

namespace {

constexpr double kScale = 20;  // the default of MultipleNegativesRankingLoss

// The number of tokens of each row of a mask.
std::vector<i64> lengths_of(const Expected& e, const std::string& mask, const Shape& shape) {
  if (e.shape(mask) != shape)
    throw ContentsError("[verify] {}: '{}' has shape {}, its ids have {}", e.path(), mask,
                        to_string(e.shape(mask)), to_string(shape));
  const std::vector<i32> values = e.ids(mask);
  std::vector<i64> out;
  for (auto row = values.begin(); row != values.end(); row += shape[1]) {
    const i64 n = std::count(row, row + shape[1], 1);
    if (std::find(row, row + shape[1], 0) != row + n)
      throw ContentsError("[verify] {}: '{}' must be 1 for a row's tokens and 0 for padding after them",
                          e.path(), mask);
    out.push_back(n);
  }
  return out;
}

}  // namespace

Sentences read_sentences(const Model& model, const std::string& folder, const Expected& e) {
  Sentences in;
  if (model.task() != ModelTask::feature_extraction || !e.has("positive_input_ids")) return in;
  const Shape texts = e.shape("input_ids"), positives = e.shape("positive_input_ids");
  if (positives.size() != 2 || positives[0] != texts[0])
    throw ContentsError("[verify] {}: 'positive_input_ids' has shape {}, but there are {} texts", e.path(),
                        to_string(positives), texts[0]);
  e.check_ids("positive_input_ids", model.vocab_size());
  const SentenceFolder modules = read_sentence_folder(folder);
  if (!modules.dense.empty())
    throw ContentsError("[verify] {}: the module {} is not supported here", folder, modules.dense[0].folder);
  in.pooling = modules.pooling;
  if (in.pooling.empty()) in.pooling = {"mean"};
  const Context& c = Context::current();
  const auto weigh = [&](const std::string& prefix, const Shape& shape) {
    const std::vector<i64> all = lengths_of(e, prefix + "attention_mask", shape);
    in.weights.shape = {.rows = shape[0],
                        .mine = shard_range(shape[0], 1, c.mesh().dp(), c.coord().dp()),
                        .length = shape[1]};
    const Range mine = in.weights.shape.mine;
    const std::vector<i64> tokens(all.begin() + mine.begin, all.begin() + mine.end), skip(tokens.size());
    add_pooling_weights(in.weights, prefix, in.pooling, tokens, skip);
  };
  weigh("", texts);
  weigh("positive_", positives);
  in.positives = {.input_ids = from_ids(positives, e.ids("positive_input_ids"), batch_layout()),
                  .key_mask = from_ids(positives, e.ids("positive_attention_mask"), batch_layout())};
  return in;
}

Tensor sentence_logits(const Model& model, const ParamTree& params, const Sentences& in, const Tensor& hidden,
                       std::map<std::string, Tensor>* values) {
  const Tensor pooled = pool(hidden, in.weights, "", in.pooling), texts = unit_rows(pooled);
  const Tensor positives =
      unit_rows(pool(model.apply_encoder(params, in.positives, {}), in.weights, "positive_", in.pooling));
  if (values) {
    (*values)["mean_pooled"] = pooled;
    (*values)["embeddings"] = texts;
    (*values)["positive_embeddings"] = positives;
  }
  return scale(matmul(texts, positives, false, true), kScale);
}

}  // namespace redco
