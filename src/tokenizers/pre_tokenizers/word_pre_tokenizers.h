// Pre-tokenizers that split a text into words without a regular expression.
#pragma once

#include <memory>
#include <string>

#include "base/json_fields.h"
#include "tokenizers/pre_tokenizers/pre_tokenizers.h"

namespace redco {

// Words between white space.
std::unique_ptr<PreTokenizer> make_whitespace_split();

// Runs of word characters and runs of other characters: \w+|[^\w\s]+ of Rust's regex.
std::unique_ptr<PreTokenizer> make_whitespace();

// Words between white space, split at each punctuation character.
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();

// Runs of one script. A space or a character without a script belongs to the run before it; it is dropped at
// the start of the text.
std::unique_ptr<PreTokenizer> make_unicode_scripts();

// Pieces of n characters.
std::unique_ptr<PreTokenizer> make_fixed_length(i64 n);

// Where Metaspace prepends its mark to a text that doesn't start with it. first: only at the start of the
// whole text.
enum class PrependScheme { always, first, never };

// Replaces spaces by `mark`. With `split`, each mark starts a piece.
struct MetaspaceOptions {
  std::string mark;  // one character
  PrependScheme scheme = PrependScheme::always;
  bool split = true;
};
std::unique_ptr<PreTokenizer> make_metaspace(MetaspaceOptions options);

// Reads the fields of a Metaspace pre-tokenizer or decoder. ContentsError for invalid values.
MetaspaceOptions read_metaspace(JsonFields& f);

}  // namespace redco
