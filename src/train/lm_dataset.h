// Texts and examples as Datasets of pipeline lm. Every Example has, as many ids in each:
//   input_ids   what the model reads
//   labels      the token that follows each, -100 where the loss doesn't count it
//   samples     only where a row has samples that don't see one another: their numbers, from 1
// Evaluated examples have ids["prompt"] and text, the reference, besides: for predictions.
#pragma once

#include <memory>
#include <string>

#include "data/lm_data.h"
#include "train/pipeline.h"

namespace redco {

// Windows over the tokens of text files. segmented: the documents in a window don't see one another, and the
// first token of a document, which nothing in its window announces, is no target.
class WindowDataset : public Dataset {
 public:
  WindowDataset(TokenIndex index, i64 max_length, bool segmented = false);
  i64 size() const override { return windows_.size(); }
  i64 length(i64 i) const override { return windows_.n_targets(i); }
  Example get(i64 i) const override;
  std::string fingerprint() const override;
  bool concurrent() const override { return true; }
  const TokenIndex& index() const { return index_; }

 private:
  TokenIndex index_;
  LmWindows windows_;
  bool segmented_;
};

// Rows of examples of JSONL files. segmented: the examples of a row don't see one another, and the first
// token of each is no target; else it is one where its line says so.
class ExampleDataset : public Dataset {
 public:
  ExampleDataset(ExampleIndex index, ExampleRows rows, const RowSettings& settings, bool segmented);
  i64 size() const override { return rows_.size(); }
  i64 length(i64 i) const override { return rows_.tokens(i); }
  Example get(i64 i) const override;
  std::string fingerprint() const override;
  bool concurrent() const override { return true; }
  const ExampleIndex& index() const { return index_; }
  const ExampleRows& rows() const { return rows_; }

 private:
  ExampleIndex index_;
  ExampleRows rows_;
  RowSettings settings_;
  bool segmented_;
};

}  // namespace redco
