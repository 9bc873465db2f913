// Reading ahead: while a step is computed, the examples of the next one are read on another thread.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "train/pipeline.h"

namespace redco {

// The examples of this replica in one micro-batch, and its shape.
struct MicroBatchExamples {
  BatchShape shape;
  std::vector<Example> mine;
};

// Reads `rows` examples, numbers at(0) .. at(rows - 1), as replica `replica` of dp.
MicroBatchExamples read_examples(const Dataset& data, i64 rows, int dp, int replica,
                                 const std::function<i64(i64)>& at);

// The numbers of a step's examples, by micro-batch. Equal requests give equal examples.
using StepRequest = std::vector<std::vector<i64>>;

// Results are those of reading at once; what reading throws, take() throws, on the caller's thread. For one
// thread; the destructor waits for what is being read.
class Prefetcher {
 public:
  Prefetcher(int dp, int replica) : dp_(dp), replica_(replica) {}
  ~Prefetcher();

  // The step's examples, read by now or read now; then begins to read `next` (empty: nothing), where the data
  // allow it (Dataset::concurrent). `data` is kept until that is done.
  std::vector<MicroBatchExamples> take(const std::shared_ptr<const Dataset>& data, const StepRequest& step,
                                       StepRequest next);

  i64 taken_ahead() const { return ahead_; }  // steps that were read before they were asked for

 private:
  struct Pending {
    std::shared_ptr<const Dataset> data;
    StepRequest step;
    std::future<std::vector<MicroBatchExamples>> result;
  };
  int dp_, replica_;
  std::optional<Pending> pending_;
  i64 ahead_ = 0;
};

}  // namespace redco
