// Reads the training text of a tokenizer and counts its words.
//
// A file is plain text, in which each line including its line break is a sequence, or JSON lines {"text":
// ...} (names that end in .jsonl, .ndjson or .json), in which each text is a sequence. Both may be
// compressed. The pre-tokenizer splits sequences into words.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "tokenizers/pre_tokenizers/pre_tokenizers.h"

namespace redco {

// Distinct words and their counts, sorted by bytes.
struct WordCounts {
  std::string text;  // the words, concatenated
  std::vector<u64> ends;
  std::vector<u64> counts;
  u64 text_bytes = 0;  // of all sequences

  std::size_t size() const { return counts.size(); }
  std::string_view word(std::size_t k) const {
    const u64 from = k == 0 ? 0 : ends[k - 1];
    return std::string_view(text).substr(from, ends[k] - from);
  }
};

// Called from time to time, by the calling thread: bytes read from the files, and the files' total size.
using TextProgress = std::function<void(i64 done, i64 total)>;

// Counts the words of `files` with `threads` threads. Each thread needs a few MiB and a table of distinct
// words. The result doesn't depend on `threads`. UsageError for a missing file. ContentsError, with file and
// byte or line, for text that is not UTF-8, for a line that is not {"text": ...}, and for 64 MiB without a
// position to split at.
WordCounts count_words(const std::vector<std::string>& files, const PreTokenizer& splitter, int threads,
                       const TextProgress& progress = {});

}  // namespace redco
