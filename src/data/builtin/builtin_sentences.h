// Generated sentences about facts, for the pipelines of texts. Lines of JSONL; see builtin.h.
#pragma once

#include <string>

namespace redco {

// {"anchor", "positive", "negative"}: the positive says the same in other words, the negative differs in one.
std::string paraphrase_lines(bool evaluation);
// {"sentence1", "sentence2", "score"}: the share of equal facts.
std::string similarity_lines(bool evaluation);

// {"tokens", "tags"}: owners, things and places.
std::string entity_lines(bool evaluation);
// {"question", "context", "answers"}: where a thing of one of four owners is.
std::string question_lines(bool evaluation);
// {"context", "question", "choices", "label"}: the colour of a thing, or its owner.
std::string choice_lines(bool evaluation);
// {"text", "label": [...]}: the kinds of one to three things.
std::string topic_lines(bool evaluation);

}  // namespace redco
