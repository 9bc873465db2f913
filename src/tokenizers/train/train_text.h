// The text that a tokenizer learns from, and how often each of its words is there.
//
// Files are plain text, where each line with its end is a sequence, or JSON lines {"text": ...} (names that
// end in .jsonl, .ndjson or .json), where each text is one; .gz of either. A sequence is split by the
// tokenizer's pre-tokenizer; what comes out are the words.
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
  std::string text;  // one word after the other
  std::vector<u64> ends;
  std::vector<u64> counts;
  u64 text_bytes = 0;  // of all sequences

  std::size_t size() const { return counts.size(); }
  std::string_view word(std::size_t k) const {
    const u64 from = k == 0 ? 0 : ends[k - 1];
    return std::string_view(text).substr(from, ends[k] - from);
  }
};

// progress(stored bytes read, of how many) is called now and then, by one thread at a time.
using TextProgress = std::function<void(i64 done, i64 total)>;

// Counts the words of `files` with `threads` threads. Memory: some MiB a thread and what the distinct words
// take, once a thread; the result is the same for any number of them. Errors: UsageError for a missing file;
// ContentsError, with file and byte or line, for text that is not UTF-8, for a line that is no {"text": ...},
// and for 64 MiB without a place to cut.
WordCounts count_words(const std::vector<std::string>& files, const PreTokenizer& splitter, int threads,
                       const TextProgress& progress = {});

}  // namespace redco
