#include "train/step_order.h"

#include <algorithm>

namespace redco {

StepOrder::StepOrder(const Dataset& data, u64 seed, u64 epoch, bool grouped, i64 batch)
    : data_(&data),
      order_(data.size(), seed, epoch, !data.ordered()),
      seed_(seed),
      epoch_(epoch),
      batch_(grouped && !data.ordered() ? batch : 0) {}

i64 StepOrder::at(i64 position) const {
  if (batch_ == 0) return order_.at(position);
  const i64 each = kPool * batch_;
  return pool(position / each)[static_cast<std::size_t>(position % each)];
}

const std::vector<i64>& StepOrder::pool(i64 number) const {
  Pool& p = pools_[static_cast<std::size_t>(number % 2)];
  if (p.number == number) return p.examples;
  const i64 begin = number * kPool * batch_, end = std::min(order_.size(), begin + kPool * batch_);
  std::vector<std::pair<i64, i64>> sorted;  // length, example
  for (const i64 example : order_.range(begin, end))
    sorted.emplace_back(data_->length(example) + data_->target_length(example), example);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const i64 whole = (end - begin) / batch_;
  const EpochOrder batches(whole, seed_, epoch_ << 32 | static_cast<u64>(number));
  p.number = number;
  p.examples.clear();
  for (const i64 b : batches.range(0, whole))
    for (i64 k = 0; k < batch_; ++k)
      p.examples.push_back(sorted[static_cast<std::size_t>(b * batch_ + k)].second);
  for (std::size_t k = p.examples.size(); k < sorted.size(); ++k) p.examples.push_back(sorted[k].second);
  return p.examples;
}

}  // namespace redco
