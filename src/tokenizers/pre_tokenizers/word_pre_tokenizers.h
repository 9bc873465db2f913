// Pre-tokenizers that cut a text into words without a regular expression.
#pragma once

#include <memory>
#include <string>

#include "base/json_fields.h"
#include "tokenizers/pre_tokenizers/pre_tokenizers.h"

namespace redco {

// Words between white space.
std::unique_ptr<PreTokenizer> make_whitespace_split();

// Runs of word characters and runs of others: \w+|[^\w\s]+ of Rust's regex.
std::unique_ptr<PreTokenizer> make_whitespace();

// Words between white space, cut at each punctuation character.
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();

// Runs of one script. A space and characters of no script go with what is before them, and vanish where
// nothing is.
std::unique_ptr<PreTokenizer> make_unicode_scripts();

// Pieces of n characters.
std::unique_ptr<PreTokenizer> make_fixed_length(i64 n);

// Whether Metaspace puts its character in front of a piece that doesn't start with it.
enum class PrependScheme { always, first, never };  // first: where the piece starts the text

// Spaces become `mark`; with `split` every one of them starts a piece.
struct MetaspaceOptions {
  std::string mark;  // one character
  PrependScheme scheme = PrependScheme::always;
  bool split = true;
};
std::unique_ptr<PreTokenizer> make_metaspace(MetaspaceOptions options);

// The fields of a Metaspace, be it pre-tokenizer or decoder. ContentsError for values it can't have.
MetaspaceOptions read_metaspace(JsonFields& f);

}  // namespace redco
