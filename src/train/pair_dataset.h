// Text pairs as a Dataset. Each Example has
//   ids["source"]   the encoder's input
//   ids["labels"]   the decoder's target
//   text            the target's text, if references are kept
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
  Reading reading() const override { return Reading::threads; }
  std::string describe() const override;
  const ExampleIndex& index() const { return index_; }

 private:
  ExampleIndex index_;
};

struct PairSource {
  std::vector<std::string> files;  // paths, or builtin:NAME (data/builtin.h)
  bool evaluation = false;         // keeps the references
  bool skip_bad = false;
};
// How records become the entries of an index.
struct PairIndexing {
  const char* what;  // for the progress display
  std::string fingerprint;
  const PairSettings& settings;
  std::function<TokenizedExample(const ExampleRecord&)> read;
  i64 vocab_size = 0;
  bool references = false;
};
// The first rank builds the index in `cache`; its path is returned on all ranks. Collective. Errors as
// build_example_index() and open_pairs().
std::string make_pair_index(const PairSource& source, const PairIndexing& how, const std::string& cache);

// Tokenizes the pairs once: the first rank builds the index in `cache`, all ranks open it. Collective. Errors
// as build_example_index() and open_pairs().
std::shared_ptr<const PairDataset> make_pair_dataset(const PairSource& source, const PairLines& lines,
                                                     const std::string& cache);

}  // namespace redco
