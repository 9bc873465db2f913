// Prefetch: a thread reads the examples of the next step during the current step.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "train/pipeline.h"

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

struct MicroBatchExamples {
  BatchShape shape;  // padded to the longest row
  std::vector<Example> mine;
};
MicroBatchExamples read_examples(const Dataset& data, const MicroBatchRequest& r);
Batch collate_examples(const Pipeline& pipeline, const MicroBatchExamples& m);

// Results equal those of reading without prefetch; take() throws the reader's errors on the caller's thread.
// For one thread. The destructor waits for the reader.
class Prefetcher {
 public:
  // The step's examples, prefetched or read now. Then starts to read `next` (empty: nothing) if the data
  // allow it (Dataset::concurrent). `data` is kept until then.
  std::vector<MicroBatchExamples> take(const std::shared_ptr<const Dataset>& data, const StepRequest& step,
                                       StepRequest next);

  i64 taken_ahead() const { return ahead_; }  // steps that were read in advance

 private:
  struct Pending {
    std::shared_ptr<const Dataset> data;
    StepRequest step;
    std::future<std::vector<MicroBatchExamples>> result;  // its destructor waits
  };
  std::optional<Pending> pending_;
  i64 ahead_ = 0;
};

}  // namespace redco
