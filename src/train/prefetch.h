// Prefetch: threads read the examples of the next step during the current step.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "base/worker.h"
#include "pipeline/n_readers.h"
#include "pipeline/pipeline.h"
#include "train/step.h"

namespace redco {

// One micro-batch: the indices of all its examples in the data, and the range of this replica's rows.
struct MicroBatchRequest {
  std::vector<i64> numbers;
  Range mine;
  bool operator==(const MicroBatchRequest&) const = default;
};
using StepRequest = std::vector<MicroBatchRequest>;
// The request for the examples at(0), at(1), ..., at(rows - 1).
MicroBatchRequest request_rows(i64 rows, const std::function<i64(i64)>& at);
// The request of a step's micro-batches for the examples at(row), where `row` counts the step's rows.
StepRequest request_step(const std::vector<MicroBatch>& parts, const std::function<i64(i64)>& at);

struct MicroBatchExamples {
  BatchShape shape;  // padded to the longest row
  std::vector<Example> mine;
};
// Reads the examples on `threads` threads, or with threads <= 1 on the caller's. The result is the same for
// any number. Throws the error of the first example, in the order of the step, that can't be read.
std::vector<MicroBatchExamples> read_examples(const Dataset& data, const StepRequest& step, int threads);
// collate(), and checks of what it returns. mine: {} on a planned rank.
Batch collate_examples(const Pipeline& pipeline, std::span<const Example> mine, const BatchShape& shape);

// Results equal those of reading without prefetch; take() throws the readers' errors on the caller's thread.
// Holds the examples of at most one step. For one thread. The destructor waits for the readers.
class Prefetcher {
 public:
  explicit Prefetcher(std::optional<i64> n_workers = std::nullopt) : n_workers_(n_workers) {}
  // True if take() reads a next step of these data in advance.
  bool reads_ahead(const Dataset& data) const { return n_readers(data.reading(), n_workers_) > 0; }
  // The step's examples, prefetched or read now. Then starts to read `next` (empty: nothing) if the data and
  // n_workers allow it. `data` is kept until then.
  std::vector<MicroBatchExamples> take(const std::shared_ptr<const Dataset>& data, const StepRequest& step,
                                       StepRequest next);

  i64 taken_ahead() const { return ahead_; }  // steps that were read in advance

 private:
  struct Pending {
    std::shared_ptr<const Dataset> data;
    StepRequest step;
    std::future<std::vector<MicroBatchExamples>> result;
  };
  std::optional<i64> n_workers_;
  std::optional<Pending> pending_;
  i64 ahead_ = 0;
  Worker worker_;
};

}  // namespace redco
