#include "train/prefetch.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace redco {

MicroBatchRequest request_rows(i64 rows, const std::function<i64(i64)>& at) {
  const Context& c = Context::current();
  MicroBatchRequest r{.numbers = {}, .mine = shard_range(rows, 1, c.mesh().dp, c.coord().dp)};
  for (i64 i = 0; i < rows; ++i) r.numbers.push_back(at(i));
  return r;
}

Batch collate_examples(const Pipeline& pipeline, const MicroBatchExamples& m) {
  return in_pipeline("collate()", [&] { return pipeline.collate(m.mine, m.shape); });
}

MicroBatchExamples read_examples(const Dataset& data, const MicroBatchRequest& r) {
  MicroBatchExamples m;
  m.shape = {.rows = static_cast<i64>(r.numbers.size()), .mine = r.mine};
  for (const i64 number : r.numbers) {
    m.shape.length = std::max(m.shape.length, data.length(number));
    m.shape.target_length = std::max(m.shape.target_length, data.target_length(number));
  }
  for (i64 row = r.mine.begin; row < r.mine.end; ++row)
    m.mine.push_back(data.get(r.numbers[static_cast<std::size_t>(row)]));
  return m;
}

namespace {

std::vector<MicroBatchExamples> read_step(const Dataset& data, const StepRequest& step) {
  std::vector<MicroBatchExamples> out;
  for (const MicroBatchRequest& r : step) out.push_back(read_examples(data, r));
  return out;
}

}  // namespace

std::vector<MicroBatchExamples> Prefetcher::take(const std::shared_ptr<const Dataset>& data,
                                                 const StepRequest& step, StepRequest next) {
  std::vector<MicroBatchExamples> out;
  if (pending_ && pending_->data == data && pending_->step == step) {
    std::optional<Pending> p = std::exchange(pending_, std::nullopt);
    out = p->result.get();
    ++ahead_;
  } else {
    pending_.reset();
    out = read_step(*data, step);
  }
  if (next.empty() || !data->concurrent()) return out;
  try {
    auto result = std::async(std::launch::async, [data, next] { return read_step(*data, next); });
    pending_.emplace(Pending{data, std::move(next), std::move(result)});
  } catch (const std::system_error&) {
    // The thread could not start: take() reads the next step.
  }
  return out;
}

}  // namespace redco
