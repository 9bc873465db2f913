// Extractive question answering (SQuAD): the start and the end of the answer in a context. The loss is the
// mean of the cross-entropies of both over the tokens of a row; a row without the answer has the first token
// as target.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "metrics/squad.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"
#include "pipelines/answer_values.h"
#include "pipelines/labelled_data.h"
#include "pipelines/pipelines.h"
#include "pipelines/qa_texts.h"

namespace redco {

namespace {

using AnswerJson = nlohmann::ordered_json;

// The rows of the records: `row_of` makes row k of a record.
class QaRows : public Dataset {
 public:
  using RowsOf = std::function<std::vector<Example>(const Example& record)>;
  QaRows(std::shared_ptr<const Dataset> records, RowsOf rows_of)
      : records_(std::move(records)), rows_of_(std::move(rows_of)) {
    for (i64 i = 0; i < records_->size(); ++i) {
      i32 k = 0;
      for (const Example& row : rows_of_(records_->get(i)))
        rows_.push_back({static_cast<i32>(i), k++, static_cast<i32>(row.ids.at("input_ids").size())});
    }
  }
  i64 size() const override { return static_cast<i64>(rows_.size()); }
  i64 length(i64 i) const override { return rows_[static_cast<size_t>(i)].length; }
  Example get(i64 i) const override {
    const Place& p = rows_[static_cast<size_t>(i)];
    const Example record = records_->get(p.record);
    Example e = rows_of_(record)[static_cast<size_t>(p.row)];
    e.ordinal = i;
    e.ids["record"] = {p.record};
    e.id = record.id.empty() ? std::to_string(p.record) : record.id;
    return e;
  }
  std::string fingerprint() const override { return records_->fingerprint(); }
  Reading reading() const override { return records_->reading(); }
  std::string describe() const override {
    return fmt::format("{} questions in {} rows", records_->size(), rows_.size());
  }

 private:
  struct Place {
    i32 record, row, length;
  };
  std::shared_ptr<const Dataset> records_;
  RowsOf rows_of_;
  std::vector<Place> rows_;
};

class QuestionAnswering : public Pipeline {
 public:
  const ModelParams& params() const override {
    const ModelParams& params = Pipeline::params();
    if (model->task() != ModelTask::question_answering)
      throw UsageError(
          "[pipeline] pipeline: question_answering needs a model for it; this {} model is for {}",
          model->family(), name_of(model->task()));
    if (!tokenizer)
      throw UsageError(
          "[model] the {} model has no tokenizer. Set model.tokenizer to `bytes` or a tokenizer's folder",
          model->family());
    return params;
  }

  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    params();
    frame();
    DataRequest own = request;
    const auto& s = settings->question_answering;
    own.fingerprint += fmt::format("qa 1 {} {}", max_length(), s.doc_stride);
    auto records = read_records(own, settings->data, [&](const Record& r) {
      const QaText t = read_qa_text(r, settings->data.fields);
      if (!t.answers) r.fail("no answers; expected the key answers");
      if (t.answers->empty() && !s.no_answer)
        r.fail("the question has no answer. Set question_answering.no_answer: true for data like SQuAD 2.0");
      Example e;
      e.text = qa_json(t);
      try {
        rows_of(e);
      } catch (const ContentsError& error) {
        r.fail(error.what());
      }
      return e;
    });
    return std::make_shared<QaRows>(std::move(records), [this](const Example& e) { return rows_of(e); });
  }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    const Record r(json, where);
    QaText t = read_qa_text(r, settings->data.fields);
    t.answers.reset();
    Example e;
    e.text = qa_json(t);
    try {
      rows_of(e);
    } catch (const ContentsError& error) {
      r.fail(error.what());
    }
    return e;
  }

  Batch collate(std::span<const Example> mine, const BatchShape& s) const override {
    Batch b;
    b.shape = s;
    add_rows(b, mine);
    for (const int k : {0, 1}) {
      std::vector<i32> targets;
      for (const Example& e : mine) targets.push_back(e.ids.at("target").at(k));
      b.fields[k == 0 ? "start" : "end"] = from_local_ids({s.rows}, targets);
    }
    b.weights["loss"] = static_cast<double>(mine.size());
    return b;
  }
  LossTerms loss(const ParamTree& params, const Batch& b, const StepContext& ctx) const override {
    const Tensor z = logits_of(params, b, ctx);  // [B, S, 2]
    const Scope s("cross-entropy");
    const Tensor start = cross_entropy(side(z, 0), b["start"]), end = cross_entropy(side(z, 1), b["end"]);
    return {{"loss", 0.5 * (sum_all(start) + sum_all(end))}};
  }
  std::string unit() const override { return "rows"; }

  // {"prediction": text, "start", "end": code points of the context, "score", "no_answer_score"}: the best
  // answer of the rows of an example. Scores are sums of two logits.
  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    struct Place {
      size_t example;
      QaRow row;
    };
    std::vector<QaText> texts;
    std::vector<QaTokens> tokens;
    std::vector<Place> places;
    for (size_t i = 0; i < examples.size(); ++i) {
      texts.push_back(read_qa_text(Record(examples[i].text, "the example"), {}));
      tokens.push_back(tokens_of(texts.back()));
      const auto chosen = examples[i].ids.find("row");
      for (size_t k = 0; k < tokens[i].rows.size(); ++k)
        if (chosen == examples[i].ids.end() || chosen->second.at(0) == static_cast<i32>(k))
          places.push_back({i, tokens[i].rows[k]});
    }
    std::vector<Found> best(examples.size());
    const size_t at_once = std::max<size_t>(1, examples.size());
    for (size_t first = 0; first < places.size(); first += at_once) {
      const size_t n = std::min(at_once, places.size() - first);
      std::vector<Example> rows(n);
      Batch b;
      b.shape = {.rows = static_cast<i64>(n), .mine = {0, static_cast<i64>(n)}, .length = 1};
      for (size_t r = 0; r < n; ++r) {
        rows[r] = example_of(places[first + r].row);
        b.shape.length = std::max(b.shape.length, static_cast<i64>(places[first + r].row.ids.size()));
      }
      add_rows(b, rows);
      const std::vector<double> z = answer_values(logits_of(params, b, ctx));
      for (size_t r = 0; r < n; ++r) {
        const Place& p = places[first + r];
        search(
            p.row,
            {z.data() + r * static_cast<size_t>(b.shape.length) * 2, static_cast<size_t>(b.shape.length) * 2},
            best[p.example]);
      }
    }
    std::vector<std::string> out;
    for (size_t i = 0; i < examples.size(); ++i) out.push_back(answer(texts[i], tokens[i], best[i]));
    return out;
  }

  std::string output(const Example& e, const std::string& prediction) const override {
    AnswerJson j = {{"id", e.id.empty() ? AnswerJson(e.ordinal) : AnswerJson::parse(e.id, nullptr, false)}};
    j.update(AnswerJson::parse(e.text));
    j.update(AnswerJson::parse(prediction));
    return j.dump(-1, ' ', false, AnswerJson::error_handler_t::replace);
  }
  bool measures_outputs() const override {
    return settings->eval.metrics != std::vector<std::string>{"loss"};
  }
  // From 0 to 100. A question's answer is the best one of its rows.
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    struct Best {
      std::string text;
      double score = -HUGE_VAL, none = HUGE_VAL;
      std::vector<std::string> answers;
    };
    std::map<i32, Best> questions;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const AnswerJson j = AnswerJson::parse(outputs[i]);
      Best& b = questions[examples[i].ids.at("record").at(0)];
      b.none = std::min(b.none, j.at("no_answer_score").get<double>());
      if (b.answers.empty()) {
        const QaText text = read_qa_text(Record(examples[i].text, "the example"), {});
        for (const QaAnswer& a : *text.answers) b.answers.push_back(a.text);
      }
      if (j.at("score").get<double>() <= b.score) continue;
      b.score = j.at("score");
      b.text = j.at("best");
    }
    double exact = 0, f1 = 0;
    for (const auto& [record, b] : questions) {
      const SquadScore s = squad_score(says_none(b.score, b.none) ? "" : b.text, b.answers);
      exact += s.exact;
      f1 += s.f1;
    }
    const double n = static_cast<double>(std::max<size_t>(1, questions.size()));
    return wanted_metrics("question_answering", settings->eval.metrics,
                          {{"exact_match", 100 * exact / n}, {"f1", 100 * f1 / n}});
  }

 private:
  struct Found {
    i64 first = -1, last = -1;  // tokens of the context; -1: none
    double score = -HUGE_VAL, none = HUGE_VAL;
  };

  bool says_none(double score, double none) const {
    const auto& s = settings->question_answering;
    return s.no_answer && none - score > s.null_score_diff_threshold;
  }

  // The best start and end of a row among the n_best_size largest logits of each.
  void search(const QaRow& row, std::span<const double> z, Found& best) const {
    const auto& s = settings->question_answering;
    best.none = std::min(best.none, z[0] + z[1]);
    std::vector<i64> starts(static_cast<size_t>(row.end - row.begin));
    std::iota(starts.begin(), starts.end(), row.offset);
    std::vector<i64> ends = starts;
    const auto most = std::min(starts.size(), static_cast<size_t>(s.n_best_size));
    for (const int k : {0, 1}) {
      std::vector<i64>& of = k == 0 ? starts : ends;
      std::ranges::partial_sort(of, of.begin() + static_cast<std::ptrdiff_t>(most),
                                [&](i64 a, i64 b) { return z[2 * a + k] > z[2 * b + k]; });
      of.resize(most);
    }
    for (const i64 a : starts)
      for (const i64 b : ends) {
        const double score = z[2 * a] + z[2 * b + 1];
        if (b < a || b - a + 1 > s.max_answer_length || !(score > best.score)) continue;
        best.score = score;
        best.first = row.begin + a - row.offset;
        best.last = row.begin + b - row.offset;
      }
  }

  std::string answer(const QaText& t, const QaTokens& tokens, const Found& found) const {
    std::string text;
    i64 start = 0, end = 0;
    if (found.first >= 0) {
      start = tokens.words[static_cast<size_t>(word_of_token(tokens, found.first))].begin;
      end = tokens.words[static_cast<size_t>(word_of_token(tokens, found.last))].end;
      text = text_between(t.context, start, end);
    }
    const bool none = found.first < 0 || says_none(found.score, found.none);
    const AnswerJson j = {{"prediction", none ? "" : text}, {"start", none ? 0 : start},
                          {"end", none ? 0 : end},          {"score", found.first < 0 ? -1e30 : found.score},
                          {"no_answer_score", found.none},  {"best", text}};
    return j.dump(-1, ' ', false, AnswerJson::error_handler_t::replace);
  }

  // Rows of a record, with the row's targets: the first answer, if all of it is in the row.
  std::vector<Example> rows_of(const Example& record) const {
    const QaText t = read_qa_text(Record(record.text, "the example"), {});
    const QaTokens tokens = tokens_of(t);
    std::pair<i64, i64> answer = {-1, -1};
    if (t.answers && !t.answers->empty()) answer = tokens_of_answer(tokens, t.answers->front());
    std::vector<Example> out;
    for (const QaRow& row : tokens.rows) {
      Example e = example_of(row);
      const bool inside = answer.first >= row.begin && answer.second < row.end && answer.first >= 0;
      const i64 shift = row.offset - row.begin;
      e.ids["target"] = {static_cast<i32>(inside ? answer.first + shift : 0),
                         static_cast<i32>(inside ? answer.second + shift : 0)};
      e.ids["row"] = {static_cast<i32>(out.size())};
      e.text = record.text;
      out.push_back(std::move(e));
    }
    return out;
  }
  static Example example_of(const QaRow& row) {
    Example e;
    e.ids["input_ids"] = row.ids;
    e.ids["types"] = row.types;
    return e;
  }
  QaTokens tokens_of(const QaText& t) const {
    return qa_tokens(*tokenizer, frame(), t, max_length(), settings->question_answering.doc_stride);
  }

  void add_rows(Batch& b, std::span<const Example> mine) const {
    std::vector<Example> masks(mine.size());
    for (size_t r = 0; r < mine.size(); ++r) masks[r].ids["m"].assign(mine[r].ids.at("input_ids").size(), 1);
    b.fields["input_ids"] = id_rows(mine, b.shape, "input_ids", std::max(0, model->pad_token_id()));
    b.fields["key_mask"] = id_rows(masks, b.shape, "m", 0);
    for (const ParamSpec& p : model->params().specs)  // RoBERTa has one token type for all tokens
      if (p.name.ends_with("token_type_embeddings.weight") && p.shape[0] > 1)
        b.fields["types"] = id_rows(mine, b.shape, "types", 0);
  }
  // [B, S, 2]; padding can be neither start nor end.
  Tensor logits_of(const ParamTree& params, const Batch& b, const StepContext& ctx) const {
    EncoderInputs in{.input_ids = b["input_ids"], .key_mask = b["key_mask"]};
    if (b.fields.count("types")) in.token_type_ids = b["types"];
    const Tensor z = model->apply_encoder(params, in, ctx.apply);
    const Tensor mask = reshape(to_float(in.key_mask), {z.size(0), z.size(1), 1});
    return to_sum_type(z) + scale(add_scalar(mask, -1), 1e30);
  }
  static Tensor side(const Tensor& z, i64 k) {
    return reshape(narrow(z, 2, k, 1), {z.size(0), z.size(1)});  // [B, S]
  }
  i64 max_length() const {
    return std::min(settings->data.max_length.value_or(model->max_length()), model->length_limit());
  }
  const PairFrame& frame() const {
    if (!frame_) frame_ = pair_frame(*tokenizer);
    return *frame_;
  }
  mutable std::optional<PairFrame> frame_;
};

}  // namespace

std::unique_ptr<Pipeline> make_question_answering_pipeline() { return std::make_unique<QuestionAnswering>(); }

}  // namespace redco
