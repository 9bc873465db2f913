// Group relative policy optimization (Shao et al. 2024): reinforcement learning from rewards that a program
// can verify. An epoch samples a group of answers to each of some prompts, then trains on them:
//
//   A = (reward - mean of the group) / (its standard deviation + 1e-4)        of each answer
//   loss of a token = -min(r A, clip(r, 1 - epsilon, 1 + epsilon_high) A) + beta KL
//   r = p(token) / p_sampled(token),  KL = p_ref / p - log(p_ref / p) - 1     (Schulman 2020)
//
// loss_type grpo takes the mean over an answer's tokens, then over answers; dapo over all tokens of the
// batch (Yu et al. 2025); dr_grpo divides each answer's sum by max_new_tokens (Liu et al. 2025).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "pipeline/chat_records.h"
#include "pipeline/rewards.h"
#include "pipeline/rollouts.h"
#include "pipeline/token_rows.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

class Grpo : public Pipeline {
 public:
  // {"prompt", "completion"}: texts or messages; the completion is the answer that is rewarded.
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    const ChatTemplate* chat = settings->chat_template.get();
    bool warned = chat == nullptr;
    return read_records(request, settings->data, [&](const Record& r) {
      Example e;
      e.ids["prompt"] = prompt_of_record(*tokenizer, chat, r);
      if (!std::exchange(warned, true)) warn_of_plain_prompt(r);
      e.text = answer_text(r, "completion");
      return e;
    });
  }

  std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx) override {
    return answers_.source(ctx, "grpo", settings->grpo.num_iterations,
                           [&] { return roll_out(params, ctx.epoch); });
  }
  std::map<std::string, double> notes() const override { return answers_.notes(); }
  std::string state() const override { return answers_.state(); }
  void restore(const std::string& json) override { answers_.restore(json); }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    const GrpoSettings& o = settings->grpo;
    Batch b;
    b.shape = s;
    std::vector<TokenRow> rows;
    std::vector<float> advantages;                       // [rows]
    std::vector<float> sampled(mine.size() * s.length),  // [rows, length]: log-probabilities
        share(mine.size() * s.length);                   // of each label in the loss
    for (std::size_t r = 0; r < mine.size(); ++r) {
      const auto& ids = mine[r].ids.at("answer");
      const auto& log_probs = mine[r].values.at("log_probs");
      const i64 first = static_cast<i64>(ids.size() - log_probs.size());
      rows.push_back({ids, first});
      advantages.push_back(mine[r].values.at("advantage")[0]);
      const double n = static_cast<double>(log_probs.size());
      for (std::size_t t = 0; t < log_probs.size(); ++t) {
        const std::size_t at = r * s.length + first - 1 + t;
        sampled[at] = log_probs[t];
        share[at] = static_cast<float>(o.loss_type == "grpo"      ? 1 / n
                                       : o.loss_type == "dr_grpo" ? 1. / static_cast<double>(o.max_new_tokens)
                                                                  : 1);
      }
    }
    const double tokens = add_token_rows(b, *model, rows);
    b.fields["advantage"] = from_local_values({s.rows, 1}, advantages);
    b.fields["sampled"] = from_local_values({s.rows, s.length}, sampled);
    b.fields["share"] = from_local_values({s.rows, s.length}, share);
    for (const char* term : {"loss", "kl", "clipped"})
      b.weights[term] = o.loss_type == "dapo" ? tokens : static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    const GrpoSettings& o = settings->grpo;
    const Tensor mine = token_log_probs(*model, params, b, ctx.apply);  // [B, T]
    const Tensor ratio = exp(mine - b["sampled"]);
    const Tensor limited = clamp(ratio, 1 - o.epsilon, 1 + o.epsilon_high);
    const Tensor gain = minimum(ratio * b["advantage"], limited * b["advantage"]);
    const Tensor policy = sum_all(gain * b["share"]);
    const Tensor clipped =
        sum_all(compare(Binary::lt, gain, stop_gradient(ratio * b["advantage"])) * b["share"]);
    if (o.beta == 0) return {{"loss", -policy}, {"clipped", clipped}};
    const FixedModel start = reference_model(*this, params);
    const Tensor theirs = token_log_probs(start.model, start.params, b, {});
    const Tensor apart = stop_gradient(theirs) - mine;
    const Tensor kl = sum_all((add_scalar(exp(apart), -1) - apart) * b["share"]);
    return {{"loss", scale(kl, o.beta) - policy}, {"kl", stop_gradient(kl)}, {"clipped", clipped}};
  }
  std::string unit() const override { return "answers"; }

  // An answer to each prompt, as pipeline lm; an evaluation compares it with the example's.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    return predict_text(*model, *tokenizer, params, examples, settings->generation, ctx);
  }
  bool predicts_any_number() const override { return true; }
  bool evaluates_loss() const override { return false; }
  bool measures_outputs() const override { return true; }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    double sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      sum += verified_reward(settings->grpo.reward,
                             Json::parse(outputs[i]).at("prediction").get<std::string>(), examples[i].text);
    return {{"reward", sum / std::max<double>(1, static_cast<double>(outputs.size()))}};
  }

  const ModelParams& params() const override {
    require_causal_lm(*model, "grpo");
    return Pipeline::params();
  }

 private:
  EpochExamples::Made roll_out(const ParamTree& params, i64 epoch) const {
    const GrpoSettings& o = settings->grpo;
    const i64 first = epoch * o.prompts_per_epoch;
    const std::vector<Example> asked = endless_examples(*train_data, first, o.prompts_per_epoch);
    std::vector<std::vector<i32>> prompts;
    for (const Example& e : asked) prompts.push_back(e.ids.at("prompt"));
    TextGeneration g = settings->generation;
    g.settings = {.max_new_tokens = o.max_new_tokens,
                  .temperature = 1,
                  .num_return_sequences = o.num_generations,
                  .seed = static_cast<i64>(Context::current().random.seed)};
    const auto groups = sample(*this, params, prompts, g, first);
    EpochExamples::Made made;
    double total = 0, tokens = 0, ended = 0, mixed = 0;
    for (std::size_t p = 0; p < groups.size(); ++p) {
      std::vector<double> rewards;
      for (const Rollout& r : groups[p]) rewards.push_back(verified_reward(o.reward, r.text, asked[p].text));
      const std::vector<double> advantages = group_advantages(rewards, o.scale_rewards);
      for (const double r : rewards) total += r;
      mixed += std::ranges::any_of(advantages, [](double a) { return a != 0; });
      for (std::size_t i = 0; i < groups[p].size(); ++i) {
        const Rollout& r = groups[p][i];
        Example& e = made.examples.emplace_back();
        e.ids["answer"] = prompts[p];
        e.ids["answer"].insert(e.ids["answer"].end(), r.ids.begin(), r.ids.end());
        e.values["log_probs"] = r.log_probs;
        e.values["advantage"] = {static_cast<float>(advantages[i])};
        tokens += static_cast<double>(r.ids.size());
        ended += r.finish_reason == "eos";
      }
    }
    const auto n = static_cast<double>(made.examples.size()), n_groups = static_cast<double>(groups.size());
    made.notes = {{"reward", total / n},
                  {"answer_length", tokens / n},
                  {"ended", ended / n},
                  {"mixed_groups", mixed / n_groups}};
    return made;
  }

  EpochExamples answers_;
};

}  // namespace

std::unique_ptr<Pipeline> make_grpo_pipeline() { return std::make_unique<Grpo>(); }

}  // namespace redco
