#include "pipelines/qa_texts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"
#include "pipelines/record_keys.h"

namespace redco {

namespace {

using QaJson = nlohmann::ordered_json;

i64 code_points(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::vector<QaAnswer> answers_of(const Record& r, const std::string& key) {
  const QaJson j = QaJson::parse(r.json(key));
  std::vector<QaAnswer> out;
  const auto add = [&](const QaJson& text, const QaJson& start) {
    if (!text.is_string() || !start.is_number_integer())
      r.fail(fmt::format("\"{}\": expected a text and answer_start, a whole number", key));
    out.push_back({text, start});
  };
  if (j.is_object() && j.contains("text") && j.contains("answer_start") && j["text"].is_array() &&
      j["answer_start"].is_array() && j["text"].size() == j["answer_start"].size()) {
    for (std::size_t i = 0; i < j["text"].size(); ++i) add(j["text"][i], j["answer_start"][i]);
  } else if (j.is_array() || (j.is_object() && j.contains("text"))) {
    for (const QaJson& one : j.is_array() ? j : QaJson::array({j})) {
      if (!one.is_object() || !one.contains("text") || !one.contains("answer_start"))
        r.fail(fmt::format("\"{}\": expected objects with text and answer_start", key));
      add(one["text"], one["answer_start"]);
    }
  } else {
    r.fail(
        fmt::format("\"{}\": expected {{\"text\": [...], \"answer_start\": [...]}} of equal lengths", key));
  }
  return out;
}

}  // namespace

QaText read_qa_text(const Record& r, const ExampleFields& fields) {
  const std::string question = key_of(r, fields.question, {"question"}),
                    context = key_of(r, fields.context, {"context", "passage"}),
                    answers = key_of(r, fields.answers, {"answers", "answer"});
  if (question.empty()) r.fail("no question; data.fields.question names another key");
  if (context.empty()) r.fail("no context; data.fields.context names another key");
  QaText out{r.text(question), r.text(context), std::nullopt};
  if (answers.empty()) return out;
  out.answers = answers_of(r, answers);
  const i64 length = code_points(out.context);
  for (const QaAnswer& a : *out.answers) {
    const i64 n = code_points(a.text);
    if (a.start < 0 || n == 0 || a.start + n > length ||
        text_between(out.context, a.start, a.start + n) != a.text)
      r.fail(fmt::format("the context has no '{}' at answer_start {}", excerpt(a.text), a.start));
  }
  return out;
}

std::string qa_json(const QaText& t) {
  QaJson j = {{"question", t.question}, {"context", t.context}};
  if (t.answers) {
    j["answers"] = {{"text", QaJson::array()}, {"answer_start", QaJson::array()}};
    for (const QaAnswer& a : *t.answers) {
      j["answers"]["text"].push_back(a.text);
      j["answers"]["answer_start"].push_back(a.start);
    }
  }
  return j.dump(-1, ' ', false, QaJson::error_handler_t::replace);
}

PairFrame pair_frame(const Tokenizer& tokenizer) {
  const std::vector<i32> a = tokenizer.encode("a", false);
  const Encoding pair = tokenizer.encode_pair("a", "a");
  const auto& ids = pair.ids;
  const auto first = std::search(ids.begin(), ids.end(), a.begin(), a.end());
  const auto after_first = first == ids.end() ? first : first + static_cast<std::ptrdiff_t>(a.size());
  const auto second = std::search(after_first, ids.end(), a.begin(), a.end());
  if (a.empty() || second == ids.end())
    throw UsageError("[tokenizer] {}: a pair of texts does not contain the texts' own tokens",
                     tokenizer.name());
  PairFrame f;
  f.before.assign(ids.begin(), first);
  f.between.assign(after_first, second);
  f.after.assign(second + static_cast<std::ptrdiff_t>(a.size()), ids.end());
  f.first_type = pair.type_ids[static_cast<std::size_t>(first - ids.begin())];
  f.second_type = pair.type_ids[static_cast<std::size_t>(second - ids.begin())];
  return f;
}

QaTokens qa_tokens(const Tokenizer& tokenizer, const PairFrame& frame, const QaText& text, i64 max_length,
                   i64 overlap) {
  QaTokens out;
  out.words = words_of_text(text.context);
  out.context = tokens_of_words(tokenizer, out.words);
  const std::vector<i32> question = tokenizer.encode(text.question, false);
  const i64 room = max_length - frame.tokens() - static_cast<i64>(question.size());
  const i64 all = static_cast<i64>(out.context.ids.size());
  if (all == 0) throw ContentsError("the context has no tokens after tokenization");
  if (room < 1 || (all > room && room <= overlap))
    throw ContentsError(
        "the question has {} tokens, so a row of {} has room for {} of the context; expected more than "
        "question_answering.doc_stride={}. Set a larger data.max_length or a smaller doc_stride",
        question.size(), max_length, std::max<i64>(0, room), overlap);
  for (i64 begin = 0;; begin += room - overlap) {
    QaRow row;
    row.begin = begin;
    row.end = std::min(all, begin + room);
    const auto add = [&](const std::vector<i32>& ids, i32 type) {
      row.ids.insert(row.ids.end(), ids.begin(), ids.end());
      row.types.resize(row.ids.size(), type);
    };
    add(frame.before, frame.first_type);
    add(question, frame.first_type);
    add(frame.between, frame.first_type);
    row.offset = static_cast<i64>(row.ids.size());
    add({out.context.ids.begin() + row.begin, out.context.ids.begin() + row.end}, frame.second_type);
    add(frame.after, frame.second_type);
    out.rows.push_back(std::move(row));
    if (out.rows.back().end == all) return out;
  }
}

std::pair<i64, i64> tokens_of_answer(const QaTokens& t, const QaAnswer& answer) {
  const i64 begin = answer.start, end = begin + code_points(answer.text);
  i64 first = -1, last = -1;
  for (std::size_t w = 0; w < t.words.size(); ++w) {
    if (t.words[w].end <= begin || t.words[w].begin >= end || t.context.first[w] == t.context.first[w + 1])
      continue;
    if (first < 0) first = t.context.first[w];
    last = t.context.first[w + 1] - 1;
  }
  return {first, last};
}

i64 word_of_token(const QaTokens& t, i64 token) {
  const auto after =
      std::upper_bound(t.context.first.begin(), t.context.first.end(), static_cast<i32>(token));
  return std::min<i64>(after - t.context.first.begin() - 1, static_cast<i64>(t.words.size()) - 1);
}

}  // namespace redco
