// Reward models (Ouyang et al. 2022): a score r for a prompt and its answer, from pairs of answers of which
// people prefer one (Bradley & Terry 1952).
//
//   loss of a pair = -log sigmoid(r(chosen) - r(rejected) - margin) + c (r(chosen) + r(rejected))^2
//
// margin: that of the record (Touvron et al. 2023), 0 without one; c: center_rewards_coefficient. The model
// is transformers' class for sequence classification with one label.
#include <utility>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipeline/chat_records.h"
#include "pipeline/text_scores.h"
#include "pipeline/token_rows.h"
#include "pipelines/answer_values.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"

namespace redco {

namespace {

class RewardModel : public Pipeline {
 public:
  // Records of pipeline/chat_records.h, with an optional number "margin". ids["chosen"] and ids["rejected"]:
  // prompt and answer. Long texts lose the beginning of their prompt.
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    const ChatTemplate* chat = settings->chat_template.get();
    bool warned = chat == nullptr;
    DataRequest own = request;
    if (chat) own.fingerprint += " whole conversations";
    return read_chat_records(own, settings->data, [&](const Record& r) {
      Preference p = preference_of_record(*tokenizer, chat, r);
      if (!std::exchange(warned, true)) warn_of_plain_prompt(r);
      Example e;
      for (const int k : {0, 1}) e.ids[kScored[k]] = text_of(p, k, request.max_length);
      e.values["margin"] = {r.has("margin") ? static_cast<float>(r.number("margin")) : 0.F};
      e.text = std::move(p.chosen);
      return e;
    });
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    for (const char* answer : kScored) {
      std::vector<std::vector<i32>> rows;
      for (const Example& e : mine) rows.push_back(e.ids.at(answer));
      add_text_rows(b, rows, std::string(answer) + ".");
    }
    b.fields["margin"] = value_rows(mine, s, "margin", {});
    for (const char* term : {"loss", "accuracy", "margin", "chosen_reward", "rejected_reward"})
      b.weights[term] = static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    Tensor r[2];  // [B]
    for (const int k : {0, 1}) {
      const auto scope = ctx.scope("answer", k);  // each answer has its own dropout
      r[k] = text_scores(*model, params, batch, ctx.apply, std::string(kScored[k]) + ".");
    }
    const Tensor apart = r[0] - r[1];
    Tensor losses = -log_sigmoid(apart - batch["margin"]);
    if (const double c = settings->reward.center_rewards_coefficient; c > 0)
      losses = losses + c * square(r[0] + r[1]);
    const Tensor margin = stop_gradient(apart);
    return {{"loss", sum_all(losses)},
            {"accuracy", sum_all(compare(Binary::lt, zeros_like(margin), margin))},
            {"margin", sum_all(margin)},
            {"chosen_reward", sum_all(stop_gradient(r[0]))},
            {"rejected_reward", sum_all(stop_gradient(r[1]))}};
  }
  std::string unit() const override { return "pairs"; }

  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    return wanted_metrics("reward", settings->eval.metrics, means);
  }

  // {"chosen", "rejected"} as in training; {"prompt", "completion"}, {"messages"}, or a text {"prompt"} that
  // is scored unchanged.
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    const Record r(json, where);
    Example e;
    if (r.has(kScored[0]) && r.has(kScored[1])) {
      const Preference p = preference_of_record(*tokenizer, settings->chat_template.get(), r);
      for (const int k : {0, 1}) e.ids[kScored[k]] = text_of(p, k, max_length());
      return e;
    }
    e.ids["text"] = scored_ids_of_record(*tokenizer, settings->chat_template.get(), r);
    if (auto& ids = e.ids["text"]; static_cast<i64>(ids.size()) > max_length())
      ids.erase(ids.begin(), ids.end() - max_length());
    return e;
  }

  // {"prediction": the score}; of a pair the scores of both answers, {"prediction": [chosen, rejected]}
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext&) const override {
    std::vector<std::vector<i32>> texts;
    for (const Example& e : examples)
      for (const char* name : {"text", kScored[0], kScored[1]})
        if (const auto ids = e.ids.find(name); ids != e.ids.end()) texts.push_back(ids->second);
    const std::vector<double> scores = answer_values(text_scores(*model, params, texts));
    std::vector<std::string> out;
    std::size_t next = 0;
    for (const Example& e : examples) {
      const auto score = [&] { return json_number(static_cast<float>(scores[next++])); };
      std::string prediction = score();
      if (!e.ids.count("text")) prediction = fmt::format("[{},{}]", prediction, score());
      out.push_back(fmt::format(R"({{"prediction":{}}})", prediction));
    }
    return out;
  }

  const ModelParams& params() const override {
    require_text_scorer(*model, "pipeline: reward");
    return Pipeline::params();
  }

 private:
  static constexpr const char* kScored[2] = {"chosen", "rejected"};
  i64 max_length() const { return settings->data.max_length.value_or(model->max_length()); }
  // The whole conversation, as apply_chat_template() of transformers gives it.
  static std::vector<i32> text_of(const Preference& p, int k, i64 most) {
    std::vector<i32> text = p.prompt, answer = p.answers[k];
    fit_answer(text, answer, most - std::ssize(p.tail));
    text.insert(text.end(), answer.begin(), answer.end());
    text.insert(text.end(), p.tail.begin(), p.tail.end());
    return text;
  }
};

}  // namespace

std::unique_ptr<Pipeline> make_reward_pipeline() { return std::make_unique<RewardModel>(); }

}  // namespace redco
