// Direct preference optimization (Rafailov et al. 2023), with IPO (Azar et al. 2024) as a setting.
//
//   h = (log p(chosen) - log p(rejected)) - (the reference's difference)   of each pair
//   sigmoid: -(1 - s) log sigmoid(beta h) - s log sigmoid(-beta h)        s: label_smoothing
//   ipo:     (h - 1 / (2 beta))^2
//
// The reference is the model that the training begins with: the frozen model `reference`, or with LoRA the
// model without its adapters.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipeline/chat_records.h"
#include "pipeline/token_rows.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

class PreferenceOptimization : public Pipeline {
 public:
  // Records of pipeline/chat_records.h. ids["prompt"], ids["chosen"] and ids["rejected"]; both answers follow
  // the prompt. Long pairs lose the beginning of their prompt, and
  // answers that are longer than the row their end.
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    const ChatTemplate* chat = settings->chat_template.get();
    bool warned = chat == nullptr;
    return read_records(request, settings->data, [&](const Record& r) {
      Preference p = preference_of_record(*tokenizer, chat, r);
      if (!std::exchange(warned, true)) warn_of_plain_prompt(r);
      i64 longest = 0;
      for (std::vector<i32>& answer : p.answers) {
        if (static_cast<i64>(answer.size()) >= request.max_length)
          answer.resize(static_cast<size_t>(request.max_length - 1));
        longest = std::max(longest, static_cast<i64>(answer.size()));
      }
      const i64 room = request.max_length - longest;
      if (static_cast<i64>(p.prompt.size()) > room) p.prompt.erase(p.prompt.begin(), p.prompt.end() - room);
      Example e;
      for (const int k : {0, 1}) {
        std::vector<i32>& ids = e.ids[kAnswers[k]];
        ids = p.prompt;
        ids.insert(ids.end(), p.answers[k].begin(), p.answers[k].end());
      }
      e.text = std::move(p.chosen);
      e.ids["prompt"] = std::move(p.prompt);
      return e;
    });
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    for (const char* answer : kAnswers) {
      std::vector<TokenRow> rows;
      for (const Example& e : mine)
        rows.push_back({e.ids.at(answer), static_cast<i64>(e.ids.at("prompt").size())});
      add_token_rows(b, *model, rows, std::string(answer) + ".");
    }
    for (const char* term : {"loss", "accuracy", "margin", "chosen_reward", "rejected_reward"})
      b.weights[term] = static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    const DpoSettings& o = settings->dpo;
    const FixedModel reference = reference_model(*this, params);
    Tensor reward[2];  // [B]: log-ratio to the reference, of the chosen and the rejected answer
    for (const int k : {0, 1}) {
      const auto scope = ctx.scope("answer", k);  // each answer has its own dropout
      const std::string prefix = std::string(kAnswers[k]) + ".";
      const Tensor mine = sum(token_log_probs(*model, params, batch, ctx.apply, prefix), {1});
      const Tensor theirs = sum(token_log_probs(reference.model, reference.params, batch, {}, prefix), {1});
      reward[k] = mine - stop_gradient(theirs);
    }
    const Tensor h = reward[0] - reward[1];
    const Tensor losses = o.loss_type == "ipo" ? square(add_scalar(h, -0.5 / o.beta))
                                               : (o.label_smoothing - 1) * log_sigmoid(o.beta * h) -
                                                     o.label_smoothing * log_sigmoid(-o.beta * h);
    const Tensor margin = stop_gradient(o.beta * h);
    return {{"loss", sum_all(losses)},
            {"accuracy", sum_all(compare(Binary::lt, zeros_like(margin), margin))},
            {"margin", sum_all(margin)},
            {"chosen_reward", sum_all(stop_gradient(o.beta * reward[0]))},
            {"rejected_reward", sum_all(stop_gradient(o.beta * reward[1]))}};
  }
  std::string unit() const override { return "pairs"; }

  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return wanted_metrics("dpo", settings->eval.metrics, means);
  }

  // An answer to each prompt, as pipeline lm.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    return predict_text(*model, *tokenizer, params, examples, settings->generation, ctx);
  }
  bool predicts_any_number() const override { return true; }

  const ModelParams& params() const override {
    require_causal_lm(*model, "dpo");
    return Pipeline::params();
  }

 private:
  static constexpr const char* kAnswers[2] = {"chosen", "rejected"};
};

}  // namespace

std::unique_ptr<Pipeline> make_dpo_pipeline() { return std::make_unique<PreferenceOptimization>(); }

}  // namespace redco
