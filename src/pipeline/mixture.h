// Training data from several sources, mixed by weight.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/index/epoch_order.h"
#include "pipeline/pipeline.h"

namespace redco {

// Version of the mixture's algorithm, part of the fingerprint.
inline constexpr int kMixtureVersion = 1;

// The examples of one epoch of a mixture. Nothing is stored: an example follows from (seed, epoch, index).
//
// Version 1: an epoch has N examples, the sum of the sources' sizes. Source k gives n_k of them, the share of
// its weight; the n_k are rounded by largest remainders. Its draws are numbered through all epochs: epoch e
// has draws e n_k to (e + 1) n_k - 1. Draw d is example d mod s_k of pass d / s_k over the source of size
// s_k, in the EpochOrder of that pass. So every example of a source is drawn once before any is drawn again.
class Mixture : public Dataset {
 public:
  struct Source {
    std::string name;
    double weight;
    std::shared_ptr<const Dataset> data;
  };
  // The mixture's epoch 0. UsageError if a source has no example, or gets none for its small weight.
  explicit Mixture(std::vector<Source> sources, u64 seed = 0);

  i64 size() const override { return size_; }
  i64 length(i64 i) const override;
  i64 target_length(i64 i) const override;
  Example get(i64 i) const override;  // ordinal: index in the sources, one after the other
  std::string fingerprint() const override;
  Reading reading() const override;
  std::shared_ptr<const Dataset> of_epoch(std::shared_ptr<const Dataset> self, u64 seed,
                                          i64 epoch) const override;
  std::string describe() const override;

  // The number of a source's examples in each epoch.
  i64 share(std::size_t source) const { return parts_[source].n; }

 private:
  struct Pass {
    EpochOrder order;
    std::shared_ptr<const Dataset> data;
  };
  struct Part {
    i64 n = 0;                 // of its examples in an epoch
    i64 begin = 0;             // the first of them
    i64 first_ordinal = 0;     // of the source
    i64 first_draw = 0;        // of this epoch
    std::vector<Pass> passes;  // of this epoch; the first one is first_draw / size
  };
  struct Place {
    std::size_t source;
    const Dataset* data;
    i64 index;
  };
  void begin_epoch(u64 seed, i64 epoch);
  Place place(i64 i) const;

  std::vector<Source> sources_;
  std::vector<Part> parts_;
  i64 size_ = 0;
};

}  // namespace redco
