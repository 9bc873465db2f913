// Reading ahead: while a step is computed, the examples of the next one are read on another thread.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "train/pipeline.h"

namespace redco {

// One micro-batch: the numbers of all its examples in the data, and which of these rows are this replica's.
struct MicroBatchRequest {
  std::vector<i64> numbers;
  Range mine;
  bool operator==(const MicroBatchRequest&) const = default;
};
using StepRequest = std::vector<MicroBatchRequest>;

struct MicroBatchExamples {
  BatchShape shape;  // padded to the longest of all rows
  std::vector<Example> mine;
};
MicroBatchExamples read_examples(const Dataset& data, const MicroBatchRequest& r);

// Results are those of reading at once; what reading throws, take() throws, on the caller's thread. For one
// thread; the destructor waits for what is being read.
class Prefetcher {
 public:
  // The step's examples, read by now or read now; then begins to read `next` (empty: nothing), where the data
  // allow it (Dataset::concurrent). `data` is kept until that is done.
  std::vector<MicroBatchExamples> take(const std::shared_ptr<const Dataset>& data, const StepRequest& step,
                                       StepRequest next);

  i64 taken_ahead() const { return ahead_; }  // steps that were read before they were asked for

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
