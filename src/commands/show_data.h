// Examples as the model will see them: what `redco data` prints.
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

struct ShownSample {
  i64 number = 0;    // in its row, from 1
  std::string name;  // of a pipeline's field of ids; "" is a row of texts
  std::vector<i32> ids;
  std::vector<std::string> tokens;    // the vocabulary's texts of the ids
  std::vector<std::uint8_t> in_loss;  // 1: the loss counts what this token is predicted with
};

struct ShownRow {
  i64 row = 0;
  std::string id;  // JSON; "" is none
  i64 tokens = 0, targets = 0;
  std::vector<ShownSample> samples;
  std::string example;  // of an example with a label: what it says, as JSON
};

struct ShownData {
  bool evaluation = false;
  std::vector<std::string> summary;  // lines for people
  i64 rows = 0, max_length = 0;
  i64 row_tokens = 0;             // of all rows
  i64 targets = 0;                // of all windows; of all examples, before any of them is cut
  i64 shortest = 0, longest = 0;  // rows, in tokens
  double padding = 0;             // share of rows x max_length without a token, where rows are packed
  i64 examples = 0, truncated = 0, split = 0, skipped = 0, bad = 0;
  std::vector<ShownRow> shown;
};

// Builds the data of a split as training would, and reads its first n rows.
ShownData show_data(const JobConfig& job, bool evaluation, i64 n);

// Tokens as the vocabulary writes them, a space between; the loss counts those in brackets, in green where
// `color`.
std::string to_text(const ShownData& d, bool color);
std::string to_json(const ShownData& d);

}  // namespace redco
