#include "report/run_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/input_file.h"
#include "base/words.h"
#include "ckpt/eval_files.h"
#include "ckpt/publish.h"
#include "report/html.h"
#include "report/run_summary.h"
#include "workdir/workdir_names.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kLongestLine = std::size_t{4} << 20;
constexpr std::size_t kMostCurves = 200;
constexpr i64 kMostSmallFile = i64{16} << 20, kLogTail = 64 << 10;
constexpr std::size_t kOutputFiles = 5, kOutputRows = 32, kOutputColumns = 8, kOutputText = 2000,
                      kOutputImage = 512 << 10;

class Reader {
 public:
  explicit Reader(const std::string& workdir) : workdir_(workdir) {}

  RunData read() {
    part(workdir::kMetrics, [&] { metrics(); });
    part(workdir::kHistory, [&] { history(); });
    part(workdir::kConfig, [&] { out_.config = small(workdir::kConfig); });
    part(workdir::kPlan, [&] { out_.plan_json = object(workdir::kPlan); });
    part(workdir::kEnvironment, [&] { out_.environment_json = object(workdir::kEnvironment); });
    part(workdir::kLog, [&] { log_tail(); });
    part(workdir::kEvalOutputs, [&] { outputs(); });
    part(workdir::kEvalOutputs, [&] { confusion(); });
    part(workdir::kCheckpoints, [&] { checkpoints(); });
    part(workdir::kProfileSummary, [&] { out_.profile = read_profile_data(in(workdir::kProfileSummary)); });
    return std::move(out_);
  }

 private:
  std::string in(const std::string& name) const { return join_path(workdir_, name); }

  void part(const char* name, const std::function<void()>& f) {
    if (!exists(in(name))) return;
    try {
      f();
    } catch (const Error& e) {
      out_.problems.emplace_back(e.what());
    }
  }

  void history() {
    ckpt::RunHistory h = ckpt::read_run_history(workdir_);
    out_.events = std::move(h.events);
    if (h.damaged > 0)
      out_.problems.push_back(fmt::format("{}: {} line{} not an event", workdir::kHistory, h.damaged,
                                          h.damaged == 1 ? " is" : "s are"));
  }

  // A last line that doesn't parse is no damage: a run may be writing it.
  void metrics() {
    std::map<std::string, std::size_t> index;
    LineReader lines(in(workdir::kMetrics), kLongestLine);
    std::string line, torn;
    i64 bad = 0, first_bad = 0;
    while (lines.next(line)) {
      if (!torn.empty()) ++bad;
      torn.clear();
      const Json j = Json::parse(line, nullptr, false);
      const auto step = j.is_object() ? j.find("step") : j.end();
      if (!j.is_object() || step == j.end() || !step->is_number() || std::abs(step->get<double>()) > 0x1p53) {
        if (line.find_first_not_of(" \t\r") != std::string::npos) torn = line;
        if (!torn.empty() && first_bad == 0) first_bad = lines.line_number();
        continue;
      }
      for (const auto& [name, value] : j.items()) {
        if (name == "step" || !value.is_number()) continue;
        const double v = value.get<double>();
        if (!(std::fabs(v) < 1e200)) continue;  // larger sums could overflow
        if (name == "time") {
          if (out_.first_time == 0) out_.first_time = v;
          out_.last_time = v;
          continue;
        }
        auto it = index.find(name);
        if (it == index.end()) {
          if (index.size() == kMostCurves) continue;
          it = index.emplace(name, out_.curves.size()).first;
          out_.curves.emplace_back(name, Series());
        }
        out_.curves[it->second].second.add(step->get<double>(), v);
      }
    }
    if (bad > 0)
      out_.problems.push_back(fmt::format("{}: {} line{} not a JSON object with a step; the first is line {}",
                                          workdir::kMetrics, bad, bad == 1 ? " is" : "s are", first_bad));
  }

  std::string small(const std::string& name) const { return read_file(in(name), kMostSmallFile); }

  std::string object(const char* name) const {
    std::string text = small(name);
    if (!Json::parse(text, nullptr, false).is_object())
      throw ContentsError("{}: expected a JSON object", in(name));
    return text;
  }

  void log_tail() {
    const ReadFile file = ReadFile::open(in(workdir::kLog));
    const i64 n = std::min(file.size(), kLogTail), begin = file.size() - n;
    std::string text(static_cast<std::size_t>(n), '\0');
    file.pread_exact(begin, text.data(), n);
    if (begin > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
    out_.log_tail = std::move(text);
  }

  // Step and name of the files in eval_outputs: the newest first, then by name.
  std::vector<std::pair<i64, std::string>> eval_files(bool details) const {
    std::vector<std::pair<i64, std::string>> files;
    for (const std::string& name : list_dir(in(workdir::kEvalOutputs)))
      if (const auto file = ckpt::parse_eval_file(name); file && file->details == details)
        files.emplace_back(file->step, name);
    std::stable_sort(files.begin(), files.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    return files;
  }

  void outputs() {
    std::vector<std::pair<i64, std::string>> files = eval_files(false);
    if (files.size() > kOutputFiles) files.resize(kOutputFiles);
    for (const auto& [step, name] : files) {
      out_.outputs.push_back(output_file(step, join_path(in(workdir::kEvalOutputs), name)));
      out_.outputs.back().set = ckpt::parse_eval_file(name)->set;
    }
  }

  static RunData::Outputs output_file(i64 step, const std::string& path) {
    RunData::Outputs out;
    out.step = step;
    std::vector<std::map<std::string, std::string>> rows;
    LineReader lines(path, kLongestLine);
    std::string line;
    while (lines.next(line)) {
      ++out.n;
      if (rows.size() == kOutputRows) continue;
      const Json j = Json::parse(line, nullptr, false);
      if (!j.is_object()) continue;
      auto& row = rows.emplace_back();
      for (const auto& [name, value] : j.items()) {
        // Lists (token ids) are not for people.
        if (value.is_structured()) continue;
        if (std::find(out.head.begin(), out.head.end(), name) == out.head.end()) {
          if (out.head.size() == kOutputColumns) continue;
          out.head.push_back(name);
        }
        std::string text = value.is_string() ? value.get<std::string>()
                                             : value.dump(-1, ' ', false, Json::error_handler_t::replace);
        // An image is kept whole or not at all.
        const bool image = is_png_uri(text);
        if (image && text.size() > kOutputImage) text = "(an image of more than 512 KiB)";
        if (!image && text.size() > kOutputText) text = text.substr(0, kOutputText) + "...";
        row[name] = std::move(text);
      }
    }
    for (auto& row : rows) {
      auto& cells = out.rows.emplace_back();
      for (const std::string& name : out.head) cells.push_back(row[name]);
    }
    return out;
  }

  void confusion() {
    for (const auto& [step, name] : eval_files(true)) {
      if (!out_.confusions.empty() && step < out_.confusions[0].step) return;
      const Json j = Json::parse(small(workdir::eval_output(name)), nullptr, false);
      if (!j.is_object()) throw ContentsError("{}: expected a JSON object", in(name));
      const auto matrix = j.find("confusion_matrix");
      if (matrix == j.end()) continue;
      RunData::Confusion c;
      c.step = step;
      c.set = ckpt::parse_eval_file(name)->set;
      if (!read_confusion(*matrix, c))
        throw ContentsError(
            "{}: confusion_matrix: expected {{\"classes\": [name, ...], \"counts\": [[count, ...], ...]}} "
            "with a row and a column per class",
            in(name));
      out_.confusions.push_back(std::move(c));
    }
  }

  static bool read_confusion(const Json& j, RunData::Confusion& c) {
    constexpr std::size_t kMostClasses = 200;
    if (!j.is_object() || !j.contains("classes") || !j["classes"].is_array() || !j.contains("counts") ||
        !j["counts"].is_array() || j["classes"].size() != j["counts"].size() ||
        j["classes"].size() > kMostClasses)
      return false;
    for (const Json& name : j["classes"]) {
      if (!name.is_string()) return false;
      c.classes.push_back(name.get<std::string>());
    }
    for (const Json& row : j["counts"]) {
      if (!row.is_array() || row.size() != c.classes.size()) return false;
      auto& counts = c.counts.emplace_back();
      for (const Json& n : row) {
        if (!n.is_number_integer() || n.get<double>() < 0 || n.get<double>() > 0x1p53) return false;
        counts.push_back(n.get<i64>());
      }
    }
    return true;
  }

  void checkpoints() {
    const ckpt::CheckpointFolder folder(in(workdir::kCheckpoints));
    const auto pointers = folder.pointers();
    bool newest = true;
    for (const auto& e : folder.survey()) {
      RunData::Checkpoint c{.step = e.step, .name = ckpt::step_name(e.step)};
      const bool whole = e.kind == ckpt::CheckpointFolder::Entry::whole;
      c.newest_whole = whole && newest;
      for (const auto& [name, target] : pointers)
        if (target == e.step) c.pointers.push_back(name);
      // A running training may have removed it since.
      const std::string path = join_path(folder.path(), c.name);
      if (!is_folder(path)) continue;
      if (whole) newest = false;
      if (!whole && newest)
        out_.problems.push_back(fmt::format("{}: {}", workdir::checkpoint(e.name), e.problem));
      c.bytes = tree_bytes(path);
      out_.checkpoints.push_back(std::move(c));
    }
  }

  std::string workdir_;
  RunData out_;
};

}  // namespace

const Series* RunData::find(const std::string& name) const {
  for (const auto& [n, s] : curves)
    if (n == name) return &s;
  return nullptr;
}

bool is_workdir(const std::string& folder) {
  for (const std::string& name : workdir::names_that_show_a_run())
    if (exists(join_path(folder, name))) return true;
  return false;
}

i64 tree_bytes(const std::string& folder, int depth) {
  i64 sum = 0;
  std::vector<std::string> names;
  try {
    names = list_dir(folder);
  } catch (const Error&) {  // a running training may have removed it
  }
  for (const std::string& name : names) {
    const auto info = file_info(join_path(folder, name), false);
    if (!info) continue;
    if (info->kind == FileInfo::file) sum += info->size;
    if (info->kind == FileInfo::folder && depth > 0) sum += tree_bytes(join_path(folder, name), depth - 1);
  }
  return sum;
}

namespace {

// ". It holds runs, such as DIR/task-0"; "" if it holds none.
std::string runs_below(const std::string& folder) {
  const std::vector<std::string> runs = find_workdirs(folder);
  return runs.empty()
             ? ""
             : fmt::format(". It holds runs, such as {}; `redco runs {}` lists them", runs[0], folder);
}

}  // namespace

RunData read_run(const std::string& workdir) {
  if (!is_folder(workdir)) throw UsageError("[report] folder {} does not exist", workdir);
  if (!is_workdir(workdir))
    throw UsageError("[report] {} is not the workdir of a training run: it has none of {}{}", workdir,
                     fmt::join(workdir::names_that_show_a_run(), ", "), runs_below(workdir));
  return Reader(workdir).read();
}

}  // namespace redco
