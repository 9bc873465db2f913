// Pairs of texts as a Dataset. Every Example has
//   ids["source"]   what the encoder reads
//   ids["labels"]   what the decoder is to write
//   text            the target's text, with references
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/example_index.h"
#include "data/pair_lines.h"
#include "train/pipeline.h"

namespace redco {

class PairDataset : public Dataset {
 public:
  explicit PairDataset(ExampleIndex index) : index_(std::move(index)) {}
  i64 size() const override { return index_.size(); }
  i64 length(i64 i) const override { return index_.entry(i).first_target; }
  i64 target_length(i64 i) const override { return index_.entry(i).targets; }
  Example get(i64 i) const override;
  std::string fingerprint() const override { return index_.data_hash(); }
  bool concurrent() const override { return true; }
  std::string describe() const override;
  const ExampleIndex& index() const { return index_; }

 private:
  ExampleIndex index_;
};

struct PairSource {
  std::vector<std::string> files;  // paths, or built-in (data/builtin.h)
  bool evaluation = false;         // references are kept
  bool skip_bad = false;
};
// The pairs, tokenized once: the first rank makes the index under `cache`, all open it. Collective; errors
// are build_example_index()'s and open_pairs()'.
std::shared_ptr<const PairDataset> make_pair_dataset(const PairSource& source, const PairLines& lines,
                                                     const std::string& cache);

}  // namespace redco
