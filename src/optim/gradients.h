// Gradients between backward and update: accumulated over micro-batches in flat buckets, reduced over the
// ranks, and their norm.
#pragma once

#include <unordered_map>
#include <vector>

#include "nn/param_tree.h"
#include "tensor/collectives.h"
#include "tensor/node.h"

namespace redco {

// Maximum number of elements of a bucket, i.e. of one all-reduce (a larger tensor is a bucket alone).
constexpr i64 kBucketElements = 8 << 20;

// Collects the gradients of one step. Each has a place in a bucket, which it gets when its first part arises
// in the backward pass; products write there directly. A bucket holds gradients that are Partial on the same
// axes. In the last micro-batch its all-reduce starts as soon as all of its gradients are complete, and goes
// on during the rest of the backward pass; finish() waits. This is the only communication of data
// parallelism. Places follow from the order of the tape, which is equal on all ranks.
class GradientBuckets final : public GradientSink {
 public:
  // `params` outlives the buckets.
  explicit GradientBuckets(const ParamTree& params, i64 bucket_elements = kBucketElements);

  // A micro-batch begins: its gradients are those of grad() with this sink and with leaves of `watched`
  // (params.watched()) as inputs. last: none follows.
  void begin(const ParamTree& watched, bool last);

  // Reduces what is left. Result i: the gradient of parameter i, with its placement and the same bits on
  // every replica; undefined if no grad() asked for it. The buckets are then empty.
  std::vector<Tensor> finish();

  Tensor room(const Node* leaf, const Shape& shape, DType dtype, const Layout& layout) override;
  bool add(const Node* leaf, const Tensor& part) override;
  void complete(const Node* leaf, SmallVector<Tensor, 2>& rest) override;

 private:
  struct Bucket {
    Tensor flat;
    u32 axes = 0;  // bit a: its gradients are Partial on axis a
    i64 used = 0;  // elements
    std::vector<size_t> members;
    bool full = false, reduced = false;
    u32 left = 0;     // while it is reduced: the axes that come later
    Pending pending;  // the all-reduce in flight; ends before `flat`
  };
  struct Place {
    Tensor sum;       // so far, in its bucket
    int bucket = -1;  // -1: the parameter has no place yet
    bool filled = false, complete = false;
  };
  Place* place_of(const Node* leaf);
  size_t index_of(const Place& p) const { return &p - places_.data(); }
  const Tensor& param_of(const Place& p) const { return params_.values()[index_of(p)]; }
  bool fits(const Place& p, const Layout& layout) const;
  void make_place(Place& p, const Layout& layout);
  void set(Place& p, const Tensor& value);
  void reduce_if_complete(Bucket& b);
  void reduce(Bucket& b);
  static void start_next(Bucket& b);

  const ParamTree& params_;
  const i64 bucket_elements_;
  i64 trained_ = 0, unplaced_ = 0;  // elements of trained parameters, and of those without a place
  std::vector<Place> places_;
  std::vector<Bucket> buckets_;
  std::unordered_map<const Node*, size_t> leaves_;
  bool last_ = true;
};

// The reduced gradients of a loss for all parameters, for a step of one batch; zeros for those that are not
// watched.
std::vector<Tensor> reduced_gradients(const Tensor& loss, const ParamTree& watched, const ParamTree& params);

// The Euclidean norm of all gradients together; each element counts once. One scalar is reduced over mp.
// Undefined tensors are skipped.
double gradient_norm(const std::vector<Tensor>& grads);

}  // namespace redco
