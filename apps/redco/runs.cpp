// runs: the trainings in a folder.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "base/timing.h"
#include "base/words.h"
#include "commands.h"
#include "report/mlflow.h"
#include "report/run_summary.h"
#include "workdir/workdir_lock.h"

namespace redco::cli {

namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kMostMetrics = 3;  // in the table; --json has all

std::string json_line(const RunSummary& r) {
  Json j = {
      {"workdir", r.workdir}, {"pipeline", r.pipeline}, {"model", r.model}, {"state", name_of(r.state.kind)}};
  j["state_text"] = r.state.error.empty() ? r.state.text : r.state.text + ": " + r.state.error;
  j["step"] = r.step >= 0 ? Json(r.step) : Json();
  j["total_steps"] = r.total_steps > 0 ? Json(r.total_steps) : Json();
  j["loss"] = r.loss ? Json(*r.loss) : Json();
  j["best"] = Json::object();
  for (const auto& [name, m] : r.best) j["best"][name] = {{"value", m.value}, {"step", m.step}};
  j["bytes"] = r.bytes;
  j["time"] = r.time > 0 ? Json(r.time) : Json();
  j["problems"] = r.problems;
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// "loss 2.125 @ 40, accuracy 0.93 @ 60"; without an evaluation the last training loss.
std::string metrics_text(const RunSummary& r) {
  std::string s;
  std::size_t n = 0;
  for (const auto& [name, m] : r.best) {
    if (n++ == kMostMetrics) return s + ", ...";
    s += fmt::format("{}{} {} @ {}", s.empty() ? "" : ", ", excerpt(name.substr(5)), human_number(m.value),
                     m.step);
  }
  return s.empty() && r.loss ? "training loss " + human_number(*r.loss) : s;
}

std::string age_text(double seconds) {
  return seconds < 60 ? fmt::format("{:.0f} s", std::max(0.0, seconds)) : human_duration(seconds);
}

std::vector<std::string> cells(const RunSummary& r, const std::string& folder, double now) {
  const std::string name =
      r.workdir.size() > folder.size() && folder != "." ? r.workdir.substr(folder.size() + 1) : r.workdir;
  std::string what = r.pipeline;
  if (!r.model.empty()) what += (what.empty() ? "" : ", ") + r.model;
  return {name,
          name_of(r.state.kind),
          r.step < 0          ? "-"
          : r.total_steps > 0 ? fmt::format("{}/{}", r.step, r.total_steps)
                              : fmt::format("{}", r.step),
          metrics_text(r),
          human_bytes(static_cast<u64>(r.bytes)),
          r.time > 0 ? age_text(now - r.time) : "-",
          excerpt(what, 80)};
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], width[i]) : row[i];
    while (!line.empty() && line.back() == ' ') line.pop_back();
    std::puts(line.c_str());
  }
}

int list_runs(std::string folder, bool json) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  std::vector<RunSummary> runs;
  for (const std::string& w : find_workdirs(folder)) runs.push_back(summarize_run(w, workdir_holder(w)));
  if (json) {
    for (const RunSummary& r : runs) std::puts(json_line(r).c_str());
  } else if (!runs.empty()) {
    std::vector<std::vector<std::string>> rows = {{"RUN", "STATE", "STEP", "BEST", "SIZE", "AGE", "WHAT"}};
    for (const RunSummary& r : runs) rows.push_back(cells(r, folder, wall_seconds()));
    print_table(rows);
  }
  if (runs.empty()) info("{} has no runs", folder);
  for (const RunSummary& r : runs)
    for (const std::string& p : r.problems) warn("{}: {}", r.workdir, p);
  return 0;
}

}  // namespace

void add_runs(CLI::App& app, Invocation& run) {
  struct Options {
    std::string folder = "runs";
    std::string mlflow;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "runs", "List the trainings in a folder: state, step, best metrics, size, age",
                  "  redco runs                       those in runs/\n"
                  "  redco runs /scratch/me --json    one JSON object per line\n"
                  "  redco runs --mlflow mlruns       also for MLflow's page\n");
  c->add_option("DIR", o->folder,
                "folder whose subfolders are workdirs, at most 3 levels deep; default: runs");
  c->add_flag(
      "--json", o->json,
      "one JSON object per run and line: workdir, pipeline, model, state, step, total_steps, loss, best, "
      "bytes, time (seconds since 1970), problems");
  expand_paths(c->add_option("--mlflow", o->mlflow,
                             "also write the runs into this folder of MLflow (mlruns): `mlflow ui "
                             "--backend-store-uri FOLDER` shows them"));
  c->callback([o, &run] {
    run.exit_code = list_runs(o->folder, o->json);
    if (!o->mlflow.empty()) write_mlflow(find_workdirs(o->folder), o->mlflow);
  });
}

}  // namespace redco::cli
