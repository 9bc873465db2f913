// The record of `redco check`: the examples of the step, which all combinations use.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipeline/example.h"

namespace redco {

// The examples of a step, in its order, and what pipeline.state() was after source(). The other combinations
// restore this state, as a resumed run does, so that source() samples nothing again.
struct CheckRecord {
  std::string state;
  std::vector<Example> examples;
  std::vector<std::pair<i64, i64>> lengths;  // length and target length of each
};
std::string to_json(const CheckRecord& record);
CheckRecord check_record_of(const std::string& json);

// Reads the examples `numbers`. ContentsError: a value that isn't finite.
CheckRecord record_examples(const Dataset& data, const std::vector<i64>& numbers, std::string state);

// The recorded examples as data. `record` must outlive it.
class RecordedExamples : public Dataset {
 public:
  explicit RecordedExamples(const CheckRecord& record) : record_(&record) {}
  i64 size() const override { return static_cast<i64>(record_->examples.size()); }
  i64 length(i64 i) const override { return record_->lengths[i].first; }
  i64 target_length(i64 i) const override { return record_->lengths[i].second; }
  Example get(i64 i) const override { return record_->examples[i]; }
  std::string fingerprint() const override { return ""; }

 private:
  const CheckRecord* record_;
};

// How an example differs from the recorded one ("its field 'x' has 3 values instead of 2"); "" if they are
// equal. Values may differ by rounding, 1e-4 of the field's largest: they may come from the parameters.
std::string example_difference(const Example& e, const Example& recorded);

// How the examples `numbers` of `data` differ from the record; "" if they don't. Compares those of the rows
// `mine` of the step.
std::string examples_difference(const Dataset& data, const std::vector<i64>& numbers,
                                const CheckRecord& record, const std::vector<i64>& mine);

}  // namespace redco
