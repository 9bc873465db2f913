// Text pairs as a Dataset. Each Example has
//   ids["source"]   the encoder's input
//   ids["labels"]   the decoder's target
//   text            the target's text, if references are kept
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/text/example_index.h"
#include "data/text/pair_lines.h"
#include "pipeline/pipeline.h"

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
  std::vector<std::string> files;  // paths, or builtin:NAME (data/builtin/builtin.h)
  bool evaluation = false;         // keeps the references
  bool skip_bad = false;
  std::string cache;       // folder of the index
  i64 embedding_rows = 0;  // of the model; every id must be below
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
// Builds the index in the cache, unless it is there, and returns its path. One rank only. Errors as
// build_example_index() and open_pairs().
std::string build_pair_index(const PairSource& source, const PairIndexing& how);
// Opens it. ContentsError for ids that the model's embedding lacks.
ExampleIndex open_pair_index(const PairSource& source, const std::string& path);

// Tokenizes the pairs once: the first rank builds the index, all ranks open it (pipeline/indexed_data.h).
// lines() is called first, on every rank; it checks the settings. Collective. Errors as build_pair_index()
// and open_pair_index().
std::shared_ptr<const Dataset> make_pair_dataset(const PairSource& source,
                                                 const std::function<PairLines()>& lines);

}  // namespace redco
