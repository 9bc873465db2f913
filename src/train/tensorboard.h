// TensorBoard event files, written without TensorFlow.
//
// A file is a sequence of records: the length (u64), its masked CRC-32C, an Event as protobuf, its masked
// CRC-32C. Sources of the fields: tensorflow/core/util/event.proto and framework/summary.proto.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace redco {

// A table of texts, shown verbatim: the first row is the head. All rows have the same number of cells.
using TextTable = std::vector<std::vector<std::string>>;

// One Event each, framed as a record.
std::string tensorboard_header(double wall_time);
// Marks the start of a process at `step`: readers drop the records that an earlier process wrote from that
// step on.
std::string tensorboard_start(double wall_time, i64 step);
std::string tensorboard_record(double wall_time, i64 step,
                               const std::vector<std::pair<std::string, double>>& values);
// The histogram of the finite elements, in 30 bins of equal width.
std::string tensorboard_histogram(double wall_time, i64 step, const std::string& tag,
                                  const std::vector<float>& elements);
// For the text plugin. Cells are written as indented code, so that no cell is read as markup.
std::string tensorboard_text(double wall_time, i64 step, const std::string& tag, const TextTable& table);

// A new event file in `folder`, named so that readers take it after the existing files. Each record is
// written with one call.
class EventFile {
 public:
  EventFile(const std::string& folder, i64 first_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  void scalars(i64 step, const std::vector<std::pair<std::string, double>>& values);
  void histogram(i64 step, const std::string& tag, const std::vector<float>& elements);
  void text(i64 step, const std::string& tag, const TextTable& table);

 private:
  void write(const std::string& record);
  std::string path_;
  int fd_ = -1;
  i64 size_ = 0;  // of the complete records
};

}  // namespace redco
