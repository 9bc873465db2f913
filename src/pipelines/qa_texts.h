// Questions with a context that contains the answer, in SQuAD's shape:
//
//   {"question": "...", "context": "...", "answers": {"text": ["Rome"], "answer_start": [17]}}
//
// answers may also be a list of {"text", "answer_start"}; empty: the context has no answer. Positions count
// code points. A long context is read in several rows, which overlap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/records.h"
#include "pipelines/words.h"

namespace redco {

struct QaAnswer {
  std::string text;
  i64 start = 0;  // code point of the context
};

struct QaText {
  std::string question, context;
  std::optional<std::vector<QaAnswer>> answers;  // nullopt: the record has none
};

// ContentsError with the record's place: a missing key; an answer that is not at its place.
QaText read_qa_text(const Record& r, const ExampleFields& fields);
// The record of the usual keys, which read_qa_text() reads.
std::string qa_json(const QaText& t);

// The special tokens of a pair of texts, and the token types of both.
struct PairFrame {
  std::vector<i32> before, between, after;
  i32 first_type = 0, second_type = 0;
  i64 tokens() const { return static_cast<i64>(before.size() + between.size() + after.size()); }
};
PairFrame pair_frame(const Tokenizer& tokenizer);

// A row: the question and tokens [begin, end) of the context, which start at `offset` of the row.
struct QaRow {
  std::vector<i32> ids, types;
  i64 begin = 0, end = 0, offset = 0;
};

// A question as tokens.
struct QaTokens {
  std::vector<Word> words;  // of the context
  WordTokens context;
  std::vector<QaRow> rows;  // overlap: tokens that two rows share
};
// UsageError: the question leaves no room for more than `overlap` tokens of the context.
QaTokens qa_tokens(const Tokenizer& tokenizer, const PairFrame& frame, const QaText& text, i64 max_length,
                   i64 overlap);
// The tokens [first, last] of the words that an answer covers.
std::pair<i64, i64> tokens_of_answer(const QaTokens& t, const QaAnswer& answer);
// The index of the word of a token.
i64 word_of_token(const QaTokens& t, i64 token);

}  // namespace redco
