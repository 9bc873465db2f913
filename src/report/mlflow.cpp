#include "report/mlflow.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/process.h"
#include "base/words.h"
#include "config/tree.h"
#include "report/run_data.h"
#include "report/run_state.h"
#include "workdir/run_record.h"
#include "workdir/workdir_lock.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

constexpr const char* kExperiment = "100";  // MLflow's own default experiment is 0
constexpr std::size_t kMostParam = 6000;    // characters of a value that MLflow shows
constexpr i64 kLongestMetricsLine = 1 << 20;

// MLflow's names have letters, digits, '_', '-', '.', ' ' and '/'.
std::string mlflow_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
  return name.substr(0, 250);
}

std::string yaml_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

i64 milliseconds(double seconds) { return static_cast<i64>(seconds * 1000); }

void params_of(const YamlNode& node, const std::string& key, std::map<std::string, std::string>& out) {
  if (node.kind == YamlNode::Kind::map) {
    for (const auto& e : node.map) params_of(e.value, key.empty() ? e.key : key + "." + e.key, out);
    return;
  }
  if (node.kind == YamlNode::Kind::null) return;
  std::string text = node.text;
  if (node.kind == YamlNode::Kind::list)
    for (const YamlNode& e : node.list) text += (text.empty() ? "" : ", ") + e.text;
  out[mlflow_name(key)] = text.substr(0, kMostParam);
}

// metrics/NAME has a line "TIME_MS VALUE STEP" for each value.
void metrics_of(const std::string& workdir, const std::string& to) {
  std::map<std::string, std::string> files;
  const std::string path = join_path(workdir, workdir::kMetrics);
  if (!exists(path)) return;
  LineReader lines(path, kLongestMetricsLine);
  for (std::string line; lines.next(line);) {
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (!j.is_object() || !j.contains("step") || !j["step"].is_number_integer()) continue;
    const double time = j.contains("time") && j["time"].is_number() ? j["time"].get<double>() : 0;
    for (const auto& [name, value] : j.items())
      if (name != "step" && name != "time" && value.is_number())
        files[mlflow_name(name)] +=
            fmt::format("{} {} {}\n", milliseconds(time), value.get<double>(), j["step"].get<i64>());
  }
  for (const auto& [name, text] : files) write_file_durable(join_path(to, name), text);
}

void write_run(const std::string& workdir, const std::string& experiment) {
  const RunData run = read_run(workdir);
  const RunState state = run_state(run.events, workdir_holder(workdir));
  std::string id;
  try {
    if (const auto record = read_run_record(workdir)) id = record->run.id;
  } catch (const ContentsError&) {  // the page of the run reports it
  }
  if (id.empty()) id = hash128(std::filesystem::absolute(workdir).string()).hex();
  const std::string folder = join_path(experiment, id);
  // Notes, tags and artifacts that were added in MLflow stay.
  for (const char* part : {"metrics", "params"})
    if (const std::string old = join_path(folder, part); is_folder(old)) remove_tree(old);
  for (const char* part : {"metrics", "params", "tags", "artifacts"}) make_dirs(join_path(folder, part));
  using Kind = RunState::Kind;
  const bool running = state.kind == Kind::running;
  // MLflow's numbers: 1 running, 3 finished, 4 failed, 5 killed.
  const int status = running                                                    ? 1
                     : state.kind == Kind::finished                             ? 3
                     : state.kind == Kind::failed || state.kind == Kind::killed ? 4
                                                                                : 5;
  const double begin = !run.events.empty() ? run.events.front().time : run.first_time;
  const double end = std::max(run.last_time, run.events.empty() ? 0 : run.events.back().time);
  const std::string name = file_name(std::filesystem::absolute(workdir).lexically_normal().string());
  write_file_durable(
      join_path(folder, "meta.yaml"),
      fmt::format(
          "artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '{}'\nlifecycle_stage: active\n"
          "run_id: {}\nrun_name: {}\nrun_uuid: {}\nsource_name: ''\nsource_type: 4\nsource_version: ''\n"
          "start_time: {}\nstatus: {}\ntags: []\nuser_id: ''\n",
          yaml_text("file://" + std::filesystem::absolute(join_path(folder, "artifacts")).string()),
          running ? "null" : fmt::format("{}", milliseconds(end)), kExperiment, id, yaml_text(name), id,
          milliseconds(begin), status));
  std::map<std::string, std::string> params;
  if (!run.config.empty()) params_of(parse_yaml(run.config, workdir::kConfig), "", params);
  for (const auto& [key, value] : params)
    write_file_durable(join_path(join_path(folder, "params"), key), value);
  const std::map<std::string, std::string> tags = {
      {"mlflow.runName", name},
      {"redco.workdir", std::filesystem::absolute(workdir).string()},
      {"redco.state", state.text}};
  for (const auto& [key, value] : tags) write_file_durable(join_path(join_path(folder, "tags"), key), value);
  metrics_of(workdir, join_path(folder, "metrics"));
}

}  // namespace

void write_mlflow(const std::vector<std::string>& workdirs, const std::string& folder) {
  const std::string experiment = join_path(folder, kExperiment);
  make_dirs(experiment);
  if (!exists(join_path(experiment, "meta.yaml")))
    write_file_durable(
        join_path(experiment, "meta.yaml"),
        fmt::format("artifact_location: {}\nexperiment_id: '{}'\nlifecycle_stage: active\nname: redco\n",
                    yaml_text("file://" + std::filesystem::absolute(experiment).string()), kExperiment));
  for (const std::string& w : workdirs) write_run(w, experiment);
}

}  // namespace redco
