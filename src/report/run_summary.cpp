#include "report/run_summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/publish.h"
#include "report/run_data.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

constexpr i64 kTail = 64 << 10;  // bytes that are read of files that grow
constexpr int kDeepest = 3;

void find(const std::string& folder, int depth, std::vector<std::string>& out) {
  if (is_workdir(folder)) {
    out.push_back(folder);
    return;
  }
  if (depth == kDeepest) return;
  for (const std::string& name : list_dir(folder)) {
    const std::string path = join_path(folder, name);
    if (!name.starts_with(".") && is_folder(path)) find(path, depth + 1, out);
  }
}

// Step, loss and time of the last lines. A file that is being written may end in half a line.
void read_last_metrics(RunSummary& out) {
  const std::string path = join_path(out.workdir, workdir::kMetrics);
  if (!exists(path)) return;
  const ReadFile file = ReadFile::open(path);
  const i64 n = std::min(file.size(), kTail), begin = file.size() - n;
  std::string text(static_cast<std::size_t>(n), '\0');
  file.pread_exact(begin, text.data(), n);
  bool any = false;
  for (std::size_t end = text.rfind('\n'); end != std::string::npos && end > 0 && !out.loss;) {
    const std::size_t before = text.rfind('\n', end - 1);
    const std::size_t from = before == std::string::npos ? 0 : before + 1;
    if (before == std::string::npos && begin > 0) break;  // the rest of a line
    const auto j = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(from),
                                         text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    end = before;
    if (!j.is_object() || !j.contains("step") || !j["step"].is_number()) continue;
    const double step = j["step"].get<double>();
    if (!any && std::fabs(step) < 0x1p53) out.step = static_cast<i64>(step);
    if (!any && j.contains("time") && j["time"].is_number())
      out.time = std::max(out.time, j["time"].get<double>());
    any = true;
    if (j.contains("loss") && j["loss"].is_number()) out.loss = j["loss"].get<double>();
  }
  if (!any && file.size() > 0)
    out.problems.push_back(std::string(workdir::kMetrics) +
                           ": its last lines are not JSON objects with a step");
}

}  // namespace

RunSummary summarize_run(const std::string& workdir, const std::string& holder) {
  RunSummary out;
  out.workdir = workdir;
  const auto part = [&](const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      out.problems.emplace_back(e.what());
    }
  };
  ckpt::RunHistory history;
  part([&] { history = ckpt::read_run_history(workdir, kTail); });
  if (history.damaged > 0)
    out.problems.push_back(std::string(workdir::kHistory) + ": some lines are not events");
  out.state = run_state(history.events, holder);
  out.total_steps = total_steps(history.events);
  for (const ckpt::RunEvent& e : history.events) {
    if (e.kind == ckpt::RunEvent::Kind::start) {
      out.pipeline = e.pipeline;
      out.model = e.model;
    }
    if (e.step >= 0) out.step = e.step;
    out.time = std::max(out.time, e.time);
  }
  const i64 last_event = out.step;
  part([&] { read_last_metrics(out); });
  // A run that has just resumed is at its checkpoint's step, whatever is logged after it.
  if (!history.events.empty() && history.events.back().step >= 0 &&
      history.events.back().kind != ckpt::RunEvent::Kind::start)
    out.step = last_event;
  part([&] { out.best = ckpt::read_best_metrics(workdir); });
  part([&] {
    ckpt::CheckpointFolder(join_path(workdir, workdir::kCheckpoints)).find_newest("checkpoint.resume");
  });
  out.bytes = tree_bytes(workdir);
  return out;
}

std::vector<std::string> find_workdirs(const std::string& folder) {
  if (!is_folder(folder)) throw UsageError("[runs] folder {} does not exist", folder);
  std::vector<std::string> out;
  find(folder, 0, out);
  return out;
}

}  // namespace redco
