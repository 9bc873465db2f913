#include "train/prefetch.h"

#include <algorithm>
#include <system_error>

namespace redco {

MicroBatchExamples read_examples(const Dataset& data, i64 rows, int dp, int replica,
                                 const std::function<i64(i64)>& at) {
  MicroBatchExamples m{.shape = {.rows = rows, .mine = shard_range(rows, 1, dp, replica), .length = 0},
                       .mine = {}};
  for (i64 r = 0; r < rows; ++r) m.shape.length = std::max(m.shape.length, data.length(at(r)));
  for (i64 r = m.shape.mine.begin; r < m.shape.mine.end; ++r) m.mine.push_back(data.get(at(r)));
  return m;
}

namespace {

std::vector<MicroBatchExamples> read_step(const Dataset& data, const StepRequest& step, int dp, int replica) {
  std::vector<MicroBatchExamples> out;
  for (const std::vector<i64>& numbers : step)
    out.push_back(read_examples(data, static_cast<i64>(numbers.size()), dp, replica,
                                [&](i64 r) { return numbers[static_cast<std::size_t>(r)]; }));
  return out;
}

}  // namespace

Prefetcher::~Prefetcher() {
  if (pending_) pending_->result.wait();
}

std::vector<MicroBatchExamples> Prefetcher::take(const std::shared_ptr<const Dataset>& data,
                                                 const StepRequest& step, StepRequest next) {
  std::vector<MicroBatchExamples> out;
  if (pending_ && pending_->data == data && pending_->step == step) {
    std::optional<Pending> p = std::exchange(pending_, std::nullopt);
    out = p->result.get();
    ++ahead_;
  } else {
    if (pending_) pending_->result.wait();
    pending_.reset();
    out = read_step(*data, step, dp_, replica_);
  }
  if (next.empty() || !data->concurrent()) return out;
  try {
    auto result = std::async(std::launch::async, [data, next, dp = dp_, replica = replica_] {
      return read_step(*data, next, dp, replica);
    });
    pending_ = Pending{data, std::move(next), std::move(result)};
  } catch (const std::system_error&) {
    // No thread to be had: the next step is read when it is asked for.
  }
  return out;
}

}  // namespace redco
