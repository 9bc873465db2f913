// Token classification (named entities, parts of speech): a class for each word. The loss counts the first
// token of each word; entities of the tags are scored as seqeval does.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "data/builtin/builtin.h"
#include "metrics/entities.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/reduce.h"
#include "pipelines/answer_values.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"
#include "pipelines/tagged_texts.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr i32 kNoLabel = -100;

std::string json_of(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

class TokenClassification : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::token_classification || model->num_labels() < 2)
      throw UsageError(
          "[pipeline] pipeline: token_classification needs a model with at least 2 classes for each token; this "
          "{} model is for {}",
          model->family(), name_of(model->task()));
    if (!tokenizer)
      throw UsageError(
          "[model] the {} model has no tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
          model->family());
    return params;
  }

  // ids["input_ids"] and ids["labels"], with special tokens; text: the record's words or text, and the tags.
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    params();
    classes();
    DataRequest own = request;
    own.fingerprint += fmt::format("tags 1 {} {}", max_length(), fmt::join(classes().names(), "\n"));
    return read_records(own, settings->data, [&](const Record& r) -> std::optional<Example> {
      const TaggedText t = read_tagged_text(r, settings->data.fields);
      if (!t.tags) r.fail("no tags; expected the key tags, ner_tags, labels, spans or entities");
      Example e;
      try {
        e = example_of(t);
        const WordTokens tokens = tokens_of_words(*tokenizer, t.words);
        const i64 room = max_length() - frame_tokens();
        if (static_cast<i64>(tokens.ids.size()) > room) {
          const std::string too_long = settings->data.too_long.value_or("truncate");
          if (too_long == "skip") return std::nullopt;
          if (too_long == "error")
            throw ContentsError("{} tokens, more than {}", tokens.ids.size() + frame_tokens(), max_length());
        }
        std::vector<i32> labels(tokens.ids.size(), kNoLabel);
        const std::vector<size_t> tagged = t.tagged();
        for (size_t k = 0; k < tagged.size(); ++k) {
          const size_t w = tagged[k];
          const i64 tag = tag_number(classes(), (*t.tags)[k]);
          if (tokens.first[w] < tokens.first[w + 1])
            labels[tokens.first[w]] = static_cast<i32>(tag);
          else if (t.steps)
            throw UsageError(
                "[data] {}: the tokenizer {} has no token for the line break after a step. Steps need a decoder, such "
                "as LLaMA",
                r.where(), tokenizer->name());
        }
        const size_t kept = std::min(tokens.ids.size(), static_cast<size_t>(room));
        e.ids["input_ids"] = framed({tokens.ids.data(), kept});
        std::vector<i32>& out = e.ids["labels"];
        out.assign(frame().before.size(), kNoLabel);
        out.insert(out.end(), labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(kept));
        out.resize(e.ids["input_ids"].size(), kNoLabel);
      } catch (const ContentsError& error) {
        r.fail(error.what());
      }
      return e;
    });
  }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    const Record r(json, where);
    TaggedText t = read_tagged_text(r, settings->data.fields);
    t.tags.reset();
    if (const i64 n = t.steps ? std::ssize(tokens_of_words(*tokenizer, t.words).ids) + frame_tokens() : 0;
        n > max_length())
      r.fail(fmt::format("the steps have {} tokens, more than data.max_length={}", n, max_length()));
    return example_of(t);
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    add_rows(b, mine);
    b.fields["labels"] = id_rows(mine, s, "labels", kNoLabel);
    i64 labels = 0;
    for (const Example& e : mine)
      labels += std::ranges::count_if(e.ids.at("labels"), [](i32 l) { return l != kNoLabel; });
    b.weights["loss"] = static_cast<double>(labels);
    return b;
  }
  LossTerms loss(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    const Tensor logits = logits_of(params, b, ctx);  // [B, S, classes]
    const Scope s("cross-entropy");
    const double smoothing = ctx.apply.train ? settings->train.label_smoothing : 0;
    return {{"loss", sum_all(cross_entropy(logits, b["labels"], smoothing))}};
  }
  std::string unit() const override { return "words"; }

  // {"prediction": [tag of each word], "entities": [{"label", "start", "end", "text", "score"}]}; of steps
  // {"prediction": [tag of each step], "scores": [its probability]}. Long texts are read in several rows,
  // which end at the border of words. start and end are code points of a text, or indices of given words;
  // score is the mean probability of the words' tags.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    struct Window {
      size_t example;
      std::vector<size_t> words, tokens;  // and the index of the first token of each word in the row
      std::vector<i32> ids;
    };
    std::vector<TaggedText> texts;
    std::vector<Window> windows;
    for (size_t i = 0; i < examples.size(); ++i) {
      texts.push_back(read_tagged_text(Record(examples[i].text, "the example"), {}));
      const WordTokens t = tokens_of_words(*tokenizer, texts[i].words);
      const size_t room = static_cast<size_t>(max_length() - frame_tokens());
      Window now{i, {}, {}, {}};
      const auto finish = [&] {
        if (now.words.empty()) return;
        now.ids = framed(now.ids);
        windows.push_back(std::exchange(now, Window{i, {}, {}, {}}));
      };
      for (size_t w = 0; w < texts[i].words.size(); ++w) {
        const auto begin = t.ids.begin() + t.first[w], end = t.ids.begin() + t.first[w + 1];
        if (begin == end) continue;
        if (now.ids.size() + static_cast<size_t>(end - begin) > room) finish();
        now.words.push_back(w);
        now.tokens.push_back(now.ids.size() + frame().before.size());
        now.ids.insert(now.ids.end(), begin, std::min(end, begin + static_cast<std::ptrdiff_t>(room)));
      }
      finish();
    }
    std::vector<std::vector<i64>> tags;
    std::vector<std::vector<double>> probabilities;
    for (const TaggedText& t : texts) {
      tags.emplace_back(t.words.size(), outside());
      probabilities.emplace_back(t.words.size(), 1);
    }
    const size_t at_once = std::max<size_t>(1, examples.size());
    for (size_t first = 0; first < windows.size(); first += at_once) {
      const size_t n = std::min(at_once, windows.size() - first);
      std::vector<Example> rows(n);
      Batch b;
      b.shape = {.rows = static_cast<i64>(n), .mine = {0, static_cast<i64>(n)}, .length = 1};
      for (size_t r = 0; r < n; ++r) {
        rows[r].ids["input_ids"] = windows[first + r].ids;
        b.shape.length = std::max(b.shape.length, static_cast<i64>(windows[first + r].ids.size()));
      }
      add_rows(b, rows);
      const std::vector<double> logits = answer_values(logits_of(params, b, ctx));
      const auto labels = static_cast<size_t>(model->num_labels());
      for (size_t r = 0; r < n; ++r) {
        const Window& w = windows[first + r];
        for (size_t k = 0; k < w.words.size(); ++k) {
          const double* const z = &logits[(r * static_cast<size_t>(b.shape.length) + w.tokens[k]) * labels];
          const i64 best = std::max_element(z, z + labels) - z;
          double total = 0;
          for (size_t c = 0; c < labels; ++c) total += std::exp(z[c] - z[best]);
          tags[w.example][w.words[k]] = best;
          probabilities[w.example][w.words[k]] = 1 / total;
        }
      }
    }
    std::vector<std::string> out;
    for (size_t i = 0; i < examples.size(); ++i) out.push_back(answer(texts[i], tags[i], probabilities[i]));
    return out;
  }

  std::string output(const Example& e, const std::string& prediction) const override {
    Json j = {{"id", e.id.empty() ? Json(e.ordinal) : Json::parse(e.id, nullptr, false)}};
    j.update(Json::parse(e.text));
    j.update(Json::parse(prediction));
    return json_of(j);
  }
  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    EntityCounts counts;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<std::string> said = Json::parse(outputs[i]).at("prediction");
      std::vector<std::string> truth;
      const TaggedText text = read_tagged_text(Record(examples[i].text, "the example"), {});
      for (const std::string& tag : *text.tags)
        truth.push_back(classes().names()[static_cast<size_t>(tag_number(classes(), tag))]);
      counts.add(said, truth);
    }
    const EntityScores s = counts.scores();
    return wanted_metrics(
        "token_classification", settings->eval.metrics,
        {{"precision", s.precision}, {"recall", s.recall}, {"f1", s.f1}, {"accuracy", s.accuracy}});
  }

 private:
  // The words or the text, with the tags, as a record of the usual keys.
  static Example example_of(const TaggedText& t) {
    Json j;
    if (t.steps) {
      j["prompt"] = t.words[0].text;
      for (size_t w = 1; w < t.words.size(); w += 2) j["completions"].push_back(t.words[w].text);
      if (t.tags) j["labels"] = *t.tags;
    } else if (t.text.empty()) {
      for (const Word& w : t.words) j["tokens"].push_back(w.text);
      if (t.tags) j["tags"] = *t.tags;
    } else {
      j["text"] = t.text;
      if (t.tags) {
        j["spans"] = Json::array();
        for (const Entity& e : entities_of(*t.tags))
          j["spans"].push_back(
              {{"start", t.words[e.begin].begin}, {"end", t.words[e.end - 1].end}, {"label", e.type}});
      }
    }
    Example e;
    e.text = json_of(j);
    return e;
  }

  std::string answer(const TaggedText& t, const std::vector<i64>& numbers,
                     const std::vector<double>& probabilities) const {
    std::vector<std::string> tags;
    for (const size_t w : t.tagged()) tags.push_back(classes().names()[static_cast<size_t>(numbers[w])]);
    if (t.steps) {
      Json j = {{"prediction", tags}, {"scores", Json::array()}};
      for (const size_t w : t.tagged()) j["scores"].push_back(std::round(probabilities[w] * 1e6) / 1e6);
      return json_of(j);
    }
    Json j = {{"prediction", tags}, {"entities", Json::array()}};
    for (const Entity& e : entities_of(tags)) {
      const i64 begin = t.words[e.begin].begin, end = t.words[e.end - 1].end;
      double score = 0;
      std::string text;
      for (i64 w = e.begin; w < e.end; ++w) {
        score += probabilities[w] / static_cast<double>(e.end - e.begin);
        text += (w > e.begin ? " " : "") + t.words[w].text;
      }
      if (!t.text.empty()) text = text_between(t.text, begin, end);
      Json one = {{"label", e.type}, {"start", begin}, {"end", end}, {"text", text}};
      one["score"] = std::round(score * 1e6) / 1e6;
      j["entities"].push_back(std::move(one));
    }
    return json_of(j);
  }

  // The class of words that the model does not see: O, else the first.
  i64 outside() const {
    const auto it = std::ranges::find(classes().names(), "O");
    return it == classes().names().end() ? 0 : it - classes().names().begin();
  }

  Tensor logits_of(const ParamTree& params, const Batch& b, const StepContext& ctx) const {
    return model->apply_encoder(params, {.input_ids = b["input_ids"], .key_mask = b["key_mask"]}, ctx.apply);
  }
  void add_rows(Batch& b, std::span<const Example> mine) const {
    std::vector<Example> masks(mine.size());
    for (size_t r = 0; r < mine.size(); ++r) masks[r].ids["m"].assign(mine[r].ids.at("input_ids").size(), 1);
    b.fields["input_ids"] = id_rows(mine, b.shape, "input_ids", std::max(0, model->pad_token_id()));
    b.fields["key_mask"] = id_rows(masks, b.shape, "m", 0);
  }
  std::vector<i32> framed(std::span<const i32> ids) const {
    std::vector<i32> out = frame().before;
    out.insert(out.end(), ids.begin(), ids.end());
    out.insert(out.end(), frame().after.begin(), frame().after.end());
    return out;
  }
  const TextFrame& frame() const {
    if (!frame_) frame_ = text_frame(*tokenizer);
    return *frame_;
  }
  i64 frame_tokens() const { return static_cast<i64>(frame().before.size() + frame().after.size()); }
  i64 max_length() const {
    const i64 n = std::min(settings->data.max_length.value_or(model->max_length()), model->length_limit());
    if (n <= frame_tokens())
      throw UsageError("[data] data.max_length={} leaves no room for a text between {} special tokens", n,
                       frame_tokens());
    return n;
  }
  const ClassNames& classes() const {
    if (!classes_) {
      params();
      std::vector<std::string> names = settings->data.label_names;
      if (names.empty()) names = config_classes(*model);
      if (names.empty()) names = numbered_names("LABEL_", model->num_labels());
      classes_.emplace(std::move(names));
      if (classes_->size() != model->num_labels())
        throw UsageError("[data] data.label_names has {} classes, but the model has {}", classes_->size(),
                         model->num_labels());
    }
    return *classes_;
  }
  mutable std::optional<ClassNames> classes_;
  mutable std::optional<TextFrame> frame_;
};

}  // namespace

std::unique_ptr<Pipeline> make_token_classification_pipeline() {
  return std::make_unique<TokenClassification>();
}

std::map<std::string, std::string> token_classification_config(const Model& model, const ConfigRequest& r) {
  std::vector<std::string> names = r.data.label_names;
  if (names.empty()) {
    if (r.has_head || r.given("num_labels") || !r.data.has(false) || !config_classes(model).empty())
      return {};
    names = distinct_tags(data_files(r.data.files(false), false, r.cache), r.data);
    if (names.size() < 2)
      throw ContentsError("[data] the training data have {}. Token classification needs at least two",
                          names.empty() ? "no tags" : "only one tag, " + names[0]);
  }
  Json id2label = Json::object(), label2id = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    id2label[std::to_string(i)] = names[i];
    label2id[names[i]] = i;
  }
  return {{"num_labels", std::to_string(names.size())},
          {"id2label", json_of(id2label)},
          {"label2id", json_of(label2id)}};
}

}  // namespace redco
