// Pairs of texts: from the lines of JSONL, TSV, CSV or parallel files to the ids of a source and a target.
//
//   jsonl      {"source": "...", "target": "..."}; fields.source=translation.en is "en" in the object
//              "translation"
//   tsv, csv   columns by name, or by number from 1 (data/table_reader.h); every row has as many cells as the
//              first
//   parallel   files two by two, sources first: a line of one for each line of the other
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_settings.h"
#include "data/example_lines.h"
#include "data/example_records.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Raised whenever a pair could give other tokens.
inline constexpr u32 kPairVersion = 1;

struct PairSettings {
  std::string format;  // jsonl, tsv, csv, parallel
  ExampleFields fields;
  std::optional<bool> header;  // of tables; nothing: unless both fields are numbers
  std::string source_prefix;
  i64 max_source_length = 0, max_target_length = 0;  // tokens, special ones included

  // The settings': max_length stands for what they leave open, and lengths are at most `limit`. Without a
  // format. UsageErrors name the setting.
  static PairSettings of(const DataSettings& d, i64 max_length, i64 limit);
};

// The format of these files: `format`, or what their names say. UsageError where they say nothing.
std::string pair_format(const DataSettings& d, const std::vector<std::string>& files);

// The pairs of files, one after the other. UsageError for an odd number of parallel files and for columns
// that a table hasn't; ContentsError where of two parallel files one has more lines.
std::unique_ptr<ExampleRecords> open_pairs(const std::vector<std::string>& paths, const PairSettings& s);

class PairLines {
 public:
  // The tokenizer must outlive it.
  PairLines(const Tokenizer& tokenizer, PairSettings settings)
      : tokenizer_(tokenizer), settings_(std::move(settings)) {}

  // An example of ExampleKind::completion whose prompt is the source: source and target behind one another,
  // each cut to its length at the end, with the special tokens that the tokenizer puts around a text. A
  // target ends with the end token in any case. The reference is the target's text, whole. ContentsError with
  // the reason alone; texts of white space are empty.
  TokenizedExample read(const ExampleRecord& r) const;

  // The ids that a source alone stands for.
  std::vector<i32> source_ids(std::string_view text, bool* cut = nullptr) const;
  // The ids that a target stands for: cut to its length, and ended by the end token; `cut` is set where it
  // was.
  std::vector<i32> target_ids(std::string_view text, bool* cut) const;
  // The source of a JSON object: under fields.source, "prompt" or "text". ContentsError with the reason.
  std::string source_of(const std::string& json) const;

  std::string fingerprint() const;
  const PairSettings& settings() const { return settings_; }
  i64 vocab_size() const { return tokenizer_.vocab_size(); }

 private:
  const Tokenizer& tokenizer_;
  PairSettings settings_;
};

}  // namespace redco
