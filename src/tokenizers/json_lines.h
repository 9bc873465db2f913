// Token ids of JSON lines, and back: what `redco tokenizer` does.
#pragma once

#include <optional>
#include <string>

#include "tokenizers/tokenizer.h"

namespace redco {

struct TokenizerLines {
  bool special = true;            // encode: put special tokens around texts; decode: keep them in the text
  bool pair = false;              // encode: lines have a second text under "pair"
  std::optional<i64> max_length;  // encode: cut to so many ids
};

// Each line {"text": "..."} of `input` becomes a line {"ids": [...]} of `output`, with "type_ids" if there
// are pairs; a line's "id" goes before. Empty lines are passed over. `input` may be gzipped; "-" is standard
// input and standard output. All CPUs work on it, some 100 kB of lines at a time each; an output file appears
// whole, at the end. ContentsError with file:line for a line that is no such object or text that is not
// UTF-8; UsageError for a missing file.
void encode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o);

// The way back: {"ids": [...]} becomes {"text": "..."}. ContentsError also for ids outside the vocabulary.
void decode_lines(const Tokenizer& t, const std::string& input, const std::string& output,
                  const TokenizerLines& o);

}  // namespace redco
