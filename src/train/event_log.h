// A run's measurements on disk: metrics.jsonl, and the same values for TensorBoard. Only the first rank
// writes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "train/tensorboard.h"
#include "workdir/run_history.h"

namespace redco {

using Values = std::vector<std::pair<std::string, double>>;

// Whether metrics.jsonl has lines of later steps, which a MetricsLog of `step` would remove.
bool has_metrics_after(const std::string& workdir, i64 step);

// One JSON object per line; each line is written with one call. A run that resumes after `keep_until` removes
// the lines of later steps and an incomplete last line, so the file has each step once.
class MetricsLog {
 public:
  MetricsLog(const std::string& workdir, i64 keep_until);
  // {"step": ..., name: value, ..., "time": seconds since 1970}; a value that isn't finite is null.
  // TensorBoard gets the values under the same names. best.json gets the best values of metrics "eval_*". A
  // failed write is a warning and does not end the run.
  void write(i64 step, const Values& values);
  // The histogram of some numbers, for TensorBoard only.
  void histogram(i64 step, const std::string& tag, const std::vector<float>& elements);
  // Texts for TensorBoard only.
  void text(i64 step, const std::string& tag, const TextTable& table);

 private:
  void write_best();
  std::string workdir_, path_;
  ckpt::BestMetrics best_;
  std::optional<AppendFile> lines_;
  EventFile events_;
};

}  // namespace redco
