// Language modelling with a z-loss (Chowdhery et al. 2022): the log of the softmax's denominator is pulled
// towards 0, which keeps logits from drifting. Written for one device; runs on any mesh.
#include <fmt/ranges.h>

#include "generate/generate.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "train/pipeline.h"

using namespace redco;

class ZLoss : public Pipeline {
  // Rows of tokens -> tensors of the global shape, each replica giving its own rows; and what each term is to
  // be divided by.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.size());
    Batch b;
    b.shape = s;
    b.weights["loss"] = 0;  // a replica may have no rows, but has every term
    for (size_t r = 0; r < mine.size(); ++r) {
      const std::vector<i32>& tokens =
          mine[r].ids.at("tokens");  // a window of the text, one token more than targets
      rows[r].ids["input_ids"].assign(tokens.begin(), tokens.end() - 1);
      rows[r].ids["labels"].assign(tokens.begin() + 1, tokens.end());
      rows[r].ids["positions"] = model->positions(std::vector<i32>(s.length, 1), false);
      b.weights["loss"] += static_cast<double>(tokens.size() - 1);
    }
    b.fields["input_ids"] = id_rows(rows, s, "input_ids", 0);
    b.fields["labels"] = id_rows(rows, s, "labels", -100);  // below 0: no target
    b.fields["positions"] = id_rows(rows, s, "positions", 0);
    return b;
  }

  // Sums, not means: the Trainer divides once, by the weight of all replicas and micro-batches.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const Tensor logits =
        model->apply(params, {batch["input_ids"], batch["positions"], {}}, ctx.apply);  // [B, T, V]
    const Tensor nll = cross_entropy(logits, batch["labels"]);                          // [B, T]
    const Tensor z =
        nll +
        pick(logits, batch["labels"]);  // log sum exp: nll = z - logit of the label; 0 where there is none
    return {{"loss", sum_all(nll + 1e-4 * square(z))}};
  }

  // One JSON object an example.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext&) const override {
    std::vector<std::vector<i32>> prompts;
    std::vector<i64> ordinals;
    for (const Example& e : examples) {
      prompts.push_back(e.ids.at("prompt"));
      ordinals.push_back(e.ordinal);
    }
    std::vector<std::string> out;
    for (const auto& ids : generate(*model, params, prompts, ordinals, {.max_new_tokens = 32}))
      out.push_back(fmt::format("{{\"ids\": [{}]}}", fmt::join(ids, ", ")));
    return out;
  }
};

REDCO_PIPELINE(ZLoss)
