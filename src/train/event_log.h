// The run's measurements on disk: metrics.jsonl and TensorBoard event files. Written by the first rank only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// One JSON object a line; flushed line by line. On resume the lines of steps after `keep_until` are dropped.
class MetricsLog {
 public:
  MetricsLog(const std::string& workdir, i64 keep_until);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;
  // Numbers only; not finite ones are written as null. Also goes to TensorBoard under the same names.
  void write(i64 step, const std::vector<std::pair<std::string, double>>& values);

 private:
  int jsonl_ = -1, events_ = -1;
  void event(const std::string& record);
};

// TensorBoard's record of scalars: a length, its masked CRC-32C, the protobuf, its masked CRC-32C. For tests.
std::string tensorboard_record(double wall_time, i64 step,
                               const std::vector<std::pair<std::string, double>>& values);
std::string tensorboard_header(double wall_time);

}  // namespace redco
