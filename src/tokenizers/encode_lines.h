// Encodes and decodes JSON lines: `redco tokenizer encode` and `decode`.
#pragma once

#include <optional>
#include <string>

#include "tokenizers/tokenizer.h"

namespace redco {

struct TokenizerLines {
  bool special = true;            // encode: add special tokens; decode: keep them in the text
  bool pair = false;              // encode: each line has a second text, "pair"
  std::optional<i64> max_length;  // encode: truncate to this number of ids
};

// Each line {"text": "..."} of `input` becomes a line {"ids": [...]} of `output`, with "type_ids" for pairs.
// A line's "id" is copied. Blank lines are skipped. `input` may be compressed; "-" is standard input or
// standard output. All CPUs work, each on blocks of about 100 kB. An output file is written under a temporary
// name and renamed at the end. ContentsError with file:line for a line that is not such an object or not
// UTF-8; UsageError for a missing file.
void encode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o);

// The inverse: {"ids": [...]} becomes {"text": "..."}. ContentsError for ids outside the vocabulary.
void decode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o);

}  // namespace redco
