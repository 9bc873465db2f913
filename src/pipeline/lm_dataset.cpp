#include "pipeline/lm_dataset.h"

#include <fmt/format.h>

#include <algorithm>

namespace redco {

WindowDataset::WindowDataset(TokenIndex index, i64 max_length, bool segmented)
    : index_(std::move(index)), windows_(index_, max_length), segmented_(segmented) {}

Example WindowDataset::get(i64 i) const {
  const auto n = static_cast<std::size_t>(windows_.length(i));
  std::vector<i32> tokens(n);
  std::vector<std::uint8_t> ends(segmented_ ? n : 0);
  windows_.read(i, tokens, ends);
  Example e;
  e.ordinal = i;
  auto& labels = e.ids["labels"];
  labels.assign(tokens.begin() + 1, tokens.end());
  if (segmented_) {
    auto& samples = e.ids["samples"];
    i32 sample = 1;
    for (std::size_t t = 0; t + 1 < n; ++t) {
      samples.push_back(sample);
      if (!ends[t]) continue;
      labels[t] = -100;
      ++sample;
    }
  }
  tokens.pop_back();
  e.ids["input_ids"] = std::move(tokens);
  return e;
}

std::string WindowDataset::fingerprint() const {
  return fmt::format("{}/{}{}", index_.data_hash(), windows_.max_length(), segmented_ ? "/segmented" : "");
}

ExampleDataset::ExampleDataset(ExampleIndex index, ExampleRows rows, const RowSettings& settings,
                               bool segmented)
    : index_(std::move(index)), rows_(std::move(rows)), settings_(settings), segmented_(segmented) {}

namespace {

// Rows of examples in the packing order of an epoch.
class PackedEpoch : public Dataset {
 public:
  PackedEpoch(std::shared_ptr<const Dataset> owner, const ExampleDataset& data, const PackingOrder& order)
      : owner_(std::move(owner)), data_(&data), order_(order) {}
  i64 size() const override { return data_->size(); }
  i64 length(i64 i) const override { return data_->rows().tokens(i, order_); }
  Example get(i64 i) const override { return data_->get(i, order_); }
  std::string fingerprint() const override { return data_->fingerprint(); }
  Reading reading() const override { return data_->reading(); }

 private:
  std::shared_ptr<const Dataset> owner_;  // keeps data_
  const ExampleDataset* data_;
  PackingOrder order_;
};

}  // namespace

std::shared_ptr<const Dataset> ExampleDataset::of_epoch(std::shared_ptr<const Dataset> self, u64 seed,
                                                        i64 epoch) const {
  if (!settings_.packing) return self;
  return std::make_shared<PackedEpoch>(std::move(self), *this, PackingOrder{seed, epoch});
}

Example ExampleDataset::get(i64 i, const PackingOrder& order) const {
  Example e;
  e.ordinal = i;
  auto &ids = e.ids["input_ids"], &labels = e.ids["labels"];
  std::vector<i32> samples;
  const std::vector<RowPiece> pieces = rows_.pieces(i, order);
  for (const RowPiece& p : pieces) {
    const ExampleEntry entry = index_.entry(static_cast<i64>(p.example));
    const StoredExample s = index_.read(entry);
    const std::size_t begin = std::min<std::size_t>(p.begin, s.ids.size());
    const std::size_t end = std::min<std::size_t>(begin + p.length, s.ids.size());
    for (std::size_t t = begin; t < end; ++t) {
      // Each token is the label of the previous token in the row.
      if (!ids.empty()) {
        const bool first = t == begin;
        labels.push_back(s.in_loss[t] && !(first && (segmented_ || p.begin > 0)) ? s.ids[t] : -100);
      }
      ids.push_back(s.ids[t]);
      samples.push_back(static_cast<i32>(&p - pieces.data()) + 1);
    }
    if (pieces.size() > 1) continue;
    e.id = s.id;
    e.text = s.reference;
    if (s.prompt_tokens > 0 && !s.reference.empty())
      e.ids["prompt"].assign(s.ids.begin(), s.ids.begin() + s.prompt_tokens);
  }
  labels.push_back(-100);
  if (segmented_) e.ids["samples"] = std::move(samples);
  return e;
}

std::string ExampleDataset::fingerprint() const {
  return fmt::format("{}/{}/{}/{}/{}", index_.data_hash(), settings_.max_length,
                     settings_.packing ? fmt::format("packed {}", kRowsVersion) : "single",
                     settings_.too_long.empty() ? "auto" : settings_.too_long,
                     segmented_ ? "segmented" : "across");
}

}  // namespace redco
