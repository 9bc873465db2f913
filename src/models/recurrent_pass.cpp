#include "models/recurrent_pass.h"

#include "ops/elementwise.h"
#include "ops/recurrence.h"
#include "ops/shape.h"

namespace redco {

namespace {

// The last n of the tokens held and those of x, with zeros before the first.
Tensor last_tokens(const Tensor& before, const Tensor& x, i64 n) {
  const i64 T = x.size(1);
  if (T >= n) return narrow(x, 1, T - n, n);
  return before.defined() ? concat({narrow(before, 1, T, n - T), x}, 1) : pad_to(x, 1, n - T, n);
}

}  // namespace

RecurrentPass::RecurrentPass(const ApplyOptions& o, size_t layer, const Tensor& key_mask, const Tensor& x,
                             i64 taps, DType dtype)
    : cache_(o.cache ? &o.cache->layer(layer) : nullptr), tokens_(x.size(1)), taps_(taps) {
  if (cache_) held_ = cache_->read().entries;
  if (key_mask.defined() && o.segmented) {
    segments_ = key_mask;
  } else if (key_mask.defined()) {
    const Tensor tokens = narrow(key_mask, 1, cache_ ? cache_->length() : 0, tokens_);
    mask_ = reshape(to_float(tokens, dtype), {x.size(0), tokens_, 1});
  }
}

Tensor RecurrentPass::convolved(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Tensor seen = mask_.defined() ? x * mask_ : x;
  const Tensor before = held_.empty() ? Tensor() : held_[kept_.size()];
  if (cache_) kept_.push_back(last_tokens(before, seen, taps_ - 1));
  return causal_conv1d(seen, w, bias, before, segments_);
}

void RecurrentPass::finish(const Tensor& state) {
  if (!cache_) return;
  if (state.defined()) kept_.push_back(state);
  cache_->append(kept_, tokens_);
}

}  // namespace redco
