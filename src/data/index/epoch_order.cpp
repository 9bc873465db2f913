#include "data/index/epoch_order.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"

namespace redco {
namespace {

// splitmix64's finalizer (Steele, Lea, Flood 2014).
u64 mix(u64 v) {
  v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9ull;
  v = (v ^ (v >> 27)) * 0x94D049BB133111EBull;
  return v ^ (v >> 31);
}

constexpr u64 kGolden = 0x9E3779B97F4A7C15ull;

}  // namespace

EpochOrder::EpochOrder(i64 n, u64 seed, u64 epoch, bool shuffle) : n_(n), shuffle_(shuffle && n > 1) {
  REDCO_CHECK(n >= 0, "n={}", n);
  const int bits = n > 1 ? static_cast<int>(std::bit_width(static_cast<u64>(n) - 1)) : 1;
  high_bits_ = bits / 2;
  low_bits_ = bits - high_bits_;
  u64 state = mix(mix(seed + kGolden) ^ (epoch * kGolden + kShuffleVersion));
  for (u64& key : keys_) key = mix(state += kGolden);
}

i64 EpochOrder::at(i64 position) const {
  REDCO_CHECK(position >= 0 && position < n_, "position {} of {}", position, n_);
  if (!shuffle_) return position;
  u64 v = static_cast<u64>(position);
  do v = mapped(v);
  while (v >= static_cast<u64>(n_));
  return static_cast<i64>(v);
}

// A round that changes `low`, and one that changes `high`.
inline void EpochOrder::two_rounds(std::size_t r, u64& low, u64& high) const {
  low ^= mix(high * kGolden + keys_[r]) >> (64 - low_bits_);
  if (high_bits_ > 0) high ^= mix(low * kGolden + keys_[r + 1]) >> (64 - high_bits_);
}

inline u64 EpochOrder::mapped(u64 v) const {
  u64 low = v & ((u64{1} << low_bits_) - 1), high = v >> low_bits_;
  for (std::size_t r = 0; r < kRounds; r += 2) two_rounds(r, low, high);
  return high << low_bits_ | low;
}

std::vector<i64> EpochOrder::range(i64 begin, i64 end) const {
  REDCO_CHECK(begin >= 0 && begin <= end && end <= n_, "positions {} to {} of {}", begin, end, n_);
  std::vector<i64> out(static_cast<std::size_t>(end - begin));
  std::iota(out.begin(), out.end(), begin);
  if (!shuffle_) return out;
  const u64 low_mask = (u64{1} << low_bits_) - 1;
  constexpr std::size_t kBlock = 32;  // more than are needed to hide the latency of a round
  std::array<u64, kBlock> low{}, high{};
  for (std::size_t first = 0; first < out.size(); first += kBlock) {
    const std::size_t n = std::min(kBlock, out.size() - first);
    for (std::size_t i = 0; i < n; ++i) {
      const u64 v = static_cast<u64>(out[first + i]);
      low[i] = v & low_mask;
      high[i] = v >> low_bits_;
    }
    // Each round of a position waits for its round before, so the loop over positions is the inner one.
    for (std::size_t r = 0; r < kRounds; r += 2)
      for (std::size_t i = 0; i < n; ++i) two_rounds(r, low[i], high[i]);
    for (std::size_t i = 0; i < n; ++i) {
      u64 v = high[i] << low_bits_ | low[i];
      while (v >= static_cast<u64>(n_)) v = mapped(v);
      out[first + i] = static_cast<i64>(v);
    }
  }
  return out;
}

StepPlan::StepPlan(i64 n_examples, i64 global_batch_size) : n_(n_examples), batch_(global_batch_size) {
  if (n_ < 1) throw UsageError("[data] {} examples, expected at least 1", n_);
  if (batch_ < 1) throw UsageError("[train] global_batch_size={}, expected at least 1", batch_);
  steps_ = ceil_div(n_, batch_);
}

StepPlan::Place StepPlan::place(i64 step) const {
  REDCO_CHECK(step >= 0, "step={}", step);
  const i64 s = step % steps_;
  return {step / steps_, s, s * batch_, std::min(n_, (s + 1) * batch_)};
}

i64 StepPlan::consumed(i64 step) const {
  const Place p = place(step);
  return p.epoch * n_ + p.begin;
}

}  // namespace redco
