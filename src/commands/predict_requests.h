// The prompts of a predict job in order: predict.prompt, or the records of predict.input in any format of
// data/text/record_lines.h (of a built-in one, those for evaluation); a .txt file has a prompt per line. A
// folder of images means a line {"image": path} for each, sorted by name.
//
// A line is a JSON object; "id" is optional. The pipeline may read it (Pipeline::request). Otherwise it has
// one of "prompt" or "text" (a text to continue), "messages" and "conversations" (for the chat template, with
// the line's "tools" and "chat_template_kwargs"), or the keys that data.fields names in their place; other
// members are ignored. Empty lines are skipped.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assembly/predict_model.h"

namespace redco {

struct PredictRequest {
  // The ordinal is the place among all lines, bad ones included. It is the key of random draws and the
  // default id.
  Example example;
  std::string head;    // first members of the output line: {"id": 1, "prompt": "..."}
  std::string prompt;  // the text that the answer continues; "" if there is none
};

// If the pipeline allows it (Pipeline::concurrent_requests), data.n_workers threads read lines ahead.
class PredictRequests {
 public:
  // job and m must outlive the object.
  PredictRequests(const JobConfig& job, const PredictModel& m);
  ~PredictRequests();

  // The next prompt; false at the end. A line that can't be used is a ContentsError with file, line and
  // reason; with predict.skip_bad it is skipped and counted.
  bool next(PredictRequest& r);
  i64 skipped() const;                      // lines read so far; complete at the end
  const std::string& first_reason() const;  // of the first skipped line

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Counts of all prompts. ContentsError if there is none.
struct PredictScan {
  i64 n = 0, longest = 0;  // prompts; tokens of the longest
  i64 skipped = 0;
  std::string first_reason;
};
PredictScan scan_requests(const JobConfig& job, const PredictModel& m);

}  // namespace redco
