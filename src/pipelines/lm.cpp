// Causal language modelling: every token but a window's first is a target.
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
  // Example.ids["tokens"]: a window of length + 1 tokens.
  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    std::vector<Example> rows(mine.size());
    double targets = 0;
    for (size_t r = 0; r < mine.size(); ++r) {
      const auto& tokens = mine[r].ids.at("tokens");
      rows[r].ids["input_ids"].assign(tokens.begin(), tokens.end() - 1);
      rows[r].ids["labels"].assign(tokens.begin() + 1, tokens.end());
      targets += static_cast<double>(tokens.size() - 1);
    }
    const std::vector<i32> ones(s.length, 1), positions = model->positions(ones, false);
    for (Example& row : rows) row.ids["positions"] = positions;
    Batch b;
    b.shape = s;
    b.fields["input_ids"] = id_rows(rows, s, "input_ids", 0);  // right padding is seen by padding only
    b.fields["labels"] = id_rows(rows, s, "labels", -100);
    b.fields["positions"] = id_rows(rows, s, "positions", 0);
    b.weights["loss"] = targets;
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const Tensor logits = model->apply(params, {batch["input_ids"], batch["positions"], {}}, ctx.apply);
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
};

}  // namespace

std::unique_ptr<Pipeline> make_lm_pipeline() { return std::make_unique<LanguageModelling>(); }

}  // namespace redco
