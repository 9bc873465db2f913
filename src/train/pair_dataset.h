// Pairs of texts as a Dataset. Every Example has
//   ids["source"]   what the encoder reads
//   ids["labels"]   what the decoder is to write
//   text            the target's text, with references
#pragma once

#include <functional>
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
// How the records of pairs become what an index holds.
struct PairIndexing {
  const char* what;  // for people
  std::string fingerprint;
  const PairSettings& settings;
  std::function<TokenizedExample(const ExampleRecord&)> read;
  i64 vocab_size = 0;
  bool references = false;
};
// The path of the index that the first rank makes under `cache`, the same on all. Collective; errors are
// build_example_index()'s and open_pairs()'.
std::string make_pair_index(const PairSource& source, const PairIndexing& how, const std::string& cache);

// The pairs, tokenized once: the first rank makes the index under `cache`, all open it. Collective; errors
// are build_example_index()'s and open_pairs()'.
std::shared_ptr<const PairDataset> make_pair_dataset(const PairSource& source, const PairLines& lines,
                                                     const std::string& cache);

}  // namespace redco
