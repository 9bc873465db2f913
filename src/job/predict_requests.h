// The prompts of a predict job, one after the other: predict.prompt, or the lines of predict.input.
//
// A line is an object with one of "prompt" or "text" (a text to go on from) and "messages" (a conversation
// for the chat template), maybe an "id", maybe more that is ignored. Empty lines are passed over.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "job/predict_model.h"

namespace redco {

struct PredictRequest {
  i64 ordinal =
      0;  // its place among the prompts, bad ones counted: names its draws, and is its id by default
  std::string head;    // the members that its line of the output begins with: {"id": 1, "prompt": "..."}
  std::string prompt;  // the text; "" of a conversation
  std::vector<i32> ids;
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

}  // namespace redco
