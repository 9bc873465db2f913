// Multiple choice (SWAG, RACE, ARC): a model with one output reads the question with each of its choices, and
// the loss is the cross-entropy over the choices.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"
#include "pipelines/record_keys.h"
#include "pipelines/text_groups.h"

namespace redco {

namespace {

using ChoiceJson = nlohmann::ordered_json;

class MultipleChoice : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::multiple_choice)
      throw UsageError("[pipeline] pipeline: multiple_choice needs a model for it; this {} model is for {}",
                       model->family(), name_of(model->task()));
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    pairs();
    DataRequest own = request;
    own.fingerprint += "choices 1 " + pairs().fingerprint();
    return group_dataset(
        read_records(own, settings->data, [&](const Record& r) { return example(r, true); }));
  }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return example(Record(json, where), false);
  }

  Batch collate(std::span<const Example> mine, const BatchShape& shape) const override {
    Batch b;
    b.shape = shape;
    if (Context::current().is_meta())  // a plan knows no number of choices
      b.shape.target_length = train_data && train_data->size() > 0 ? train_data->target_length(0) : 4;
    pairs().collate(mine, b);
    b.weights = {{"loss", static_cast<double>(mine.size())}};
    return b;
  }
  LossTerms loss(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    const Tensor z = pairs().logits(params, b, ctx);  // [B, choices]
    const Scope s("cross-entropy");
    const Tensor missing = scale(add_scalar(to_float(pairs().there(b)), -1), 1e30);
    return {{"loss", sum_all(log_sum_exp(z + missing)) - sum_all(z * pairs().labels(b))}};
  }

  // {"prediction": the choice, "label_id", "probabilities": [...]}
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::vector<std::string> out;
    const auto all = pairs().scores(params, examples, ctx);
    for (size_t i = 0; i < all.size(); ++i) {
      const std::vector<double>& z = all[i];
      const size_t best = static_cast<size_t>(std::ranges::max_element(z) - z.begin());
      double total = 0;
      for (const double x : z) total += std::exp(x - z[best]);
      std::string p;
      for (const double x : z)
        p += (p.empty() ? "" : ",") + json_number(static_cast<float>(std::exp(x - z[best]) / total));
      const ChoiceJson text = ChoiceJson::parse(examples[i].text).at("choices").at(best);
      out.push_back(fmt::format(R"({{"prediction":{},"label_id":{},"probabilities":[{}]}})",
                                text.dump(-1, ' ', false, ChoiceJson::error_handler_t::replace), best, p));
    }
    return out;
  }
  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    double right = 0;
    for (size_t i = 0; i < outputs.size(); ++i)
      right += examples[i].values.at("labels").at(ChoiceJson::parse(outputs[i]).at("label_id")) > 0;
    return wanted_metrics("multiple_choice", settings->eval.metrics,
                          {{"accuracy", right / static_cast<double>(std::max<size_t>(1, outputs.size()))}});
  }

 private:
  Example example(const Record& r, bool labelled) const {
    const ExampleFields& f = settings->data.fields;
    const std::string question = key_of(r, f.question,
                                        {"question", "prompt", "question_stem", "sent2", "goal", "sentence"}),
                      context = key_of(r, f.context, {"context", "passage", "ctx", "article", "sent1"});
    if (question.empty() && context.empty())
      r.fail(
          "no question; expected the key question, prompt, context or ctx, or another one that "
          "data.fields.question names");
    TextGroup g;
    const std::string asked = question.empty() ? "" : r.text(question);
    g.first = context.empty() ? asked : r.text(context);
    const Choices choices = choices_of(r, f.choices);
    g.texts = choices.texts;
    if (g.texts.size() < 2)
      r.fail(
          fmt::format("\"{}\" has {}; expected 2 or more", choices.key, counted(g.texts.size(), "choice")));
    if (const std::string label = key_of(r, {}, {"label", "answer", "answerKey"}); labelled) {
      if (label.empty())
        r.fail("no label; expected the index or the text of the right choice under label or answer");
      g.labels.assign(g.texts.size(), 0);
      g.labels[right_choice(r, label, choices)] = 1;
    }
    ChoiceJson kept;
    if (!context.empty()) kept["context"] = g.first;
    if (!question.empty()) kept["question"] = asked;
    kept["choices"] = g.texts;
    // As in transformers' examples: the question begins the second text if there is a context.
    if (!context.empty() && !asked.empty())
      for (std::string& text : g.texts) text = asked + " " + text;
    try {
      Example e = pairs().example(g);
      e.text = kept.dump(-1, ' ', false, ChoiceJson::error_handler_t::replace);
      return e;
    } catch (const ContentsError& error) {
      r.fail(error.what());
    }
  }

  struct Choices {
    std::string key;  // for messages
    std::vector<std::string> texts, names;
  };
  // A list of texts; ARC's {"text": [...], "label": ["A", ...]}, whose labels are the names of the choices;
  // or a key per choice, ending0, ending1, ..., whose numbers are the names if the answer is under "answer".
  static Choices choices_of(const Record& r, const std::optional<std::string>& named) {
    Choices c{key_of(r, named, {"choices", "endings", "options"}), {}, {}};
    if (!c.key.empty() && !ChoiceJson::parse(r.json(c.key)).is_object()) {
      c.texts = r.texts(c.key);
      return c;
    }
    if (!c.key.empty()) {
      const Record both(r.json(c.key), r.where() + ": \"" + c.key + "\"");
      c.texts = both.texts("text");
      c.names = both.texts("label");
      if (c.names.size() != c.texts.size()) both.fail("\"text\" and \"label\" have different lengths");
      return c;
    }
    for (const std::string stem : {"ending", "option", "answer", "choice", "sol"})
      for (const int first : {0, 1}) {
        for (int k = first; r.has(stem + std::to_string(k)); ++k) {
          c.texts.push_back(r.text(stem + std::to_string(k)));
          c.names.push_back(r.has("answer") ? std::to_string(k) : "");
        }
        c.key = stem + std::to_string(first);
        if (c.texts.size() > 1) return c;
        c.texts.clear(), c.names.clear();
      }
    // answerA, answerB, ... with numbers from 1 as the answer (Social IQa).
    for (char k = 'A'; r.has(std::string("answer") + k); ++k) {
      c.key = "answerA";
      c.texts.push_back(r.text(std::string("answer") + k));
      c.names.push_back(std::to_string(c.texts.size()));
    }
    if (c.texts.size() > 1) return c;
    r.fail(
        "no choices; expected the key choices, endings or options, or ending0, ending1, ..., or another key "
        "that data.fields.choices names");
  }

  // The index of the right choice: its name, a number from 0, a letter from A, or the text of the choice.
  static size_t right_choice(const Record& r, const std::string& key, const Choices& choices) {
    const ChoiceJson v = ChoiceJson::parse(r.json(key));
    const std::string s = v.is_string() ? v.get<std::string>() : v.dump();
    const auto n = static_cast<i64>(choices.texts.size());
    if (const auto at = std::ranges::find(choices.names, s); at != choices.names.end() && !s.empty())
      return static_cast<size_t>(at - choices.names.begin());
    if (const auto at = std::ranges::find(choices.texts, s); v.is_string() && at != choices.texts.end())
      return static_cast<size_t>(at - choices.texts.begin());
    i64 index = -1;
    if (!s.empty() && s.size() < 6 && std::ranges::all_of(s, [](char c) { return c >= '0' && c <= '9'; }))
      index = std::stol(s);
    else if (s.size() == 1 && s[0] >= 'A' && s[0] <= 'Z')
      index = s[0] - 'A';
    if (index < 0 || index >= n)
      r.fail(fmt::format("\"{}\" is {}; expected a number from 0 to {}, a letter, or the text of a choice",
                         key, excerpt(v.dump()), n - 1));
    return static_cast<size_t>(index);
  }

  const TextGroups& pairs() const {
    if (!groups_) {
      params();
      groups_.emplace(*model, tokenizer, *settings);
    }
    return *groups_;
  }
  mutable std::optional<TextGroups> groups_;
};

}  // namespace

std::unique_ptr<Pipeline> make_multiple_choice_pipeline() { return std::make_unique<MultipleChoice>(); }

}  // namespace redco
