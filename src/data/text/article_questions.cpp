#include "data/text/article_questions.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log_once.h"
#include "data/text/example_json.h"

namespace redco {

using ArticleJson = nlohmann::ordered_json;

// Fills questions_ if the object is an article.
bool ArticleQuestions::split(const std::string& object) {
  if (object.find("\"paragraphs\"") == std::string::npos || object.find("\"qas\"") == std::string::npos)
    return false;
  ArticleJson article;
  try {
    article = parse_example_line(object);
  } catch (const ContentsError&) {
    return false;  // the reader of the records gives the reason
  }
  const auto list = [&](const ArticleJson& of, const char* key) -> const ArticleJson& {
    if (!of.is_object() || !of.contains(key) || !of[key].is_array())
      throw ContentsError(
          "{}: an article without a list \"{}\"; expected SQuAD's form, {{\"paragraphs\": [{{\"context\", "
          "\"qas\": [{{\"question\", \"answers\"}}]}}]}}",
          where(), key);
    return of[key];
  };
  if (!article.contains("paragraphs")) return false;
  for (const ArticleJson& paragraph : list(article, "paragraphs"))
    for (const ArticleJson& qa : list(paragraph, "qas")) {
      if (!qa.is_object()) throw ContentsError("{}: a question is of type {}", where(), qa.type_name());
      ArticleJson record = qa;
      if (paragraph.contains("context")) record["context"] = paragraph["context"];
      if (article.contains("title")) record["title"] = article["title"];
      questions_.push_back(record.dump(-1, ' ', false, ArticleJson::error_handler_t::replace));
    }
  log_once(LogLevel::info, "[data] " + where().substr(0, where().rfind(':')) +
                               ": articles with paragraphs, read as a record per question");
  return true;
}

bool ArticleQuestions::next(std::string& object) {
  while (questions_.empty()) {
    if (!objects_.next(object)) return false;
    if (!split(object)) return true;
  }
  object = std::move(questions_.front());
  questions_.pop_front();
  return true;
}

}  // namespace redco
