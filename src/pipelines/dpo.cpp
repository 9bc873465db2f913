// Preference optimization: DPO (Rafailov et al. 2023) and its relatives, see preference_losses.h.
//
// The reference is the model that the training begins with: the frozen model `reference`, or with LoRA the
// model without its adapters.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipeline/chat_records.h"
#include "pipeline/token_rows.h"
#include "pipelines/pipelines.h"
#include "pipelines/preference_losses.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

constexpr const char* kAnswers[2] = {"chosen", "rejected"};

std::vector<i32> joined(std::vector<i32> prompt, const std::vector<i32>& answer) {
  prompt.insert(prompt.end(), answer.begin(), answer.end());
  return prompt;
}

class PreferenceOptimization : public Pipeline {
 public:
  // Records of pipeline/chat_records.h. ids["prompt"], ids["chosen"] and ids["rejected"]; both answers follow
  // the prompt. Long pairs lose the beginning of their prompt, and answers that are longer than the row
  // their end. KTO: ids["prompt"] and ids["answer"]; ids["other_prompt"] and ids["other"], the prompt and
  // the answer of the record before (absent in the first record); values["sign"].
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    return judges() ? open_judged(request) : open_pairs(request);
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    if (judges()) {
      collate_judged(mine, b);
    } else {
      collate_pairs(mine, b);
    }
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    return judges() ? judged_loss(params, batch, ctx) : pair_loss(params, batch, ctx);
  }
  std::string unit() const override { return judges() ? "answers" : "pairs"; }

  // ORPO minimizes two means: that of the pairs, and that of the chosen texts' tokens.
  std::vector<ParamGroup> groups() const override {
    std::vector<ParamGroup> all = Pipeline::groups();
    if (has_nll())
      for (ParamGroup& g : all) g.plus = {{"nll", 1}};
    return all;
  }

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
  const DpoSettings& options() const { return settings->dpo; }
  bool judges() const { return options().loss_type == "kto"; }
  bool has_nll() const { return options().loss_type == "orpo"; }

  // --- pairs ---

  std::shared_ptr<const Dataset> open_pairs(const DataRequest& request) const {
    const ChatTemplate* chat = settings->chat_template.get();
    bool warned = chat == nullptr;
    return read_chat_records(request, settings->data, [&](const Record& r) {
      Preference p = preference_of_record(*tokenizer, chat, r);
      if (!std::exchange(warned, true)) warn_of_plain_prompt(r);
      for (std::vector<i32>& answer : p.answers) fit_answer(p.prompt, answer, request.max_length);
      Example e;
      for (const int k : {0, 1}) e.ids[kAnswers[k]] = joined(p.prompt, p.answers[k]);
      e.text = std::move(p.chosen);
      e.ids["prompt"] = std::move(p.prompt);
      return e;
    });
  }

  void collate_pairs(std::span<const Example> mine, Batch& b) const {
    for (const char* answer : kAnswers) {
      std::vector<TokenRow> rows;
      std::vector<float> share;  // [rows]: 1 / tokens of the answer
      for (const Example& e : mine) {
        const auto& ids = e.ids.at(answer);
        const std::size_t first = e.ids.at("prompt").size();
        rows.push_back({ids, static_cast<i64>(first)});
        share.push_back(1 / static_cast<float>(ids.size() - first));
      }
      const std::string prefix = std::string(answer) + ".";
      add_token_rows(b, *model, rows, prefix);
      b.fields[prefix + "share"] = from_local_values({b.shape.rows}, share);
      if (!has_nll() || answer != kAnswers[0]) continue;
      for (TokenRow& row : rows) row.first = 1;
      b.weights["nll"] = add_token_rows(b, *model, rows, "text.");
    }
    for (const char* term : {"loss", "accuracy", "margin", "chosen_reward", "rejected_reward"})
      b.weights[term] = static_cast<double>(mine.size());
  }

  LossTerms pair_loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const {
    const DpoSettings& o = options();
    Tensor score[2], nll;  // [B]
    for (const int k : {0, 1}) {
      const auto scope = ctx.scope("answer", k);  // each answer has its own dropout
      const std::string prefix = std::string(kAnswers[k]) + ".";
      Tensor mine;  // [B, T]
      if (has_nll() && k == 0) {
        const Tensor logits = model->apply(params, decoder_inputs(batch, prefix), ctx.apply);
        const Tensor losses = cross_entropy(logits, batch["text.labels"]);  // also of the prompt
        mine = -losses * label_mask(batch[prefix + "labels"], losses.dtype());
        nll = sum_all(losses);
      } else {
        mine = token_log_probs(*model, params, batch, ctx.apply, prefix);
      }
      score[k] = sum(mine, {1});
      if (o.has_reference()) {
        score[k] = score[k] - reference_score(params, batch, prefix);
      } else {
        score[k] = score[k] * batch[prefix + "share"];
      }
    }
    const Tensor losses = pair_losses(o, score[0], score[1]);
    const Tensor margin = stop_gradient(o.beta * (score[0] - score[1]));
    LossTerms terms = {{"loss", sum_all(losses)},
                       {"accuracy", sum_all(compare(Binary::lt, zeros_like(margin), margin))},
                       {"margin", sum_all(margin)},
                       {"chosen_reward", sum_all(stop_gradient(o.beta * score[0]))},
                       {"rejected_reward", sum_all(stop_gradient(o.beta * score[1]))}};
    if (has_nll()) terms.push_back({"nll", nll});
    return terms;
  }

  Tensor reference_score(const ParamTree& params, const Batch& batch, const std::string& prefix) const {
    const FixedModel reference = reference_model(*this, params);
    return stop_gradient(sum(token_log_probs(reference.model, reference.params, batch, {}, prefix), {1}));
  }

  // --- single answers (KTO) ---

  std::shared_ptr<const Dataset> open_judged(DataRequest request) const {
    const ChatTemplate* chat = settings->chat_template.get();
    bool warned = chat == nullptr;
    request.fingerprint += " judged";
    std::vector<i32> before;
    return read_chat_records(request, settings->data, [&](const Record& r) {
      JudgedAnswer a = judged_answer_of_record(*tokenizer, chat, r);
      if (!std::exchange(warned, true)) warn_of_plain_prompt(r);
      Example e;
      if (!before.empty()) {
        e.ids["other_prompt"] = a.prompt;
        fit_answer(e.ids["other_prompt"], before, request.max_length);
        e.ids["other"] = joined(e.ids["other_prompt"], before);
      }
      before = a.answer;
      fit_answer(a.prompt, a.answer, request.max_length);
      e.ids["answer"] = joined(a.prompt, a.answer);
      e.ids["prompt"] = std::move(a.prompt);
      e.values["sign"] = {a.good ? 1.F : -1.F};
      e.text = std::move(a.text);
      return e;
    });
  }

  void collate_judged(std::span<const Example> mine, Batch& b) const {
    std::vector<TokenRow> rows, others;
    std::vector<float> signs, counts;  // [rows]
    double good = 0;
    for (const Example& e : mine) {
      rows.push_back({e.ids.at("answer"), static_cast<i64>(e.ids.at("prompt").size())});
      const bool paired = e.ids.count("other") != 0;
      others.push_back(!paired
                           ? rows.back()
                           : TokenRow{e.ids.at("other"), static_cast<i64>(e.ids.at("other_prompt").size())});
      counts.push_back(paired ? 1 : 0);
      signs.push_back(e.values.at("sign").at(0));
      good += signs.back() > 0;
    }
    add_token_rows(b, *model, rows, "answer.");
    add_token_rows(b, *model, others, "other.");
    b.fields["sign"] = from_local_values({b.shape.rows}, signs);
    b.fields["counts"] = from_local_values({b.shape.rows}, counts);
    const auto n = static_cast<double>(mine.size());
    for (const char* term : {"loss", "accuracy", "kl"}) b.weights[term] = n;
    b.weights["chosen_reward"] = good;
    b.weights["rejected_reward"] = n - good;
  }

  LossTerms judged_loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const {
    const DpoSettings& o = options();
    const Tensor mine = sum(token_log_probs(*model, params, batch, ctx.apply, "answer."), {1});  // [B]
    const Tensor ratio = mine - reference_score(params, batch, "answer.");
    const Tensor z = [&] {
      const NoGrad off;
      const auto scope = ctx.scope("other", 0);  // with its own dropout
      const Tensor other = sum(token_log_probs(*model, params, batch, ctx.apply, "other."), {1});
      return kl_estimate(other - reference_score(params, batch, "other."), batch["counts"]);
    }();
    const Tensor& sign = batch["sign"];
    const Tensor reward = stop_gradient(o.beta * ratio), good = 0.5 * (sign + 1.0);
    return {{"loss", sum_all(judged_losses(o, ratio, sign, z))},
            {"accuracy", sum_all(compare(Binary::lt, zeros_like(reward), reward * sign))},
            {"kl", sum_all(z + zeros_like(reward))},
            {"chosen_reward", sum_all(reward * good)},
            {"rejected_reward", sum_all(reward * (1.0 - good))}};
  }
};

}  // namespace

std::unique_ptr<Pipeline> make_dpo_pipeline() { return std::make_unique<PreferenceOptimization>(); }

}  // namespace redco
