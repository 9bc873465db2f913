// The command data: examples as the model sees them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "job/job_config.h"
#include "pipeline/example.h"

namespace redco {

struct ShownSample {
  i64 number = 0;    // in the row, from 1
  std::string name;  // of the pipeline's field of ids; "" for rows of text
  std::vector<i32> ids;
  std::vector<std::string> tokens;    // texts of the ids in the vocabulary
  std::vector<std::uint8_t> in_loss;  // 1: the loss counts the prediction of this token
};

struct ShownRow {
  i64 row = 0;
  std::string id;  // JSON; "" if there is none
  i64 tokens = 0, targets = 0;
  std::vector<ShownSample> samples;
  std::string example;  // an example with a label, as JSON
  // An example of a user's pipeline, and its fields of ids as text, if there is a tokenizer.
  std::optional<Example> fields;
  std::map<std::string, std::string> texts;
};

// What collate() of a user's pipeline makes of the shown rows.
struct ShownBatch {
  std::map<std::string, std::string> fields;  // "f32 (3, 784)"
  std::map<std::string, double> weights;
  std::string error;  // of collate(), whose rows may be others: those of source()
};

struct ShownData {
  bool evaluation = false;
  std::vector<std::string> summary;  // lines of text
  i64 rows = 0, max_length = 0;
  i64 row_tokens = 0;             // in all rows
  i64 targets = 0;                // in all windows; in all examples before truncation
  i64 shortest = 0, longest = 0;  // tokens of a row
  double padding = 0;  // share of positions without a token: of rows x max_length if rows are packed
  i64 examples = 0, truncated = 0, split = 0, skipped = 0, bad = 0;
  std::vector<ShownRow> shown;
  std::optional<ShownBatch> batch;
};

// Builds a source of a split as training does, and reads its first n rows. `source`: its name in data.mixture
// or data.eval_sets; may be "" if there is only one. UsageError lists the names. If the job of a user's
// pipeline has no files, its source() or evaluation() makes the rows, with the parameters before the
// training.
ShownData show_data(const JobConfig& job, bool evaluation, const std::string& source, i64 n);

// Tokens as texts of the vocabulary, separated by spaces. The loss counts those in brackets, which are green
// with `color`.
std::string to_text(const ShownData& d, bool color);
std::string to_json(const ShownData& d);

}  // namespace redco
