#include "report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/words.h"
#include "report/html.h"
#include "report/page.h"
#include "report/run_data.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// A member as text; "" if it is missing or of another type.
std::string text_of(const Json& j) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_number_float()) return short_number(j.get<double>());
  if (j.is_number_integer()) return j.dump();
  if (j.is_boolean()) return j.get<bool>() ? "yes" : "no";
  return "";
}
const Json& at(const Json& j, const char* key) {
  static const Json none;
  return j.is_object() && j.contains(key) ? j[key] : none;
}
double number(const Json& j) { return j.is_number() ? j.get<double>() : 0; }
std::string bytes_text(double n) { return n >= 0 && n < 1e18 ? human_bytes(static_cast<u64>(n)) : "?"; }

std::string date_text(double t) {
  const std::time_t seconds = static_cast<std::time_t>(t);
  std::tm tm{};
  char text[40] = "";
  if (t > 0 && t < 1e11 && ::localtime_r(&seconds, &tm))
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
  return text;
}

using Row = std::vector<std::string>;
// A table; escapes its cells. `kinds`: one letter per column: n number, t text, c code. An empty head is
// omitted.
std::string table(const Row& head, const std::vector<Row>& rows, const std::string& kinds) {
  const auto kind = [&](std::size_t i) { return i < kinds.size() ? kinds[i] : 't'; };
  // Columns with long texts are wide.
  std::vector<bool> wide(head.size(), false);
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size() && i < wide.size(); ++i) wide[i] = wide[i] || row[i].size() > 24;
  std::string s = "<div class=\"scroll\"><table>\n";
  if (std::any_of(head.begin(), head.end(), [](const std::string& h) { return !h.empty(); })) {
    s += "<tr>";
    for (std::size_t i = 0; i < head.size(); ++i)
      s += (kind(i) == 'n' ? "<th class=\"n\">" : "<th>") + escape(head[i]) + "</th>";
    s += "</tr>\n";
  }
  for (const Row& row : rows) {
    s += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = escape(row[i]);
      s += kind(i) == 'c'               ? "<td><code>" + cell + "</code></td>"
           : kind(i) == 'n'             ? "<td class=\"n\">" + cell + "</td>"
           : i < wide.size() && wide[i] ? "<td class=\"t\">" + cell + "</td>"
                                        : "<td>" + cell + "</td>";
    }
    s += "</tr>\n";
  }
  return s + "</table></div>\n";
}

class Page {
 public:
  Page(const ReportRequest& request, RunData run) : request_(request), run_(std::move(run)) {}

  std::string text() {
    section("curves", "Curves", [&] { return curves(); });
    section("samples", "Evaluation samples", [&] { return samples(); });
    section("checkpoints", "Checkpoints", [&] { return checkpoints(); });
    section("plan", "Plan", [&] { return plan(); });
    section("environment", "Environment", [&] { return environment(); });
    section("config", "Config", [&] { return pre(run_.config); });
    section("log", "Log", [&] { return pre(run_.log_tail); });
    const std::string name = escape(title());
    std::string s =
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        // The page may load nothing, even if text were not escaped.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'; "
        "script-src 'unsafe-inline'\">\n<title>" +
        name + " - redco report</title>\n<style>" + kReportStyle + "</style></head>\n<body><header><h1>" +
        name;
    s += request_.running.empty() ? "<span class=\"badge\">not running</span>"
                                  : "<span class=\"badge on\">running</span>";
    s += "</h1>\n<p class=\"sub\">" + escape(subtitle()) + "</p>\n<nav>" + nav_ + "</nav></header>\n<main>\n";
    s += cards();
    for (const std::string& p : run_.problems) s += "<p class=\"warn\">" + escape(p) + "</p>\n";
    s += body_ + "</main>\n<footer>Made by <code>redco report</code>" +
         (request_.now > 0 ? " on " + escape(date_text(request_.now)) : "") + ".</footer>\n<script>" +
         kReportScript + "</script></body></html>\n";
    return s;
  }

 private:
  void section(const char* id, const char* name, const std::function<std::string()>& f) {
    const std::string inside = f();
    if (inside.empty()) return;
    nav_ += fmt::format("<a href=\"#{}\">{}</a>", id, name);
    body_ += fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, name, inside);
  }

  std::string title() const {
    std::string path = request_.workdir;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const std::string name = file_name(path);
    return name.empty() || name == "." ? request_.workdir : name;
  }

  std::string subtitle() const {
    std::vector<std::string> parts = {request_.workdir};
    if (!request_.running.empty()) parts.push_back("in use by " + request_.running);
    if (run_.first_time > 0)
      parts.push_back(fmt::format("{} to {} ({})", date_text(run_.first_time), date_text(run_.last_time),
                                  human_duration(run_.last_time - run_.first_time)));
    return fmt::format("{}", fmt::join(parts, "  \xC2\xB7  "));
  }

  // The latest values, and the best value of each evaluation metric.
  std::string cards() const {
    std::string s;
    const auto card = [&](const std::string& name, const std::string& value) {
      s += "<div class=\"card\"><span>" + escape(name) + "</span><b>" + escape(value) + "</b></div>\n";
    };
    const auto last = [&](const char* name) { return run_.find(name); };
    if (const Series* loss = last("loss")) {
      card("step", fmt::format("{:.0f}", loss->last_step()));
      if (const Series* e = last("epoch")) card("epoch", fmt::format("{:.2f}", e->last_value()));
      card("loss", short_number(loss->last_value()));
    }
    std::size_t shown = 0;
    for (const auto& [name, series] : run_.curves)
      if (name.starts_with("eval_") && name != "eval_s" && ++shown <= 4)
        card("last " + words(name), short_number(series.last_value()));
    for (const auto& [name, series] : run_.curves)
      if (name.ends_with("_per_s"))
        card(words(name.substr(0, name.size() - 6)) + " per second", short_number(series.last_value()));
    if (const Series* v = last("ceiling_share")) card("of peak matmul speed", human_percent(v->last_value()));
    if (const Series* v = last("peak_memory_bytes")) card("peak memory", bytes_text(v->last_value()));
    return s.empty() ? "" : "<div class=\"cards\">" + s + "</div>\n";
  }

  // "eval_loss" -> "evaluation loss"
  static std::string words(std::string name) {
    if (name.starts_with("eval_")) name = "evaluation " + name.substr(5);
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
  }

  static std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }

  std::string curves() const {
    struct Figure {
      std::string title;
      std::vector<std::pair<std::string, std::string>> lines;  // label, curve
    };
    std::vector<Figure> figures = {
        {"Return", {{"training", "episode_return"}, {"evaluation", "eval_mean_return"}}},
        {"Loss", {{"training", "loss"}, {"evaluation", "eval_loss"}}},
        {"Learning rate", {{"", "learning_rate"}}},
        {"Gradient norm", {{"", "grad_norm"}}},
        {"Tokens per second", {{"", "tokens_per_s"}}},
        {"Seconds a step", {{"", "step_s"}}},
        {"Share of peak matmul speed", {{"", "ceiling_share"}}}};
    std::set<std::string> used = {"epoch", "eval_s", "peak_memory_bytes"};
    for (const Figure& f : figures)
      for (const auto& line : f.lines) used.insert(line.second);
    for (const auto& [name, series] : run_.curves)
      if (!used.count(name)) figures.push_back({capital(words(name)), {{"", name}}});
    constexpr std::size_t kMost = 40;
    std::string s;
    std::size_t n = 0;
    for (const Figure& f : figures) {
      std::vector<ChartLine> lines;
      for (const auto& [label, name] : f.lines)
        if (const Series* series = run_.find(name)) lines.push_back({label, series});
      if (!lines.empty() && n++ < kMost) s += chart(f.title, lines);
    }
    return s.empty() ? "" : "<div class=\"charts\">\n" + s + "</div>\n";
  }

  std::string samples() const {
    std::string s;
    for (std::size_t i = 0; i < run_.outputs.size(); ++i) {
      const RunData::Outputs& o = run_.outputs[i];
      if (o.rows.empty()) continue;
      std::string what = fmt::format("after step {}", o.step);
      if (o.n > static_cast<i64>(o.rows.size())) what += fmt::format(", {} of {}", o.rows.size(), o.n);
      const std::string inside = table(o.head, o.rows, "");
      s += s.empty() ? "<p class=\"sub\">" + what + "</p>\n" + inside
                     : "<details><summary>" + what + "</summary>\n" + inside + "</details>\n";
    }
    return s;
  }

  std::string checkpoints() const {
    std::vector<Row> rows;
    for (const auto& c : run_.checkpoints)
      rows.push_back({c.name, fmt::format("{}", c.step), human_bytes(static_cast<u64>(c.bytes)),
                      fmt::format("{}", fmt::join(c.pointers, ", ")),
                      c.newest_whole ? "newest whole one" : ""});
    return rows.empty() ? "" : table({"checkpoint", "step", "size", "pointers", ""}, rows, "cnnct");
  }

  std::string plan() const {
    if (run_.plan_json.empty()) return "";
    const Json j = Json::parse(run_.plan_json, nullptr, false);
    const Json &mesh = at(j, "mesh"), &setting = at(j, "setting"), &memory = at(j, "per_rank");
    std::vector<Row> facts;
    const auto fact = [&](const char* name, const std::string& value) {
      if (!value.empty()) facts.push_back({name, value});
    };
    fact("model", text_of(at(j, "model")));
    if (at(j, "n_parameters").is_number()) fact("parameters", human_count(number(at(j, "n_parameters"))));
    fact("machines", text_of(at(j, "machines")));
    if (mesh.is_object())
      fact("mesh", fmt::format("dp {} x mp {}", text_of(at(mesh, "dp")), text_of(at(mesh, "mp"))));
    fact("rows per step", text_of(at(setting, "global_batch_size")));
    fact("rows per replica and micro-batch", text_of(at(setting, "per_device_batch_size")));
    fact("micro-batches", text_of(at(j, "accumulation")));
    if (at(j, "length") != Json(1)) fact("tokens per row", text_of(at(j, "length")));
    if (at(j, "flops").is_number()) fact("FLOPs per step", human_count(number(at(j, "flops"))));
    fact("fits", text_of(at(j, "fits")));
    std::string s = "<div class=\"two\"><div>" + table({"", ""}, facts, "tt") + "</div>\n<div>" +
                    memory_table(memory, j) + "</div></div>\n";
    for (const char* kind : {"warnings", "notes"})
      if (at(j, kind).is_array())
        for (const Json& w : at(j, kind))
          if (w.is_string())
            s += "<p class=\"" + std::string(kind[0] == 'w' ? "warn" : "note") + "\">" + escape(text_of(w)) +
                 "</p>\n";
    std::vector<Row> rules, collectives;
    if (at(j, "rules").is_array())
      for (const Json& r : at(j, "rules")) {
        std::vector<std::string> spec;
        if (at(r, "spec").is_array())
          for (const Json& e : at(r, "spec")) spec.push_back(e.is_string() ? text_of(e) : "None");
        rules.push_back(
            {text_of(at(r, "pattern")), fmt::format("({})", fmt::join(spec, ", ")), text_of(at(r, "rule"))});
      }
    if (at(j, "collectives").is_array())
      for (const Json& c : at(j, "collectives"))
        collectives.push_back({text_of(at(c, "kind")), text_of(at(c, "axis")), text_of(at(c, "count")),
                               bytes_text(number(at(c, "bytes"))), text_of(at(c, "where"))});
    if (!rules.empty())
      s += "<details><summary>sharding rules</summary>\n" +
           table({"parameters", "spec", "rule"}, rules, "cct") + "</details>\n";
    if (!collectives.empty())
      s += "<details><summary>collectives of a step</summary>\n" +
           table({"kind", "axis", "calls", "bytes", "where"}, collectives, "ttnnt") + "</details>\n";
    return s;
  }

  // Bytes of the fullest rank by part, as a bar and as numbers.
  static std::string memory_table(const Json& memory, const Json& plan) {
    const double total = number(at(memory, "total"));
    if (!(total > 0)) return "";
    std::string bar, rows;
    int color = 0;
    const auto row = [&](const std::string& name, double n) {
      rows += "<tr><td>" + name + "</td><td class=\"n\">" + escape(bytes_text(n)) + "</td></tr>\n";
    };
    for (const char* part : {"parameters", "gradients", "optimizer", "activations", "buffers", "base"}) {
      const double n = number(at(memory, part));
      bar += fmt::format("<i class=\"k{}\" style=\"width:{:.2f}%\"></i>", color,
                         std::clamp(100 * n / total, 0.0, 100.0));
      row(fmt::format("<span class=\"key k{}\">{}</span>", color++, part), n);
    }
    row("all", total);
    row("a rank may use", number(at(plan, "memory_limit")));
    return "<p class=\"sub\">memory of the fullest rank</p><div class=\"bar\">" + bar +
           "</div>\n<div class=\"scroll\"><table>\n" + rows + "</table></div>\n";
  }

  std::string environment() const {
    if (run_.environment_json.empty()) return "";
    const Json j = Json::parse(run_.environment_json, nullptr, false);
    std::vector<Row> rows;
    for (const auto& [name, value] : j.items()) {
      const std::string text =
          name.starts_with("memory_") && value.is_number() ? bytes_text(number(value)) : text_of(value);
      if (!text.empty()) rows.push_back({words(name), text});
    }
    return rows.empty() ? "" : table({"", ""}, rows, "tt");
  }

  static std::string pre(const std::string& text) {
    return text.empty() ? "" : "<pre>" + escape(text) + "</pre>\n";
  }

  const ReportRequest& request_;
  RunData run_;
  std::string nav_, body_;
};

}  // namespace

std::string make_report(const ReportRequest& request) {
  return Page(request, read_run(request.workdir)).text();
}

}  // namespace redco
