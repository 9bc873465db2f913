// Reranking by a cross-encoder: a model with one output reads a query and a document together, and scores how
// well the document answers the query. Trained by binary cross-entropy, as sentence-transformers'
// CrossEncoder.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/words.h"
#include "metrics/ranking.h"
#include "models/config_tree.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"
#include "pipelines/record_keys.h"
#include "pipelines/text_groups.h"

namespace redco {

namespace {

using RankJson = nlohmann::ordered_json;

std::vector<std::string> one_or_more(const Record& r, const std::string& key) {
  return r.json(key).starts_with('[') ? r.texts(key) : std::vector{r.text(key)};
}

class Reranking : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::sequence_classification || model->num_labels() != 1)
      throw UsageError(
          "[pipeline] pipeline: reranking needs a classification model of texts with num_labels 1; this {} model is "
          "for {} ({} outputs)",
          model->family(), name_of(model->task()), model->num_labels());
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    pairs();
    DataRequest own = request;
    own.fingerprint += "rerank 1 " + pairs().fingerprint();
    return group_dataset(
        read_records(own, settings->data, [&](const Record& r) { return example(r, true); }));
  }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return example(Record(json, where), false);
  }

  Batch collate(std::span<const Example> mine, const BatchShape& shape) const override {
    Batch b;
    b.shape = shape;
    if (Context::current().is_meta())  // a plan knows no number of documents
      b.shape.target_length = train_data && train_data->size() > 0 ? train_data->target_length(0) : 1;
    pairs().collate(mine, b);
    b.weights["loss"] = b.weights.at("texts");
    b.weights.erase("texts");
    return b;
  }
  // -y log sigmoid(z) - (1 - y) log(1 - sigmoid(z)) of each document.
  LossTerms loss(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    const Tensor z = pairs().logits(params, b, ctx);  // [B, documents]
    const Scope s("cross-entropy");
    return {{"loss", sum_all((softplus(z) - z * pairs().labels(b)) * to_float(pairs().there(b)))}};
  }
  std::string unit() const override { return "documents"; }

  // {"scores": [...], "ranking": [indices of the documents, the best one first]}
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::vector<std::string> out;
    const bool raw = gives_logits();
    for (std::vector<double>& scores : pairs().scores(params, examples, ctx)) {
      std::vector<size_t> order(scores.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
      std::string numbers;
      for (double& x : scores) {
        if (!raw) x = 1 / (1 + std::exp(-x));
        numbers += (numbers.empty() ? "" : ",") + json_number(static_cast<float>(x));
      }
      out.push_back(fmt::format(R"({{"scores":[{}],"ranking":[{}]}})", numbers, fmt::join(order, ",")));
    }
    return out;
  }

  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  // Of the queries with a relevant document (label above 0.5).
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    RankingScores sum;
    double queries = 0, right = 0, texts = 0;
    const double border = gives_logits() ? 0 : 0.5;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<float> scores = RankJson::parse(outputs[i]).at("scores");
      EmbeddingRows rows;
      std::vector<size_t> relevant;
      for (size_t k = 0; k < scores.size(); ++k) {
        rows.push_back({scores[k]});
        const bool is = examples[i].values.at("labels").at(k) > 0.5F;
        if (is) relevant.push_back(k);
        right += is == (scores[k] > border);
        ++texts;
      }
      if (relevant.empty()) continue;
      const RankingScores s = ranking_scores({{1}}, rows, {relevant});
      sum.ndcg_10 += s.ndcg_10;
      sum.mrr_10 += s.mrr_10;
      ++queries;
    }
    std::map<std::string, double> out = {{"accuracy", texts > 0 ? right / texts : 0}};
    if (queries > 0) {
      out["ndcg_10"] = sum.ndcg_10 / queries;
      out["mrr_10"] = sum.mrr_10 / queries;
    }
    return wanted_metrics("reranking", settings->eval.metrics, std::move(out));
  }

 private:
  Example example(const Record& r, bool labelled) const {
    const ExampleFields& f = settings->data.fields;
    const std::string query = key_of(r, f.anchor, {"query", "anchor", "question", "sentence1", "text"});
    if (query.empty())
      r.fail("no query; expected one of the keys query, anchor, question, sentence1 and text");
    TextGroup g;
    g.first = r.text(query);
    if (const auto passages = f.positive ? std::nullopt : ranked_passages(r)) {
      g.texts = passages->texts;
      g.labels = passages->selected;
      return example_of(r, g);
    }
    const std::string key =
        key_of(r, f.positive,
               {"documents", "document", "positive", "pos", "passage", "answer", "sentence2", "text_pair"});
    if (key.empty())
      r.fail("no document; expected documents, document, positive, passage, answer or sentence2");
    g.texts = one_or_more(r, key);
    const std::string label = key_of(r, f.score, {"labels", "label", "score"});
    const std::string negative = key_of(r, f.negative, {"negative", "neg", "negatives"});
    if (!label.empty()) {
      g.labels = r.json(label).starts_with('[') ? r.numbers(label)
                                                : std::vector{static_cast<float>(r.number(label))};
      if (g.labels.size() != g.texts.size())
        r.fail(fmt::format("\"{}\" has {}, but \"{}\" has {}", label, counted(g.labels.size(), "number"), key,
                           counted(g.texts.size(), "text")));
      for (const float y : g.labels)
        if (!(y >= 0 && y <= 1)) r.fail(fmt::format("the label {} is outside of 0 to 1", y));
    } else if (!negative.empty()) {
      g.labels.assign(g.texts.size(), 1);
      for (std::string& text : one_or_more(r, negative)) {
        g.texts.push_back(std::move(text));
        g.labels.push_back(0);
      }
    }
    if (g.texts.empty()) r.fail(fmt::format("\"{}\" is empty", key));
    if (labelled && g.labels.empty()) r.fail("no label; expected label, labels or negatives");
    return example_of(r, g);
  }
  Example example_of(const Record& r, const TextGroup& g) const {
    try {
      return pairs().example(g);
    } catch (const ContentsError& error) {
      r.fail(error.what());
    }
  }

  // Whether the model's folder asks for scores without sigmoid.
  bool gives_logits() const {
    const auto& config = model->config().tree().json;
    std::string name;
    if (const auto own = config.find("sentence_transformers"); own != config.end() && own->is_object())
      name = own->value("activation_fn", "");
    if (const auto old = config.find("sbert_ce_default_activation_function");
        old != config.end() && old->is_string())
      name = *old;
    return name.ends_with("Identity");
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

std::unique_ptr<Pipeline> make_reranking_pipeline() { return std::make_unique<Reranking>(); }

std::map<std::string, std::string> reranking_config(const Model&, const ConfigRequest& r) {
  std::map<std::string, std::string> out;
  if (!r.has_head && !r.given("num_labels"))
    out = {{"num_labels", "1"}, {"id2label", R"({"0":"LABEL_0"})"}, {"label2id", R"({"LABEL_0":0})"}};
  return out;
}

}  // namespace redco
