// One pass of a recurrent layer: which tokens count, and what the layer's cache holds of earlier ones.
#pragma once

#include "nn/cache.h"
#include "nn/layers.h"

namespace redco {

// Entries of the cache (StateCache, nn/cache_forms.h): the last taps - 1 inputs of each convolution in the
// order of the calls, and the recurrence's state if there is one. B batch, T tokens, C channels.
class RecurrentPass {
 public:
  // x [B, T, ...]: the layer's input; layer: its index in the cache; taps: of the convolutions; dtype: of
  // mask().
  RecurrentPass(const ApplyOptions& o, size_t layer, const Tensor& key_mask, const Tensor& x, i64 taps,
                DType dtype);
  // [B, T, 1]: 1 for a token, 0 for padding, which must not change the state; undefined: no padding.
  const Tensor& mask() const { return mask_; }
  // [B, T]: the number of each token's sample; undefined: one sample in each row.
  const Tensor& segments() const { return segments_; }
  // The state after the earlier tokens; undefined: there are none.
  Tensor initial() const { return held_.empty() ? Tensor() : held_.back(); }
  // causal_conv1d (ops/recurrence.h) of x [B, T, C], with padding as zeros, after the earlier tokens.
  Tensor convolved(const Tensor& x, const Tensor& w, const Tensor& bias);
  // After the last convolved(). state: of the recurrence after the last token; undefined: there is none.
  void finish(const Tensor& state = {});

 private:
  LayerCache* cache_;  // null: none
  i64 tokens_, taps_;
  Tensor mask_, segments_;
  Tensors held_, kept_;
};

}  // namespace redco
