// Text files as a Dataset of token windows (data/lm_data.h): Example.ids["tokens"] has length + 1 tokens.
#pragma once

#include <fmt/format.h>

#include "data/lm_data.h"
#include "train/pipeline.h"

namespace redco {

class WindowDataset : public Dataset {
 public:
  WindowDataset(TokenIndex index, i64 max_length) : index_(std::move(index)), windows_(index_, max_length) {}
  i64 size() const override { return windows_.size(); }
  i64 length(i64 i) const override { return windows_.n_targets(i); }
  Example get(i64 i) const override {
    Example e;
    e.ordinal = i;
    e.ids["tokens"] = windows_.read(i);
    return e;
  }
  std::string fingerprint() const override {
    return fmt::format("{}/{}", index_.data_hash(), windows_.max_length());
  }
  const TokenIndex& index() const { return index_; }

 private:
  TokenIndex index_;
  LmWindows windows_;
};

}  // namespace redco
