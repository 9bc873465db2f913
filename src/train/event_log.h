// The run's measurements on disk: metrics.jsonl, and the same for TensorBoard. Written by the first rank
// only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "train/tensorboard.h"

namespace redco {

using Values = std::vector<std::pair<std::string, double>>;

// One JSON object a line, each written whole with one call. A run that goes on after `keep_until` drops the
// lines of later steps, and one that a crash has cut: they are made again, so that every step is there once.
class MetricsLog {
 public:
  MetricsLog(const std::string& workdir, i64 keep_until);
  // {"step": ..., name: value, ..., "time": seconds since 1970}; what isn't finite is null. TensorBoard gets
  // the values under the same names. What can't be written is lost with a warning: it must not end the run.
  void write(i64 step, const Values& values);
  // Texts for TensorBoard alone.
  void text(i64 step, const std::string& tag, const TextTable& table);

 private:
  std::string path_;
  std::optional<AppendFile> lines_;
  EventFile events_;
};

}  // namespace redco
