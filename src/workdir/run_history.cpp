#include "workdir/run_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/strict_json.h"
#include "base/timing.h"
#include "base/tolerate.h"
#include "workdir/workdir_names.h"

namespace redco::ckpt {

namespace {

using HistoryJson = nlohmann::ordered_json;

constexpr i64 kMostBestBytes = 1 << 20;
constexpr std::size_t kMostReason = 4000;  // bytes of an error
constexpr std::array<const char*, 5> kKinds = {"start", "finished", "stopped", "failed", "restart"};

std::string history_path(const std::string& workdir) { return join_path(workdir, workdir::kHistory); }
std::string best_path(const std::string& workdir) { return join_path(workdir, workdir::kBest); }

std::string line_of(const RunEvent& e) {
  HistoryJson j = {{"event", kKinds[static_cast<std::size_t>(e.kind)]},
                   {"time", std::round(e.time * 1e3) / 1e3}};
  if (e.step >= 0) j["step"] = e.step;
  if (e.number > 0) j["start"] = e.number;
  if (e.kind == RunEvent::Kind::start) {
    j["total_steps"] = e.total_steps;
    j["pipeline"] = e.pipeline;
    if (!e.model.empty()) j["model"] = e.model;
  }
  if (e.kind == RunEvent::Kind::failed || e.kind == RunEvent::Kind::restart) j["code"] = e.code;
  if (!e.hosts.empty()) j["hosts"] = e.hosts;
  if (e.kind == RunEvent::Kind::restart) j["lost_steps"] = e.lost_steps;
  if (!e.reason.empty()) j["reason"] = e.reason.substr(0, kMostReason);
  return j.dump(-1, ' ', false, HistoryJson::error_handler_t::replace) + "\n";
}

// false: the line is not an event.
bool parse(const std::string& line, RunEvent& e) {
  const HistoryJson j = HistoryJson::parse(line, nullptr, false);
  if (!j.is_object()) return false;
  const auto text = [&](const char* key) {
    const auto it = j.find(key);
    return it != j.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  const auto number = [&](const char* key, double otherwise) {
    const auto it = j.find(key);
    const double v = it != j.end() && it->is_number() ? it->get<double>() : otherwise;
    return std::fabs(v) < 0x1p53 ? v : otherwise;
  };
  const auto kind = std::find(kKinds.begin(), kKinds.end(), text("event"));
  if (kind == kKinds.end()) return false;
  e.kind = static_cast<RunEvent::Kind>(kind - kKinds.begin());
  e.time = number("time", 0);
  e.step = static_cast<i64>(number("step", -1));
  e.number = static_cast<i64>(number("start", 0));
  e.total_steps = static_cast<i64>(number("total_steps", 0));
  e.lost_steps = static_cast<i64>(number("lost_steps", 0));
  e.hosts = text("hosts");
  e.pipeline = text("pipeline");
  e.model = text("model");
  e.reason = text("reason");
  e.code = static_cast<int>(std::clamp(number("code", 0), 0.0, 255.0));
  return true;
}

}  // namespace

void append_run_event(const std::string& workdir, RunEvent event) {
  event.time = wall_seconds();
  tolerate(fmt::format("[log] {} is not written", history_path(workdir)),
           [&] { append_line(history_path(workdir), line_of(event)); });
}

RunHistory read_run_history(const std::string& workdir, i64 most_bytes) {
  RunHistory out;
  const std::string path = history_path(workdir);
  if (!exists(path)) return out;
  const ReadFile file = ReadFile::open(path);
  const i64 n = std::min(file.size(), most_bytes), begin = file.size() - n;
  std::string text(static_cast<std::size_t>(n), '\0');
  file.pread_exact(begin, text.data(), n);
  if (begin > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    if (end == at) continue;  // of an append that met another one halfway, see append_line()
    RunEvent e;
    if (parse(text.substr(at, end - at), e)) {
      out.events.push_back(std::move(e));
    } else {
      ++out.damaged;
    }
  }
  return out;
}

i64 run_history_size(const std::string& workdir) {
  const auto info = file_info(history_path(workdir));
  return info ? info->size : 0;
}

void write_best_metrics(const std::string& workdir, const BestMetrics& best) {
  HistoryJson j = HistoryJson::object();
  for (const auto& [name, m] : best) j[name] = {{"value", m.value}, {"step", m.step}};
  write_file_durable(best_path(workdir), j.dump(1, ' ', false, HistoryJson::error_handler_t::replace) + "\n");
}

BestMetrics read_best_metrics(const std::string& workdir) {
  BestMetrics out;
  const std::string path = best_path(workdir);
  if (!exists(path)) return out;
  const nlohmann::json all = read_strict_json(path, kMostBestBytes);
  const auto wrong = [&] {
    return ContentsError("{}: expected an object of {{\"value\": number, \"step\": number}} per metric",
                         path);
  };
  if (!all.is_object()) throw wrong();
  for (const auto& [name, m] : all.items()) {
    if (!m.is_object() || !m.contains("value") || !m["value"].is_number() || !m.contains("step") ||
        !m["step"].is_number_integer())
      throw wrong();
    out[name] = {m["value"].get<double>(), m["step"].get<i64>()};
  }
  return out;
}

}  // namespace redco::ckpt
