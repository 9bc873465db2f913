// Text pairs: from the lines of JSONL, TSV, CSV or parallel files to the ids of a source and a target.
//
//   jsonl      {"source": "...", "target": "..."}; fields.source=translation.en is "en" in the object
//              "translation"
//   tsv, csv   columns by name, or by number from 1 (data/labelled/table_reader.h); every row has as many
//   cells as the
//              first
//   parallel   pairs of files, the source first: line n of one belongs to line n of the other
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_settings.h"
#include "data/text/example_lines.h"
#include "data/text/example_records.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Raised when a pair could give other tokens.
inline constexpr u32 kPairVersion = 1;

struct PairSettings {
  std::string format;  // jsonl, json, tsv, csv, parquet, parallel
  ExampleFields fields;
  std::optional<bool> header;  // of tables; nullopt: unless both fields are numbers
  std::string source_prefix;
  i64 max_source_length = 0, max_target_length = 0;  // tokens, special tokens included
  std::optional<std::string> where;                  // data.where
  bool whole_records = false;  // rows of tables as records with all columns, not as two texts

  // From the data settings: max_length replaces missing lengths, and lengths are at most `limit`. The format
  // is not set. UsageErrors name the setting.
  static PairSettings of(const DataSettings& d, i64 max_length, i64 limit);
};

// The format of these files: data.format, else from the file names. UsageError if the names don't tell.
std::string pair_format(const DataSettings& d, const std::vector<std::string>& files);

// The pairs of files, one after another. UsageError for an odd number of parallel files and for unknown
// columns; ContentsError if one of two parallel files has more lines.
std::unique_ptr<ExampleRecords> open_pairs(const std::vector<std::string>& paths, const PairSettings& s);

class PairLines {
 public:
  // The tokenizer must outlive the object.
  PairLines(const Tokenizer& tokenizer, PairSettings settings)
      : tokenizer_(tokenizer), settings_(std::move(settings)) {}

  // An example of ExampleKind::completion: the source is the prompt, the target follows. Each is truncated at
  // its end to its maximum length and has the tokenizer's special tokens. A target always ends with the end
  // token. The reference is the full text of the target. ContentsError with the reason, without the place;
  // texts of white space count as empty.
  TokenizedExample read(const ExampleRecord& r) const;

  // The ids of a source.
  std::vector<i32> source_ids(std::string_view text, bool* cut = nullptr) const;
  // The ids of a target: truncated to its maximum length, then the end token. Sets `cut` if it was truncated.
  std::vector<i32> target_ids(std::string_view text, bool* cut) const;
  // The source of a JSON object: under fields.source, "prompt" or "text". ContentsError with the reason.
  std::string source_of(const std::string& json) const;

  std::string fingerprint() const;
  const PairSettings& settings() const { return settings_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  i64 vocab_size() const { return tokenizer_.vocab_size(); }

 private:
  const Tokenizer& tokenizer_;
  PairSettings settings_;
};

}  // namespace redco
