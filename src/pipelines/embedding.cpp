// Sentence embeddings: a text becomes a vector, and similar texts similar vectors. Any encoder, or a decoder
// with the last token. Training on pairs and triplets (InfoNCE over the whole global batch) and on pairs with
// a score (CoSENT, squared error of the cosine), with Matryoshka embeddings. Folders are those of
// sentence-transformers.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "metrics/classification.h"
#include "metrics/ranking.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/shape.h"
#include "pipeline/embedding_pipeline.h"
#include "pipelines/answer_values.h"
#include "pipelines/embedding_losses.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"
#include "pipelines/pooling.h"
#include "pipelines/sentence_texts.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kText = "text";  // the text of a request

class SentenceEmbedding : public EmbeddingPipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    const ModelTask task = model->task();
    const bool tower = is_tower() && model->vocab_size() > 0;
    if (task != ModelTask::feature_extraction && task != ModelTask::masked_lm &&
        task != ModelTask::causal_lm && !tower)
      throw UsageError(
          "[pipeline] pipeline: embedding needs an encoder or a decoder of texts; this {} model is for {}",
          model->family(), name_of(task));
    if (tower && settings->embedding.pooling)
      throw UsageError("[embedding] the {} model pools its tokens itself. Remove embedding.pooling",
                       model->family());
    if (model->hidden_size() == 0 && !tower)
      throw UsageError("[pipeline] pipeline: embedding needs a model's hidden states, which {} does not give",
                       model->family());
    const EmbeddingSettings& s = settings->embedding;
    for (const i64 d : s.matryoshka_dims)
      if (d > width())
        throw UsageError("[embedding] embedding.matryoshka_dims has {}, but an embedding has {} features", d,
                         width());
    if (s.dimensions.value_or(1) > width())
      throw UsageError("[embedding] embedding.dimensions is {}, but an embedding has {} features",
                       *s.dimensions, width());
    if (!s.matryoshka_weights.empty() && s.matryoshka_weights.size() != s.matryoshka_dims.size())
      throw UsageError(
          "[embedding] embedding.matryoshka_weights has {} numbers, but embedding.matryoshka_dims has {}; give "
          "one weight for each",
          s.matryoshka_weights.size(), s.matryoshka_dims.size());
    return params;
  }

  // The Dense modules of the folder, as DIR/linear.weight.
  ModelParams extra_params() const override {
    ModelParams out;
    if (is_tower()) return out;
    SpecBuilder b(out);
    i64 in = model->hidden_size() * static_cast<i64>(setup().pooling.size());
    for (const DenseModule& d : setup().dense) {
      if (d.in != in)
        throw ContentsError(
            "[model] {}/{}/config.json: in_features is {}, but the pooled states have {} features",
            settings->weights_folder, d.folder, d.in, in);
      b.linear(d.folder + "/linear", d.out, d.in, d.bias, 0.02);
      in = d.out;
    }
    // Small layers on one row for each text: every rank has them.
    for (ParamSpec& s : out.specs) s.cut = -1;
    return out;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    params();
    DataRequest own = request;
    own.fingerprint += texts().fingerprint();
    i64 negatives = -1;
    bool scored = false;
    return sentence_dataset(read_records(own, settings->data, [&](const Record& r) {
      Example e = texts().read(r);
      const i64 count = static_cast<i64>(e.ids.size());
      if (negatives < 0) negatives = count, scored = e.values.count("score") > 0;
      if (negatives != count || scored != (e.values.count("score") > 0))
        r.fail(
            "another form than the first example; expected the same number of negatives, and a score in "
            "all examples or in none");
      return e;
    }));
  }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    return texts().request(Record(json, where));
  }
  bool concurrent_requests() const override {
    params();
    texts();
    return true;
  }

  Batch collate(std::span<const Example> mine, const BatchShape& shape) const override {
    Batch b;
    b.shape = shape;
    b.weights["loss"] = static_cast<double>(mine.size());
    // A plan has no examples: those of the training data, or pairs.
    if (Context::current().is_meta())
      b.shape.target_length = train_data && train_data->size() > 0 ? train_data->target_length(0) : 1;
    for (const std::string& name : text_names(b.shape.target_length)) add(b, mine, name);
    if (b.shape.target_length == 0) b.fields["score"] = value_rows(mine, shape, "score", {});
    return b;
  }

  // A row for each example: NAME [B, D], and score [B].
  Embeddings embed(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    Embeddings out;
    i64 k = 0;
    for (const std::string& name : text_names(b.shape.target_length)) {
      const auto keys = ctx.scope("text", k++);  // each text has its own dropout
      out[name] = embedding_of(params, b, name, ctx);
    }
    if (b.shape.target_length == 0) out["score"] = b["score"];
    return out;
  }

  LossTerms loss(const ParamTree&, const Batch& all, const StepContext&) const override {
    const EmbeddingSettings& s = settings->embedding;
    const Scope scope("pairs");
    std::vector<i64> dims = s.matryoshka_dims;
    if (dims.empty()) dims.push_back(width());
    Tensor total;
    for (size_t k = 0; k < dims.size(); ++k) {
      const double weight = s.matryoshka_weights.empty() ? 1 : s.matryoshka_weights[k];
      const Tensor of_dims = scale(loss_of(all, dims[k]), weight);
      total = total.defined() ? total + of_dims : of_dims;
    }
    return {{"loss", total}};
  }
  std::string unit() const override { return "pairs"; }

  // {"embedding": [...]} of a request; {"anchor_embedding": [...], "positive_embedding": ...} of an
  // example.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    std::map<std::string, std::vector<size_t>> places;  // text -> its examples
    for (size_t i = 0; i < examples.size(); ++i)
      for (const auto& [name, ids] : examples[i].ids)
        if (!name.ends_with(".skip")) places[name].push_back(i);
    std::vector<std::string> out(examples.size());
    for (const auto& [name, of_name] : places) {
      std::vector<Example> rows;
      Batch b;
      for (const size_t i : of_name) {
        rows.push_back(examples[i]);
        b.shape.length = std::max(b.shape.length, static_cast<i64>(examples[i].ids.at(name).size()));
      }
      b.shape.rows = b.shape.mine.end = static_cast<i64>(rows.size());
      add(b, rows, name);
      Tensor e = embedding_of(params, b, name, ctx);
      if (const auto& d = settings->embedding.dimensions) e = narrow(e, 1, 0, *d);
      if (setup().normalize) e = unit_rows(e);
      const std::vector<double> values = answer_values(e);
      const size_t n = static_cast<size_t>(e.size(1));
      for (size_t r = 0; r < rows.size(); ++r) {
        std::string numbers;
        for (size_t k = 0; k < n; ++k)
          numbers += (k == 0 ? "" : ",") + json_number(static_cast<float>(values[r * n + k]));
        std::string& line = out[of_name[r]];
        line += fmt::format("{}\"{}embedding\":[{}]", line.empty() ? "{" : ",",
                            name == kText ? "" : name + "_", numbers);
      }
    }
    for (std::string& line : out) line += "}";
    return out;
  }
  std::string prediction_settings() const override {
    const SentenceFolder& f = setup();
    return Json{{"embedding",
                 {{"texts", texts().fingerprint()},
                  {"pooling", f.pooling},
                  {"normalize", f.normalize},
                  {"dimensions", settings->embedding.dimensions.value_or(width())}}}}
        .dump();
  }

  // {"id", the texts, their embeddings, "cosine"}
  std::string output(const Example& e, const std::string& prediction) const override {
    Json j = {{"id", e.id.empty() ? Json(e.ordinal) : Json::parse(e.id, nullptr, false)}};
    if (const Json own = Json::parse(e.text, nullptr, false); own.is_object()) j.update(own);
    const Json p = Json::parse(prediction);
    j.update(p);
    if (p.contains("anchor_embedding"))
      j["cosine"] = similarity(p.at("anchor_embedding"), p.at("positive_embedding"), true);
    if (const auto score = e.values.find("score"); score != e.values.end()) j["score"] = score->second.at(0);
    return j.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    std::vector<Json> answers;
    for (const std::string& o : outputs) answers.push_back(Json::parse(o));
    std::map<std::string, double> out;
    if (!examples.empty() && examples[0].values.count("score")) {
      std::vector<double> said, truth;
      for (size_t i = 0; i < answers.size(); ++i) {
        said.push_back(similarity(answers[i].at("anchor_embedding"), answers[i].at("positive_embedding"),
                                  !setup().dot_product));
        truth.push_back(examples[i].values.at("score").at(0));
      }
      out = {{"spearman", spearman(said, truth)}, {"pearson", pearson(said, truth)}};
    } else {
      out = search(examples, answers);
    }
    return wanted_metrics("embedding", settings->eval.metrics, std::move(out));
  }

  std::map<std::string, std::string> model_files() const override {
    if (is_tower()) return {};  // sentence-transformers has another form for these models
    return setup().files(model->hidden_size());
  }

 private:
  // A model of embeddings of images and texts, which pools its tokens.
  bool is_tower() const { return model->task() == ModelTask::image_text_contrastive; }
  i64 width() const { return is_tower() ? model->num_labels() : setup().width(model->hidden_size()); }

  // The texts of a field of `mine`, as the model reads them.
  void add(Batch& b, std::span<const Example> mine, const std::string& name) const {
    const i64 length = b.shape.length;
    if (model->pads_texts()) b.shape.length = model->max_length();
    add_texts(b, mine, name, setup().pooling, std::max(0, model->pad_token_id()));
    b.shape.length = length;
    if (model->task() != ModelTask::causal_lm) return;
    std::vector<Example> rows(mine.size());
    const std::vector<i32> ones(static_cast<size_t>(b.shape.length), 1);
    const std::vector<i32> positions = model->positions(ones, false);
    for (Example& row : rows) row.ids["positions"] = positions;
    b.fields[name + ".positions"] = id_rows(rows, b.shape, "positions", 0);
  }

  // [B, D], not scaled to length 1.
  Tensor embedding_of(const ParamTree& params, const Batch& b, const std::string& name,
                      const StepContext& ctx) const {
    if (is_tower()) {
      EncoderInputs in{.input_ids = b[name + ".ids"]};
      if (!model->pads_texts()) in.key_mask = b[name + ".mask"];
      return model->apply_encoder(params, in, ctx.apply);
    }
    // Rows are padded on the right, so a decoder's tokens don't see padding.
    const Tensor hidden =
        model->task() == ModelTask::causal_lm
            ? model->last_hidden_state(params, DecoderInputs{b[name + ".ids"], b[name + ".positions"], {}},
                                       ctx.apply)
            : model->last_hidden_state(
                  params, EncoderInputs{.input_ids = b[name + ".ids"], .key_mask = b[name + ".mask"]},
                  ctx.apply);
    Tensor x = pool(hidden, b, name + ".", setup().pooling);
    for (const DenseModule& d : setup().dense)
      x = activate(d.activation, dense(params, d.folder + "/linear", x, ctx.apply));
    return x;
  }

  // The loss of the first `dims` features.
  Tensor loss_of(const Batch& all, i64 dims) const {
    const EmbeddingSettings& s = settings->embedding;
    const auto of = [&](const std::string& name) {
      return dims == width() ? all[name] : narrow(all[name], 1, 0, dims);
    };
    if (all.shape.target_length > 0) {
      std::vector<Tensor> negatives;
      for (const std::string& name : text_names(all.shape.target_length))
        if (name != "anchor" && name != "positive") negatives.push_back(of(name));
      return info_nce(of("anchor"), of("positive"), negatives, s.scale, s.symmetric);
    }
    if (s.scored_loss == "cosine_mse")
      return cosine_squared_error(of("anchor"), of("positive"), all["score"]);
    // One number for the step, which its number of pairs will divide.
    return scale(cosent(of("anchor"), of("positive"), all["score"], s.scale),
                 static_cast<double>(all.shape.rows));
  }

  static double similarity(const std::vector<double>& a, const std::vector<double>& b, bool cosine) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      ab += a[k] * b[k];
      aa += a[k] * a[k];
      bb += b[k] * b[k];
    }
    return cosine ? ab / std::max(std::sqrt(aa * bb), 1e-12) : ab;
  }

  // Each anchor searches its positives among all positives and negatives of the set. Equal texts are one.
  std::map<std::string, double> search(std::span<const Example> examples,
                                       const std::vector<Json>& answers) const {
    EmbeddingRows queries, candidates;
    std::vector<std::vector<std::size_t>> relevant;
    std::map<std::string, std::size_t> query_of, candidate_of;
    const auto add = [&](const std::string& text, const Json& numbers, auto& known, EmbeddingRows& rows) {
      const auto [it, fresh] = known.emplace(text, rows.size());
      if (fresh) {
        std::vector<float> row = numbers;
        double squares = 0;
        for (const float x : row) squares += static_cast<double>(x) * x;
        const double factor = setup().dot_product ? 1 : 1 / std::max(std::sqrt(squares), 1e-12);
        for (float& x : row) x = static_cast<float>(x * factor);
        rows.push_back(std::move(row));
      }
      return it->second;
    };
    for (size_t i = 0; i < answers.size(); ++i) {
      const Json texts = Json::parse(examples[i].text);
      const size_t q = add(texts.at("anchor"), answers[i].at("anchor_embedding"), query_of, queries);
      const size_t c =
          add(texts.at("positive"), answers[i].at("positive_embedding"), candidate_of, candidates);
      relevant.resize(queries.size());
      if (std::ranges::find(relevant[q], c) == relevant[q].end()) relevant[q].push_back(c);
      for (size_t k = 0; texts.contains("negatives") && k < texts["negatives"].size(); ++k)
        add(texts["negatives"][k], answers[i].at(fmt::format("negative.{}_embedding", k)), candidate_of,
            candidates);
    }
    const RankingScores s = ranking_scores(queries, candidates, relevant);
    return {{"ndcg_10", s.ndcg_10},
            {"mrr_10", s.mrr_10},
            {"recall_1", s.recall_1},
            {"recall_5", s.recall_5},
            {"recall_10", s.recall_10}};
  }

  const SentenceTexts& texts() const {
    setup();
    return *texts_;
  }

  // The folder's files with the job's settings.
  const SentenceFolder& setup() const {
    std::call_once(made_, [&] {
      if (!tokenizer)
        throw UsageError(
            "[model] the {} model has no tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
            model->family());
      const EmbeddingSettings& s = settings->embedding;
      SentenceFolder f = read_sentence_folder(settings->weights_folder);
      if (s.pooling) f.pooling = {*s.pooling};
      if (f.pooling.empty() && !is_tower())
        f.pooling = {model->task() == ModelTask::causal_lm ? "lasttoken" : "mean"};
      if (s.normalize || !f.found) f.normalize = s.normalize.value_or(true);
      if (s.query_prompt) f.prompts["query"] = *s.query_prompt;
      if (s.document_prompt) f.prompts["document"] = *s.document_prompt;
      if (s.prompt) {
        f.default_prompt_name = s.prompt->empty() ? "" : "default";
        if (!s.prompt->empty()) f.prompts["default"] = *s.prompt;
      }
      const i64 most = settings->data.max_length.value_or(f.max_seq_length.value_or(model->max_length()));
      f.max_seq_length = std::min(most, model->length_limit());
      const SentencePrompts prompts = {
          f.default_prompt_name.empty() ? "" : f.prompt_of({f.default_prompt_name}), f.prompt_of({"query"}),
          f.prompt_of({"document", "passage", "corpus"})};
      texts_.emplace(*tokenizer, f, prompts, settings->data.fields, *f.max_seq_length);
      setup_ = std::move(f);
    });
    return setup_;
  }

  mutable std::once_flag made_;
  mutable SentenceFolder setup_;
  mutable std::optional<SentenceTexts> texts_;
};

}  // namespace

std::unique_ptr<Pipeline> make_embedding_pipeline() { return std::make_unique<SentenceEmbedding>(); }

}  // namespace redco
