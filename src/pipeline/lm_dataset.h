// Texts and examples as Datasets of pipeline lm. Each Example has these fields of equal length:
//   input_ids   the model's input
//   labels      the token that follows each input token, -100 where the loss doesn't count it
//   samples     only if attention stops at the borders of a row's samples: their numbers, from 1
// Evaluated examples also have ids["prompt"] and text, the reference, for predictions.
#pragma once

#include <memory>
#include <string>

#include "data/text/example_index.h"
#include "data/text/lm_windows.h"
#include "data/text/packing.h"
#include "data/text/token_index.h"
#include "pipeline/pipeline.h"

namespace redco {

// Windows over the tokens of text files. segmented: attention stops at document borders, and the first token
// of a document is no target because nothing before it in the window predicts it.
class WindowDataset : public Dataset {
 public:
  WindowDataset(TokenIndex index, i64 max_length, bool segmented = false);
  i64 size() const override { return windows_.size(); }
  i64 length(i64 i) const override { return windows_.n_targets(i); }
  Example get(i64 i) const override;
  std::string fingerprint() const override;
  Reading reading() const override { return Reading::threads; }
  const TokenIndex& index() const { return index_; }

 private:
  TokenIndex index_;
  LmWindows windows_;
  bool segmented_;
};

// Rows of examples of JSONL files. segmented: attention stops at the borders of examples, and the first token
// of each is no target. Otherwise the example's line decides which tokens are targets.
class ExampleDataset : public Dataset {
 public:
  ExampleDataset(ExampleIndex index, ExampleRows rows, const RowSettings& settings, bool segmented);
  i64 size() const override { return rows_.size(); }
  i64 length(i64 i) const override { return rows_.tokens(i); }
  Example get(i64 i) const override { return get(i, {}); }
  std::string fingerprint() const override;
  Reading reading() const override { return Reading::threads; }
  // With packing, rows combine other examples in each epoch.
  std::shared_ptr<const Dataset> of_epoch(std::shared_ptr<const Dataset> self, u64 seed,
                                          i64 epoch) const override;
  // Row i of a packing order.
  Example get(i64 i, const PackingOrder& order) const;
  const ExampleIndex& index() const { return index_; }
  const ExampleRows& rows() const { return rows_; }

 private:
  ExampleIndex index_;
  ExampleRows rows_;
  RowSettings settings_;
  bool segmented_;
};

}  // namespace redco
