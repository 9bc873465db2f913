// Gradients between backward and update: accumulated over micro-batches, and reduced over the ranks in flat
// buckets.
#pragma once

#include <utility>
#include <vector>

#include "nn/param_tree.h"
#include "optim/optimizer.h"
#include "tensor/collectives.h"
#include "tensor/node.h"

namespace redco {

// Maximum number of elements of a bucket, i.e. of one all-reduce (a larger tensor is a bucket alone).
constexpr i64 kBucketElements = 8 << 20;

// Collects the gradients of one step. Each has a place in a bucket, which it gets when its first part arises
// in the backward pass; products write there directly. A bucket holds gradients that are Partial on the same
// axes. Its reduction starts as soon as all of its gradients are complete, and goes on during the rest of the
// backward pass; finish() waits. This is the only communication of data parallelism. Places follow from the
// order of the tape, which is equal on all ranks.
//
// Micro-batches are added in the bucket, which is reduced in the last one. With sharded gradients
// (StateSharding) a bucket is reduced in each micro-batch: every rank adds up its part, and the bucket is
// gone. The sum is then over replicas first, so it differs by rounding. With a sharded optimizer, and one
// micro-batch with sharded gradients, the bits are those of unsharded state.
class GradientBuckets final : public GradientSink {
 public:
  // `params` outlives the buckets.
  explicit GradientBuckets(const ParamTree& params, StateSharding sharding = StateSharding::none,
                           i64 bucket_elements = kBucketElements);

  // A micro-batch begins: its gradients are those of grad() with this sink and with leaves of `watched`
  // (params.watched()) as inputs. last: none follows.
  void begin(const ParamTree& watched, bool last);

  // Reduces the rest. Result i: the gradient of parameter i, with the placement of its state
  // (state_layout(): its own unless sharded) and the same bits on every replica; undefined if no grad() asked
  // for it. The buckets are then empty.
  std::vector<Tensor> finish();
  // The parameters whose gradients the last finish() returned as 0, because no path leads to them.
  const std::vector<size_t>& unreached() const { return unreached_; }

  Tensor room(const Node* leaf, const Shape& shape, DType dtype, const Layout& layout) override;
  bool add(const Node* leaf, const Tensor& part) override;
  void complete(const Node* leaf, SmallVector<Tensor, 2>& rest) override;

 private:
  struct Bucket {
    Tensor flat;
    u32 axes = 0;  // bit a: its gradients are Partial on axis a
    i64 used = 0;  // elements
    std::vector<size_t> members;
    bool full = false, started = false;
    u32 left = 0, summed = 0;   // axes: to be reduced later, and those of all-reduces
    Axis scattered = Axis::dp;  // the axis that `parts` come from
    Tensor parts;               // receives this rank's parts of the gradients
    Pending pending;            // what is in flight; ends before `flat` and `parts`
  };
  struct Place {
    Tensor reduced;   // the sum of the buckets that are reduced
    Tensor sum;       // so far, in its bucket
    int bucket = -1;  // -1: the parameter has no place yet
    bool filled = false, complete = false;
    bool reached = false;  // a part arose in this step
  };
  Place* place_of(const Node* leaf);
  size_t index_of(const Place& p) const { return &p - places_.data(); }
  const Tensor& param_of(const Place& p) const { return params_.values()[index_of(p)]; }
  bool fits(const Place& p, const Layout& layout) const;
  void make_place(Place& p, const Layout& layout);
  void set(Place& p, const Tensor& value);
  void reduce_if_complete(Bucket& b);
  void reduce(Bucket& b);
  void start_next(Bucket& b);
  bool start_scatter(Bucket& b, Axis a);
  void adopt_parts(Bucket& b);
  void complete_reduction(Bucket& b);
  void reduce_all();
  bool reduces_each() const { return sharding_ >= StateSharding::gradients; }

  const ParamTree& params_;
  const StateSharding sharding_;
  const i64 bucket_elements_;
  i64 trained_ = 0, unplaced_ = 0;  // elements of trained parameters, and of those without a place
  std::vector<Place> places_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<const Node*, size_t>> leaves_;  // sorted
  std::vector<size_t> unreached_;
  bool last_ = true;
};

// The reduced gradients of a loss for all parameters, for a step of one batch. Those of parameters that are
// not watched are zero.
std::vector<Tensor> reduced_gradients(const Tensor& loss, const ParamTree& watched, const ParamTree& params,
                                      StateSharding sharding = StateSharding::none);

}  // namespace redco
