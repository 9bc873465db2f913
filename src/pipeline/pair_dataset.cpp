#include "pipeline/pair_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/progress.h"
#include "base/words.h"
#include "data/builtin/builtin.h"
#include "pipeline/indexed_data.h"

namespace redco {

Example PairDataset::get(i64 i) const {
  StoredExample s = index_.read(index_.entry(i));
  Example e;
  e.ordinal = i;
  e.ids["labels"].assign(s.ids.begin() + s.prompt_tokens, s.ids.end());
  s.ids.resize(static_cast<std::size_t>(s.prompt_tokens));
  e.ids["source"] = std::move(s.ids);
  e.id = std::move(s.id);
  e.text = std::move(s.reference);
  return e;
}

std::string PairDataset::describe() const {
  i64 source = 0, target = 0;
  std::vector<ExampleEntry> some;
  for (i64 at = 0; at < size(); at += static_cast<i64>(some.size())) {
    some.resize(static_cast<std::size_t>(std::min<i64>(4096, size() - at)));
    index_.entries(at, some);
    for (const ExampleEntry& e : some) {
      source = std::max(source, i64{e.first_target});
      target = std::max(target, i64{e.targets});
    }
  }
  std::string s = fmt::format("{} of {} and {} tokens, at most {} and {}", counted(size(), "pair"),
                              index_.n_tokens() - index_.n_targets(), index_.n_targets(), source, target);
  if (index_.n_cut() > 0)
    s += fmt::format("; {} truncated to data.max_source_length or data.max_target_length", index_.n_cut());
  if (index_.n_bad() > 0) s += "\n" + index_.describe_bad();
  return s;
}

std::string build_pair_index(const PairSource& source, const PairIndexing& how) {
  const std::vector<std::string> paths = data_files(source.files, source.evaluation, source.cache);
  LateProgress progress(
      fmt::format("tokenize {} {}", source.evaluation ? "evaluation" : "training", how.what));
  return build_example_index({.paths = paths,
                              .fingerprint = how.fingerprint,
                              .open = [&] { return open_pairs(paths, how.settings); },
                              .read = how.read,
                              .skip_bad = source.skip_bad,
                              .references = how.references},
                             how.vocab_size, source.cache,
                             [&](i64 done, i64 total) { progress(done, total); });
}

ExampleIndex open_pair_index(const PairSource& source, const std::string& path) {
  ExampleIndex index =
      ExampleIndex::open(path, data_file_names(source.files, source.evaluation, source.cache));
  index.check_vocab(source.embedding_rows);
  return index;
}

std::shared_ptr<const Dataset> make_pair_dataset(const PairSource& source,
                                                 const std::function<PairLines()>& lines) {
  std::optional<PairLines> reader;
  return open_indexed({.prepare =
                           [&] {
                             reader.emplace(lines());
                             note_end_token(reader->tokenizer().target(), "targets");
                           },
                       .build =
                           [&] {
                             return build_pair_index(
                                 source, {.what = "data",
                                          .fingerprint = reader->fingerprint(),
                                          .settings = reader->settings(),
                                          .read = [&](const ExampleRecord& r) { return reader->read(r); },
                                          .vocab_size = reader->vocab_size(),
                                          .references = source.evaluation});
                           },
                       .open =
                           [&](const std::string& path) {
                             return std::make_shared<PairDataset>(open_pair_index(source, path));
                           }});
}

}  // namespace redco
