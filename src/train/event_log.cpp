#include "train/event_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/timing.h"
#include "base/tolerate.h"
#include "metrics/metric_direction.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

// Returns whether the value is the metric's best so far.
bool see(ckpt::BestMetrics& best, const std::string& name, double value, i64 step) {
  if (!name.starts_with("eval_") || !std::isfinite(value)) return false;
  const auto more = more_is_better(name);
  if (!more) return false;
  const auto it = best.find(name);
  if (it != best.end() && !(*more ? value > it->second.value : value < it->second.value)) return false;
  best[name] = {value, step};
  return true;
}

// The number of bytes to keep: up to the first line of a step after keep_until, because steps grow from line
// to line. `best` gets the best metrics of the lines that are kept.
i64 bytes_to_keep(const std::string& path, i64 keep_until, ckpt::BestMetrics& best) {
  if (!exists(path)) return 0;
  // Longer than any line in this file; limits the memory for a file with one endless line.
  constexpr i64 kBlock = 1 << 20;
  const ReadFile file = ReadFile::open(path);
  std::string text;
  i64 kept = 0;
  for (i64 at = 0; at < file.size();) {
    const i64 n = std::min(kBlock, file.size() - at);
    const std::size_t had = text.size();
    text.resize(had + static_cast<std::size_t>(n));
    file.pread_exact(at, text.data() + had, n);
    at += n;
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto j = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                           text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
      if (j.is_object() && j.contains("step") && j["step"].is_number()) {
        const double step = j["step"].get<double>();
        if (step > static_cast<double>(keep_until)) return kept;
        for (const auto& [name, value] : j.items())
          if (value.is_number()) see(best, name, value.get<double>(), static_cast<i64>(step));
      }
      kept += static_cast<i64>(end + 1 - begin);
    }
    text.erase(0, begin);
    if (static_cast<i64>(text.size()) > kBlock) return kept;
  }
  return kept;
}

}  // namespace

bool has_metrics_after(const std::string& workdir, i64 step) {
  const std::string path = join_path(workdir, workdir::kMetrics);
  ckpt::BestMetrics unused;
  return exists(path) && bytes_to_keep(path, step, unused) < file_size(path);
}

MetricsLog::MetricsLog(const std::string& workdir, i64 keep_until)
    : workdir_(workdir), events_(join_path(workdir, workdir::kTensorboard), keep_until + 1) {
  path_ = join_path(workdir, workdir::kMetrics);
  lines_.emplace(AppendFile::open(path_, bytes_to_keep(path_, keep_until, best_)));
  if (!best_.empty() || exists(join_path(workdir, workdir::kBest))) write_best();
}

void MetricsLog::write_best() {
  tolerate(fmt::format("[log] {} is not written", workdir::kBest),
           [&] { ckpt::write_best_metrics(workdir_, best_); });
}

void MetricsLog::write(i64 step, const Values& values) {
  nlohmann::ordered_json j = {{"step", step}};
  bool better = false;
  for (const auto& [name, v] : values) {
    better = see(best_, name, v, step) || better;
    if (!std::isfinite(v)) {
      j[name] = nullptr;
    } else if (v == std::floor(v) && std::fabs(v) < 1e15) {
      j[name] = static_cast<i64>(v);
    } else {
      j[name] = v;
    }
  }
  j["time"] = std::round(wall_seconds() * 1e3) / 1e3;
  tolerate(fmt::format("[log] {} was not written", path_), [&] {
    lines_->append(j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  });
  tolerate("[log] TensorBoard's file is not written", [&] { events_.scalars(step, values); });
  if (better) write_best();
}

void MetricsLog::histogram(i64 step, const std::string& tag, const std::vector<float>& elements) {
  tolerate("[log] TensorBoard's file is not written", [&] { events_.histogram(step, tag, elements); });
}

void MetricsLog::text(i64 step, const std::string& tag, const TextTable& table) {
  tolerate("[log] TensorBoard's file is not written", [&] { events_.text(step, tag, table); });
}

}  // namespace redco
