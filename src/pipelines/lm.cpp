// Causal language modelling. B rows, T tokens.
//
// A mixture of experts may have a load-balancing loss (models/router_loss.h). It depends on all tokens of a
// step together, so the pipeline then embeds: embed() gives the sums of each row.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/router_loss.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipeline/embedding_pipeline.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

class LanguageModelling : public EmbeddingPipeline {
 public:
  // Examples of pipeline/lm_dataset.h: input_ids, labels, and samples if data.segmented.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    const bool segmented = settings->data.segmented();
    double targets = 0;
    std::vector<Example> rows(mine.size());
    const std::vector<i32> ones(s.length, 1), positions = model->positions(ones, false);
    for (size_t r = 0; r < mine.size(); ++r) {
      const auto& labels = mine[r].ids.at("labels");
      targets += static_cast<double>(labels.size()) -
                 static_cast<double>(std::count(labels.begin(), labels.end(), kIgnored));
      rows[r].ids["positions"] = segmented ? positions_of(mine[r].ids.at("samples"), positions) : positions;
    }
    Batch b;
    b.shape = s;
    b.fields["input_ids"] = id_rows(mine, s, "input_ids", 0);  // only padding attends to right padding
    b.fields["labels"] = id_rows(mine, s, "labels", kIgnored);
    b.fields["positions"] = id_rows(rows, s, "positions", 0);
    if (segmented) b.fields["samples"] = id_rows(mine, s, "samples", 0);
    b.weights["loss"] = targets;
    if (embeds()) {
      for (size_t r = 0; r < mine.size(); ++r)
        rows[r].ids["key_mask"].assign(mine[r].ids.at("input_ids").size(), 1);
      b.fields["key_mask"] = id_rows(rows, s, "key_mask", 0);
      b.weights[kRouterLossTerm] = static_cast<double>(mine.size());
    }
    return b;
  }

  bool embeds() const override { return model && model->router_loss(); }
  // The sums of each row: "loss"; and in training those of RouterSums.
  Embeddings embed(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    std::vector<Tensor> routers;
    ApplyOptions o = ctx.apply;
    if (o.train) o.router_logits = &routers;
    Embeddings out = {{"loss", sum(token_losses(params, batch, o), {1})}};
    if (!o.train) return out;
    const RouterSums s = router_sums(routers, model->router_loss()->per_token, batch["key_mask"]);
    out.insert({{"chosen", s.chosen}, {"probabilities", s.probabilities}, {"tokens", s.tokens}});
    return out;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    if (!embeds()) return {{"loss", sum_all(token_losses(params, batch, ctx.apply))}};
    // A pipeline that is made of this one may ask for the loss of a micro-batch.
    Embeddings rows = batch.fields.contains("loss") ? batch.fields : embed(params, batch, ctx);
    LossTerms terms = {{"loss", sum_all(rows.at("loss"))}};
    if (!ctx.apply.train) return terms;
    const Tensor mean = load_balancing_loss({rows.at("chosen"), rows.at("probabilities"), rows.at("tokens")});
    terms.push_back({kRouterLossTerm, scale(mean, static_cast<double>(batch.shape.rows))});
    return terms;
  }
  std::vector<ParamGroup> groups() const override {
    std::vector<ParamGroup> all = Pipeline::groups();
    if (embeds())
      for (ParamGroup& g : all) g.plus = {{kRouterLossTerm, model->router_loss()->coefficient}};
    return all;
  }
  std::string unit() const override { return "tokens"; }

  const ModelParams& params() const override {
    require_causal_lm(*model, "lm");
    return Pipeline::params();
  }

  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return {{"loss", means.at("loss")}, {"perplexity", std::exp(means.at("loss"))}};
  }

  // Example.ids["prompt"], else the first half of its input_ids -> {"prediction": text, "ids": [...], ...}:
  // see predict_text().
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::vector<Example> asked;
    for (const Example& e : examples) {
      Example& a = asked.emplace_back();
      a.ordinal = e.ordinal;
      a.ids["prompt"] = prompt_of(e);
    }
    return predict_text(*model, *tokenizer, params, asked, settings->generation, ctx);
  }

  // {"id", "prompt": text, "prediction", ..., "reference": the text in the data}
  std::string output(const Example& example, const std::string& prediction) const override {
    using Json = nlohmann::ordered_json;
    const Json answer = Json::parse(Pipeline::output(example, prediction));
    const std::vector<i32> prompt = prompt_of(example);
    const auto ids = example.ids.find("input_ids");
    Json j = {{"id", answer.at("id")}, {"prompt", tokenizer->decode(prompt, true)}};
    j.update(answer);
    j["reference"] =
        example.ids.count("prompt") || ids == example.ids.end()
            ? example.text
            : tokenizer->decode(
                  {ids->second.begin() + static_cast<std::ptrdiff_t>(prompt.size()), ids->second.end()},
                  true);
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  bool predicts_any_number() const override { return true; }

 private:
  static constexpr i32 kIgnored = -100;

  // [B, T]: cross-entropy; 0 where the label is ignored.
  Tensor token_losses(const ParamTree& params, const Batch& batch, ApplyOptions o) const {
    const auto samples = batch.fields.find("samples");
    o.segmented = samples != batch.fields.end();
    const Tensor logits = model->apply(
        params, {batch["input_ids"], batch["positions"], o.segmented ? samples->second : Tensor()}, o);
    const Scope s("cross-entropy");
    return cross_entropy(logits, batch["labels"], o.train ? settings->train.label_smoothing : 0);
  }

  // Windows of text have no prompt: the first half is the prompt, the second half the reference.
  static std::vector<i32> prompt_of(const Example& e) {
    if (const auto it = e.ids.find("prompt"); it != e.ids.end()) return it->second;
    const auto& ids = e.ids.at("input_ids");
    return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>((ids.size() + 1) / 2)};
  }

  // Positions restart with each sample. `from_start`: positions of a row with one sample.
  static std::vector<i32> positions_of(const std::vector<i32>& samples, const std::vector<i32>& from_start) {
    std::vector<i32> out(samples.size());
    size_t begin = 0;
    for (size_t t = 0; t < samples.size(); ++t) {
      if (samples[t] != samples[begin]) begin = t;
      out[t] = from_start[t - begin];
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<Pipeline> make_lm_pipeline() { return std::make_unique<LanguageModelling>(); }

}  // namespace redco
