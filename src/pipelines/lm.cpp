// Causal language modelling.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "generate/generate.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

class LanguageModelling : public Pipeline {
 public:
  // Examples as train/lm_dataset.h gives them: input_ids, labels, and samples where data.segmented.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    const bool segmented = rows_are_segmented();
    double targets = 0;
    std::vector<Example> rows(mine.size());
    const std::vector<i32> ones(s.length, 1), positions = model->positions(ones, false);
    for (size_t r = 0; r < mine.size(); ++r) {
      const auto& labels = mine[r].ids.at("labels");
      targets += static_cast<double>(labels.size()) -
                 static_cast<double>(std::count(labels.begin(), labels.end(), kIgnored));
      rows[r].ids["positions"] =
          segmented ? positions_of(mine[r].ids.at("samples"), positions) : positions;
    }
    Batch b;
    b.shape = s;
    b.fields["input_ids"] = id_rows(mine, s, "input_ids", 0);  // right padding is seen by padding only
    b.fields["labels"] = id_rows(mine, s, "labels", kIgnored);
    b.fields["positions"] = id_rows(rows, s, "positions", 0);
    if (segmented) b.fields["samples"] = id_rows(mine, s, "samples", 0);
    b.weights["loss"] = targets;
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const auto samples = batch.fields.find("samples");
    ApplyOptions o = ctx.apply;
    o.segmented = samples != batch.fields.end();
    const Tensor logits = model->apply(
        params, {batch["input_ids"], batch["positions"], o.segmented ? samples->second : Tensor()}, o);
    Scope s("cross-entropy");
    return {{"loss", sum_all(cross_entropy(logits, batch["labels"]))}};
  }

  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return {{"loss", means.at("loss")}, {"perplexity", std::exp(means.at("loss"))}};
  }

  // Example.ids["prompt"] -> {"prediction": text, "ids": [...]}.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext&) const override {
    const auto settings = nlohmann::json::parse(settings_json).at("predict");
    GenerationSettings g;
    g.max_new_tokens = settings.at("max_new_tokens");
    g.temperature = settings.at("temperature");
    g.top_k = settings.at("top_k").is_null() ? 0 : settings.at("top_k").get<i64>();
    g.top_p = settings.at("top_p");
    g.seed = settings.at("seed");
    g.eos_ids = settings.at("eos_ids").get<std::vector<i32>>();
    g.pad_id = settings.at("pad_id");
    std::vector<std::vector<i32>> prompts;
    std::vector<i64> ordinals;
    for (const Example& e : examples) {
      prompts.push_back(e.ids.at("prompt"));
      ordinals.push_back(e.ordinal);
    }
    std::vector<std::string> out;
    for (auto& ids : generate(*model, params, prompts, ordinals, g)) {
      const nlohmann::ordered_json j = {{"prediction", tokenizer->decode(ids, true)}, {"ids", ids}};
      out.push_back(j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    }
    return out;
  }

 private:
  static constexpr i32 kIgnored = -100;

  bool rows_are_segmented() const {
    const auto settings = nlohmann::json::parse(settings_json);
    return settings.contains("data") && settings["data"].value("segmented", false);
  }

  // They begin anew with each sample. `from_start`: those of a row of one sample.
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
