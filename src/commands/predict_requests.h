// What a predict job asks, one after the other: predict.prompt, or the lines of predict.input.
//
// A line is an object, maybe with an "id". Where the pipeline doesn't read it itself (Pipeline::request), it
// has one of "prompt" or "text" (a text to go on from) and "messages" (a conversation for the chat template),
// maybe more that is ignored. Empty lines are passed over.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assembly/predict_model.h"

namespace redco {

struct PredictRequest {
  // Its ordinal, its place among the prompts, bad ones counted, names its draws, and is its id by default.
  Example example;
  std::string head;    // the members that its line of the output begins with: {"id": 1, "prompt": "..."}
  std::string prompt;  // the text that an answer goes on from; "" of others
};

class PredictRequests {
 public:
  PredictRequests(const JobConfig& job, const PredictModel& m);
  ~PredictRequests();

  // The next prompt; false at the end. Lines that can't be used are ContentsErrors with file, line and
  // reason, or, with predict.skip_bad, left out and counted.
  bool next(PredictRequest& r);
  i64 skipped() const { return skipped_; }
  const std::string& first_reason() const { return first_reason_; }  // why the first one was

 private:
  struct State;
  const JobConfig& job_;
  const PredictModel& m_;
  std::unique_ptr<State> state_;
  i64 ordinal_ = 0, skipped_ = 0;
  std::string first_reason_;
};

// All of them, read once. ContentsError: there is none.
struct PredictScan {
  i64 n = 0, longest = 0;  // prompts; ids of the longest
  i64 skipped = 0;
  std::string first_reason;
};
PredictScan scan_requests(const JobConfig& job, const PredictModel& m);

}  // namespace redco
