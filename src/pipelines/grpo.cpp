// Group relative policy optimization (Shao et al. 2024): reinforcement learning from rewards that a
// program can verify. An epoch samples a group of answers to each of some prompts, then trains on them:
//
//   A = (reward - mean of the group) / (its standard deviation + 1e-4)        of each answer
//   loss of a token = -min(r A, clip(r, 1 - epsilon, 1 + epsilon_high) A) + beta KL
//   r = p(token) / p_sampled(token), or its geometric mean over the answer (importance_sampling_level)
//   KL = p_ref / p - log(p_ref / p) - 1     (Schulman 2020)
//
// loss_type grpo takes the mean over an answer's tokens, then over answers; dapo over all tokens of the
// batch (Yu et al. 2025); dr_grpo divides each answer's sum by max_new_tokens (Liu et al. 2025).
#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "pipeline/answer_rewards.h"
#include "pipeline/chat_records.h"
#include "pipeline/rewards.h"
#include "pipeline/rollouts.h"
#include "pipeline/text_scores.h"
#include "pipeline/token_rows.h"
#include "pipelines/pipelines.h"
#include "pipelines/text_generation.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// The record with its prompt and expected answer under these names: "question" and "answer", as in GSM8K, or
// "problem", "ground_truth" or "solution" are read where they are missing. Commands get the model's answer as
// "answer".
Record with_usual_keys(const Record& r) {
  Json j = Json::parse(r.json());
  for (const auto& [known, usual] :
       {std::pair("question", "prompt"), std::pair("problem", "prompt"), std::pair("answer", "completion"),
        std::pair("ground_truth", "completion"), std::pair("solution", "completion")})
    if ((!j.contains(usual) || j[usual].is_null()) && r.has(known)) {
      j[usual] = j[known];
      j.erase(known);
    }
  return Record(j.dump(-1, ' ', false, Json::error_handler_t::replace), r.where());
}

class Grpo : public Pipeline {
 public:
  // {"prompt", "completion"}: texts or messages; the completion is what the rewards of rewards.h compare
  // with. The example's text is the whole record.
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    const ChatTemplate* chat = settings->chat_template.get();
    bool warned = chat == nullptr;
    return read_chat_records(request, settings->data, [&](const Record& record) {
      const Record r = with_usual_keys(record);
      Example e;
      e.ids["prompt"] = prompt_of_record(*tokenizer, chat, r);
      if (!std::exchange(warned, true)) warn_of_plain_prompt(r);
      if (rewards().verifies() && !r.has("completion"))
        r.fail(
            "no \"completion\", which grpo.reward compares answers with; data.fields.completion names another key");
      if (r.has("completion")) answer_text(r, "completion");
      e.text = r.json();
      return e;
    });
  }

  std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx) override {
    return answers_.source(ctx, "grpo", settings->grpo.num_iterations,
                           [&] { return roll_out(params, ctx.epoch); });
  }
  PlannedRollouts planned_rollouts() const override {
    const GrpoSettings& o = settings->grpo;
    return {.answers = o.prompts_per_epoch * o.num_generations, .max_new_tokens = o.max_new_tokens};
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
        share(mine.size() * s.length),                   // of each label in the loss
        mean(mine.size() * s.length);                    // 1 / labels of the row, at each label
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
        mean[at] = static_cast<float>(1 / n);
        share[at] = mine[r].values.at("counts")[0] *
                    static_cast<float>(o.loss_type == "grpo"      ? 1 / n
                                       : o.loss_type == "dr_grpo" ? 1. / static_cast<double>(o.max_new_tokens)
                                                                  : 1);
      }
    }
    const double tokens = add_token_rows(b, *model, rows);
    b.fields["advantage"] = from_local_values({s.rows, 1}, advantages);
    b.fields["sampled"] = from_local_values({s.rows, s.length}, sampled);
    b.fields["share"] = from_local_values({s.rows, s.length}, share);
    if (by_sequence()) b.fields["mean"] = from_local_values({s.rows, s.length}, mean);
    for (const char* term : {"loss", "kl", "clipped"})
      b.weights[term] = o.loss_type == "dapo" ? tokens : static_cast<double>(mine.size());
    return b;
  }

  LossTerms loss(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    const GrpoSettings& o = settings->grpo;
    const Tensor mine = token_log_probs(*model, params, b, ctx.apply);  // [B, T]
    const Tensor log_ratio = mine - b["sampled"];
    // [B, T], or [B, 1] of whole answers
    const Tensor whole = exp(by_sequence() ? sum(log_ratio * b["mean"], {1}, true) : log_ratio);
    const Tensor limited = clamp(whole, 1 - o.epsilon, 1 + o.epsilon_high);
    const Tensor ratio = o.delta ? clamp(whole, 0, *o.delta) : whole;
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

  // An answer to each prompt, as pipeline lm. With a reward model also "reward", its score; of several
  // answers the one with the highest score is first (best of n).
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::vector<std::string> out =
        predict_text(*model, *tokenizer, params, examples, settings->generation, ctx);
    if (rewards().has_model())
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = ranked(params, examples[i], out[i]);
    return out;
  }
  std::vector<std::string> predicts_with() const override {
    return rewards().has_model() ? std::vector<std::string>{kRewardModel} : std::vector<std::string>();
  }
  bool predicts_any_number() const override { return true; }
  bool evaluates_loss() const override { return false; }
  bool measures_outputs() const override { return true; }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    std::vector<RewardedAnswer> answers;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Json said = Json::parse(outputs[i]).at("prediction");
      answers.push_back(rewarded(examples[i], (said.is_array() ? said.at(0) : said).get<std::string>()));
    }
    std::vector<std::vector<double>> values = rewards().local(answers);
    for (std::size_t r = 0; r < values.size(); ++r)
      for (std::size_t i = 0; i < outputs.size() && rewards().names()[r] == AnswerRewards::kModel; ++i) {
        const Json score = Json::parse(outputs[i]).at("reward");
        values[r][i] = (score.is_array() ? score.at(0) : score).get<double>();
      }
    return means_of(values, "");
  }

  const ModelParams& params() const override {
    require_causal_lm(*model, "grpo");
    if (rewards().has_model()) reward_model();
    return Pipeline::params();
  }

 private:
  static constexpr const char* kRewardModel = "reward";
  static constexpr u64 kFurther = 0x6461706f;  // of the seed of dynamic sampling: its order and its draws

  bool by_sequence() const { return settings->grpo.importance_sampling_level == "sequence"; }

  AnswerRewards& rewards() const {
    if (!rewards_) rewards_ = std::make_unique<AnswerRewards>(settings->grpo);
    return *rewards_;
  }
  const Model& reward_model() const {
    const NamedModel& m = named_model(kRewardModel);
    require_text_scorer(*m.model, "the reward 'model' (models.reward)");
    if (m.tokenizer && m.tokenizer->fingerprint() != tokenizer->fingerprint())
      throw UsageError(
          "[models] models.reward has another tokenizer than the model. Use a reward model that was trained from a "
          "model with the same tokenizer");
    return *m.model;
  }

  RewardedAnswer rewarded(const Example& e, std::string answer) const {
    const Record r(e.text, "an example of grpo");
    return {tokenizer->decode(e.ids.at("prompt"), false), std::move(answer), e.text,
            r.has("completion") ? answer_text(r, "completion") : ""};
  }

  // What the chat template renders after a user's message, and after the answer to it. Without a template, or
  // if the message is last, none.
  struct ChatEnds {
    std::vector<i32> prompt, answer;
  };
  const ChatEnds& chat_ends() const {
    if (ends_) return *ends_;
    ends_.emplace();
    const ChatTemplate* chat = settings->chat_template.get();
    if (!chat) return *ends_;
    const Record x(R"({"prompt": [{"role": "user", "content": "x"}]})", "a chat");
    const Record y(R"({"prompt": [{"role": "user", "content": "y"}]})", "a chat");
    const std::vector<i32> a = prompt_of_record(*tokenizer, chat, x);
    const std::vector<i32> b = prompt_of_record(*tokenizer, chat, y);
    const auto begin = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first.base();
    if (begin != a.end()) *ends_ = {{begin, a.end()}, closing_of_record(*tokenizer, chat, x)};
    return *ends_;
  }
  // The whole conversation, as the reward model reads it. A prompt that is no chat has no ending.
  std::vector<i32> judged_ids(const std::vector<i32>& prompt, std::span<const i32> answer) const {
    std::vector<i32> out = prompt;
    out.insert(out.end(), answer.begin(), answer.end());
    const ChatEnds& ends = chat_ends();
    if (ends.prompt.size() <= prompt.size() &&
        std::equal(ends.prompt.rbegin(), ends.prompt.rend(), prompt.rbegin()))
      close_answer(out, ends.answer);
    return out;
  }

  // The reward and, if there are several, each of them.
  std::map<std::string, double> means_of(const std::vector<std::vector<double>>& values,
                                         const std::string& prefix) const {
    std::map<std::string, double> out = {{"reward", 0}};
    for (std::size_t r = 0; r < values.size(); ++r) {
      double mean = 0;
      for (const double v : values[r]) mean += v;
      mean /= std::max<double>(1, static_cast<double>(values[r].size()));
      out["reward"] += rewards().weight(r) * mean;
      if (values.size() > 1 && !prefix.empty()) out[prefix + rewards().names()[r]] = mean;
    }
    return out;
  }

  // An answer of predict_text() with its scores, the highest first.
  std::string ranked(const ParamTree& params, const Example& e, const std::string& answer) const {
    Json j = Json::parse(answer);
    const bool several = j.at("prediction").is_array();
    std::vector<std::vector<i32>> texts;
    for (const Json& ids : several ? j.at("ids") : Json::array({j.at("ids")})) {
      texts.push_back(judged_ids(e.ids.at("prompt"), ids.get<std::vector<i32>>()));
    }
    const std::vector<double> scores =
        to_values(text_scores(reward_model(), params.part(kRewardModel), texts));
    if (!several) {
      j["reward"] = scores.at(0);
      return j.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    for (auto& [key, list] : j.items()) {
      const Json before = list;
      for (std::size_t k = 0; k < order.size() && before.is_array(); ++k) list[k] = before.at(order[k]);
    }
    for (const std::size_t k : order) j["reward"].push_back(scores[k]);
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  // [rewards][answers], of all groups in order. Collective.
  std::vector<std::vector<double>> rewards_of(const ParamTree& params, std::span<const Example> asked,
                                              const std::vector<std::vector<Rollout>>& groups) const {
    std::vector<RewardedAnswer> answers;
    std::vector<Example> texts;
    for (std::size_t p = 0; p < groups.size(); ++p)
      for (const Rollout& r : groups[p]) {
        answers.push_back(rewarded(asked[p], r.text));
        if (rewards().has_model())
          texts.emplace_back().ids["text"] = judged_ids(asked[p].ids.at("prompt"), r.ids);
      }
    std::vector<std::vector<double>> values = rewards().shared(answers);
    if (!rewards().has_model()) return values;
    const Model& scorer = reward_model();
    const std::vector<float> scores =
        score_examples(params, texts, settings->generation.batch_size,
                       [&](const ParamTree& whole, std::span<const Example> rows, const BatchShape&) {
                         std::vector<std::vector<i32>> ids;
                         for (const Example& e : rows) ids.push_back(e.ids.at("text"));
                         return text_scores(scorer, whole.part(kRewardModel), ids);
                       });
    for (std::size_t r = 0; r < values.size(); ++r)
      if (rewards().names()[r] == AnswerRewards::kModel) values[r].assign(scores.begin(), scores.end());
    return values;
  }

  // A prompt with its answers and their rewards, before overlong reward shaping.
  struct AnswerGroup {
    const Example* asked;
    std::vector<Rollout> answers;
    std::vector<double> rewards;

    bool mixed() const {
      return std::ranges::any_of(group_advantages(rewards, true), [](double a) { return a != 0; });
    }
  };
  // Sums over all sampled answers of an epoch.
  struct Sums {
    std::vector<std::vector<double>> values;  // [rewards][answers]
    double tokens = 0, ended = 0;
  };

  // Samples a group for each prompt. key: of the random draws of the first prompt; those of another stream
  // are others. Collective.
  std::vector<AnswerGroup> groups_of(const ParamTree& params, std::span<const Example> asked, i64 key,
                                     u64 stream, Sums& sums) const {
    const GrpoSettings& o = settings->grpo;
    std::vector<std::vector<i32>> prompts;
    for (const Example& e : asked) prompts.push_back(e.ids.at("prompt"));
    TextGeneration g = settings->generation;
    g.settings = {.max_new_tokens = o.max_new_tokens,
                  .temperature = 1,
                  .num_return_sequences = o.num_generations,
                  .seed = static_cast<i64>(Context::current().random.seed ^ stream)};
    auto answers = sample(*this, params, prompts, g, key);
    const std::vector<std::vector<double>> values = rewards_of(params, asked, answers);
    sums.values.resize(values.size());
    for (std::size_t r = 0; r < values.size(); ++r)
      sums.values[r].insert(sums.values[r].end(), values[r].begin(), values[r].end());
    std::vector<AnswerGroup> groups;
    std::size_t at = 0;  // of the answer
    for (std::size_t p = 0; p < answers.size(); ++p) {
      AnswerGroup& group = groups.emplace_back(AnswerGroup{&asked[p], std::move(answers[p]), {}});
      for (const Rollout& r : group.answers) {
        double& sum = group.rewards.emplace_back(0);
        for (std::size_t k = 0; k < values.size(); ++k) sum += rewards().weight(k) * values[k][at];
        ++at;
        sums.tokens += static_cast<double>(r.ids.size());
        sums.ended += r.finish_reason == "eos";
      }
    }
    return groups;
  }

  // DAPO's soft overlong punishment (Yu et al. 2025, eq. 13): 0 to -1 for an answer of n tokens.
  double overlong(std::size_t n) const {
    const GrpoSettings& o = settings->grpo;
    if (!o.soft_punish_cache) return 0;
    const i64 free = o.max_new_tokens - *o.soft_punish_cache;
    return -std::max(
        0., static_cast<double>(static_cast<i64>(n) - free) / static_cast<double>(*o.soft_punish_cache));
  }

  EpochExamples::Made roll_out(const ParamTree& params, i64 epoch) const {
    const GrpoSettings& o = settings->grpo;
    Sums sums;
    const i64 n = o.prompts_per_epoch, first = epoch * n;
    const std::vector<Example> asked = endless_examples(*train_data, first, n);
    std::vector<AnswerGroup> groups = groups_of(params, asked, first, 0, sums);
    // Dynamic sampling. The further prompts have a separate order, in which each round of each epoch has
    // its place, so a resumed run and all meshes draw the same ones.
    std::deque<std::vector<Example>> more;
    double resampled = 0;
    for (i64 round = 0; round < o.dynamic_sampling_rounds; ++round) {
      std::vector<AnswerGroup*> equal;
      for (AnswerGroup& g : groups)
        if (!g.mixed()) equal.push_back(&g);
      if (equal.empty()) break;
      const i64 at = (epoch * o.dynamic_sampling_rounds + round) * n;
      more.push_back(endless_examples(*train_data, at, static_cast<i64>(equal.size()), kFurther));
      std::vector<AnswerGroup> others = groups_of(params, more.back(), at, kFurther, sums);
      for (std::size_t k = 0; k < equal.size(); ++k) *equal[k] = std::move(others[k]);
      resampled += static_cast<double>(equal.size());
    }
    EpochExamples::Made made;
    double mixed = 0, shaped = 0;
    for (const AnswerGroup& g : groups) {
      std::vector<double> rewards = g.rewards;
      for (std::size_t i = 0; i < rewards.size(); ++i) {
        const double punished = overlong(g.answers[i].ids.size());
        rewards[i] += punished;
        shaped += punished;
      }
      const std::vector<double> advantages = group_advantages(rewards, o.scale_rewards);
      mixed += std::ranges::any_of(advantages, [](double a) { return a != 0; });
      for (std::size_t i = 0; i < g.answers.size(); ++i) {
        const Rollout& r = g.answers[i];
        Example& e = made.examples.emplace_back();
        e.ids["answer"] = g.asked->ids.at("prompt");
        e.ids["answer"].insert(e.ids["answer"].end(), r.ids.begin(), r.ids.end());
        e.values["log_probs"] = r.log_probs;
        e.values["advantage"] = {static_cast<float>(advantages[i])};
        e.values["counts"] = {o.mask_truncated_completions && r.finish_reason == "length" ? 0.F : 1.F};
      }
    }
    const auto sampled = static_cast<double>(sums.values.empty() ? 0 : sums.values[0].size());
    made.notes = means_of(sums.values, "reward_");
    made.notes["answer_length"] = sums.tokens / sampled;
    made.notes["ended"] = sums.ended / sampled;
    made.notes["mixed_groups"] = mixed / static_cast<double>(groups.size());
    if (o.dynamic_sampling_rounds > 0) made.notes["resampled_groups"] = resampled;
    if (o.soft_punish_cache)
      made.notes["overlong_penalty"] = shaped / static_cast<double>(made.examples.size());
    return made;
  }

  EpochExamples answers_;
  mutable std::unique_ptr<AnswerRewards> rewards_;
  mutable std::optional<ChatEnds> ends_;
};

}  // namespace

std::unique_ptr<Pipeline> make_grpo_pipeline() { return std::make_unique<Grpo>(); }

}  // namespace redco
