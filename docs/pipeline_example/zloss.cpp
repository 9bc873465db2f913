// Language modelling with a z-loss (Chowdhery et al. 2022). It pulls the logarithm of the softmax's
// denominator towards 0, so that logits do not drift. Written for one device; runs on any mesh.
#include <algorithm>

#include "redco.h"

using namespace redco;

class ZLoss : public Pipeline {
  // Rows of tokens and their next tokens -> tensors of the global shape, of which each replica gives its
  // rows, and the weight of each term.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.size());
    Batch b;
    b.shape = s;
    b.weights["loss"] = 0;  // every term, also on a replica without rows
    for (size_t r = 0; r < mine.size(); ++r) {
      const std::vector<i32>& labels = mine[r].ids.at("labels");
      rows[r].ids["positions"] = model->positions(std::vector<i32>(s.length, 1), false);
      b.weights["loss"] +=
          static_cast<double>(std::count_if(labels.begin(), labels.end(), [](i32 i) { return i >= 0; }));
    }
    b.fields["input_ids"] = id_rows(mine, s, "input_ids", 0);
    b.fields["labels"] = id_rows(mine, s, "labels", -100);  // below 0: no target
    b.fields["positions"] = id_rows(rows, s, "positions", 0);
    return b;
  }

  // Sums, not means: the Trainer divides once, by the weight of all replicas and micro-batches.
  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const Tensor logits =
        model->apply(params, {batch["input_ids"], batch["positions"], {}}, ctx.apply);  // [B, T, V]
    const Tensor nll = cross_entropy(logits, batch["labels"]);                          // [B, T]
    // log sum exp = nll + the label's logit; 0 for positions without a label
    const Tensor z = nll + pick(logits, batch["labels"]);
    return {{"loss", sum_all(nll + 1e-4 * square(z))}};
  }

  // One JSON object per example: the text generated after its prompt, with the settings of predict or
  // eval.generation.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::vector<Example> asked(examples.begin(), examples.end());
    for (Example& e : asked)  // windows of text have no prompt: use their first half
      if (!e.ids.count("prompt"))
        e.ids["prompt"].assign(e.ids["input_ids"].begin(),
                               e.ids["input_ids"].begin() + e.ids["input_ids"].size() / 2);
    return predict_text(*model, *tokenizer, params, asked, settings->generation, ctx);
  }
  bool predicts_any_number() const override { return true; }
};

REDCO_PIPELINE(ZLoss)
