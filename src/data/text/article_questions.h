// The records of JSON files (data/text/json_objects.h). An article of SQuAD's files becomes a record per
// question:
//
//   {"title": "...", "paragraphs": [{"context": "...", "qas": [{"id": "...", "question": "...",
//     "answers": [{"text": "...", "answer_start": 14}]}]}]}
//
// gives {"id", "question", "context", "answers", "title"} and the other members of the question. The log
// mentions it. Other objects stay as they are.
#pragma once

#include <deque>
#include <string>

#include "data/text/json_objects.h"

namespace redco {

class ArticleQuestions {
 public:
  explicit ArticleQuestions(const std::string& path) : objects_(path) {}

  // Errors as JsonObjects::next(); ContentsError for an article whose paragraphs have another form.
  bool next(std::string& object);
  i64 line_number() const { return objects_.line_number(); }  // the article's first line
  std::string where() const { return objects_.where(); }
  u64 stored_position() const { return objects_.stored_position(); }

 private:
  bool split(const std::string& object);

  JsonObjects objects_;
  std::deque<std::string> questions_;  // of the last article
};

}  // namespace redco
