#include "train/prefetch.h"

#include <algorithm>
#include <utility>

#include "base/activity.h"
#include "base/ordered_work.h"
#include "pipeline/n_readers.h"

namespace redco {

MicroBatchRequest request_rows(i64 rows, const std::function<i64(i64)>& at) {
  const Context& c = Context::current();
  MicroBatchRequest r{.numbers = {}, .mine = shard_range(rows, 1, c.mesh().dp(), c.coord().dp())};
  for (i64 i = 0; i < rows; ++i) r.numbers.push_back(at(i));
  return r;
}

StepRequest request_step(const std::vector<MicroBatch>& parts, const std::function<i64(i64)>& at) {
  StepRequest out;
  for (const MicroBatch& m : parts)
    out.push_back(request_rows(m.rows, [&](i64 r) { return at(m.first + r); }));
  return out;
}

Batch collate_examples(const Pipeline& pipeline, std::span<const Example> mine, const BatchShape& shape) {
  return in_pipeline(pipeline, "collate()", [&] {
    Batch b = pipeline.collate(mine, shape);
    REDCO_CHECK(
        b.shape.rows == shape.rows && b.shape.length == shape.length,
        "it returned a batch of {} rows and length {}; expected the given BatchShape, of {} rows and length {} "
        "(batch.shape = shape)",
        b.shape.rows, b.shape.length, shape.rows, shape.length);
    for (const auto& [name, t] : b.fields) {
      REDCO_CHECK(t.defined(), "the field '{}' has no value", name);
      REDCO_CHECK(
          t.rank() == 0 || t.shape()[0] > 0 || shape.rows == 0,
          "the field '{}' has no rows, {}; expected {}, those of the whole micro-batch (BatchShape::rows). To "
          "plan, redco calls collate() without examples",
          name, to_string(t.shape()), shape.rows);
    }
    return b;
  });
}

std::vector<MicroBatchExamples> read_examples(const Dataset& data, const StepRequest& step, int threads) {
  std::vector<MicroBatchExamples> out;
  i64 rows = 0;
  for (const MicroBatchRequest& r : step) {
    BatchShape& s = out.emplace_back().shape;
    s.rows = static_cast<i64>(r.numbers.size());
    s.mine = r.mine;
    for (const i64 number : r.numbers) {
      s.length = std::max(s.length, data.length(number));
      s.target_length = std::max(s.target_length, data.target_length(number));
    }
    rows += r.mine.size();
  }
  threads = static_cast<int>(std::min<i64>(threads, rows));
  if (threads <= 1) {
    for (std::size_t m = 0; m < step.size(); ++m) {
      out[m].mine.reserve(static_cast<std::size_t>(step[m].mine.size()));
      for (i64 row = step[m].mine.begin; row < step[m].mine.end; ++row) {
        activity::tick();
        out[m].mine.push_back(data.get(step[m].numbers[static_cast<std::size_t>(row)]));
      }
    }
    return out;
  }
  std::size_t to = 0;  // the micro-batch of the next result
  OrderedWork<i64, Example> work(
      threads, [&](i64 number, int) { return data.get(number); },
      [&](Example e) {
        while (static_cast<i64>(out[to].mine.size()) == step[to].mine.size()) ++to;
        out[to].mine.push_back(std::move(e));
      });
  for (const MicroBatchRequest& r : step)
    for (i64 row = r.mine.begin; row < r.mine.end; ++row) work.add(r.numbers[static_cast<std::size_t>(row)]);
  work.finish();
  return out;
}

std::vector<MicroBatchExamples> Prefetcher::take(const std::shared_ptr<const Dataset>& data,
                                                 const StepRequest& step, StepRequest next) {
  const int threads = n_readers(data->reading(), n_workers_);
  std::vector<MicroBatchExamples> out;
  if (pending_ && pending_->data == data && pending_->step == step) {
    std::optional<Pending> p = std::exchange(pending_, std::nullopt);
    out = p->result.get();
    ++ahead_;
  } else {
    pending_.reset();
    out = read_examples(*data, step, threads);
  }
  if (next.empty() || threads == 0) return out;
  auto result = worker_.run([data, next, threads] { return read_examples(*data, next, threads); });
  pending_.emplace(Pending{data, std::move(next), std::move(result)});
  return out;
}

}  // namespace redco
