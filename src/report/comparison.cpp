#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "config/resolve.h"
#include "config/tree.h"
#include "metrics/metric_direction.h"
#include "report/chart.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/report.h"
#include "report/run_data.h"

namespace redco {

namespace {

// Colors and dashes tell so many curves apart.
constexpr std::size_t kMostComparedRuns = kChartColors * kChartDashes;
constexpr std::size_t kMostMetrics = 8, kLegendInCharts = 8;

using Settings = std::map<std::string, std::string>;

void flatten(const YamlNode& node, const std::string& key, Settings& out) {
  using Kind = YamlNode::Kind;
  if (node.kind == Kind::map && !node.map.empty()) {
    for (const auto& entry : node.map)
      flatten(entry.value, key.empty() ? entry.key : key + "." + entry.key, out);
    return;
  }
  out[key] = node.kind == Kind::null ? "~" : node.kind == Kind::scalar ? node.text : to_json_text(node);
}

struct Compared {
  std::string name;  // the workdir as given
  RunData data;
  RunState state;
  Settings settings;
};

// The best point of a metric whose direction is known, else the last one.
const Series::Point& best(const std::string& metric, const Series& series) {
  const auto more = more_is_better(metric);
  return !more ? series.last() : *more ? series.most() : series.least();
}

class Comparison {
 public:
  explicit Comparison(std::vector<Compared> runs) : runs_(std::move(runs)) {}

  std::string text(double now) const {
    HtmlPage page;
    page.section("runs", "Runs", runs());
    page.section("settings", "Settings that differ", settings());
    page.section("curves", "Curves", curves());
    std::string lead;
    for (const Compared& r : runs_)
      for (const std::string& p : r.data.problems)
        lead += "<p class=\"warn\">" + escape(r.name + ": " + p) + "</p>\n";
    return page.text(fmt::format("{} runs compared", runs_.size()), "", "", lead, now);
  }

 private:
  std::string key(std::size_t run) const {
    constexpr std::size_t kShort = 30;  // characters that stay on one line
    const std::string& name = runs_[run].name;
    return fmt::format("<span class=\"key {}{}\">{}</span>", chart_class(run),
                       name.size() <= kShort ? " short" : "", escape(name));
  }

  // All curves' names, in the order of the first run that has them.
  std::vector<std::string> metrics() const {
    std::vector<std::string> out;
    for (const Compared& r : runs_)
      for (const auto& [name, series] : r.data.curves)
        if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    return out;
  }

  std::string runs() const {
    std::vector<std::string> columns;
    for (const std::string& name : metrics())
      if (is_evaluation(name) && columns.size() < kMostMetrics) columns.push_back(name);
    std::vector<std::optional<double>> winners;
    for (const std::string& name : columns) winners.push_back(winner(name));
    std::string s =
        "<div class=\"scroll\"><table class=\"compare\">\n<tr><th>run</th><th>state</th><th "
        "class=\"n\">step</th>";
    for (const std::string& name : columns)
      s += "<th class=\"n\">" + escape((more_is_better(name) ? "best " : "last ") + words(name)) + "</th>";
    s += "<th class=\"n\">last loss</th><th class=\"n\">per second</th><th class=\"n\">time</th></tr>\n";
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const Compared& r = runs_[i];
      const std::string error = r.state.error.substr(0, r.state.error.find('\n'));
      s += "<tr><th>" + key(i) + "</th><td>" + badge(r.state) +
           (error.empty() ? "" : "<small class=\"why\">" + escape(excerpt(error, 160)) + "</small>") +
           "</td><td class=\"n\">" + escape(step(r)) + "</td>";
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const Series* series = r.data.find(columns[k]);
        if (!series) {
          s += "<td class=\"n\"></td>";
          continue;
        }
        const Series::Point& p = best(columns[k], *series);
        s += fmt::format("<td class=\"n{}\">{}<small>step {:.0f}</small></td>",
                         winners[k] && *winners[k] == p.value ? " won" : "", escape(human_number(p.value)),
                         p.step);
      }
      s += "<td class=\"n\">" + last(r, "loss") + "</td><td class=\"n\">" + speed(r) +
           "</td><td class=\"n\">" +
           (r.data.first_time > 0 ? escape(human_duration(r.data.last_time - r.data.first_time)) : "") +
           "</td></tr>\n";
    }
    return s + "</table></div>\n";
  }

  // The best value of all runs; nullopt if the metric's direction is unknown or only one run has the metric.
  std::optional<double> winner(const std::string& metric) const {
    const auto more = more_is_better(metric);
    std::optional<double> out;
    i64 n = 0;
    for (const Compared& r : runs_)
      if (const Series* series = r.data.find(metric); series && more) {
        const double v = best(metric, *series).value;
        out = !out ? v : *more ? std::max(*out, v) : std::min(*out, v);
        ++n;
      }
    return n > 1 ? out : std::nullopt;
  }

  static std::string step(const Compared& r) {
    const Series* loss = r.data.find("loss");
    const i64 total = total_steps(r.data.events);
    if (!loss) return "";
    return fmt::format("{:.0f}", loss->last().step) + (total > 0 ? fmt::format(" of {}", total) : "");
  }

  static std::string last(const Compared& r, const char* metric) {
    const Series* series = r.data.find(metric);
    return series ? escape(human_number(series->last().value)) : "";
  }

  static std::string speed(const Compared& r) {
    for (const auto& [name, series] : r.data.curves)
      if (name.ends_with("_per_s"))
        return escape(human_count(series.last().value) + " " + words(name.substr(0, name.size() - 6)));
    return "";
  }

  // A row for each key, a column for each run.
  std::string settings() const {
    std::set<std::string> keys;
    for (const Compared& r : runs_)
      for (const auto& [k, value] : r.settings) keys.insert(k);
    keys.erase("workdir");  // the name of the run
    std::string rows;
    for (const std::string& k : keys) {
      std::set<std::string> values;
      std::string row = "<tr><th><code>" + escape(k) + "</code></th>";
      for (const Compared& r : runs_) {
        const auto it = r.settings.find(k);
        const std::string value = it == r.settings.end() ? "" : it->second;
        values.insert(value);
        row += "<td><code>" + escape(excerpt(value, 80)) + "</code></td>";
      }
      if (values.size() > 1) rows += row + "</tr>\n";
    }
    if (rows.empty()) return "<p class=\"sub\">none</p>\n";
    std::string head = "<tr><th>setting</th>";
    for (std::size_t i = 0; i < runs_.size(); ++i) head += "<th>" + key(i) + "</th>";
    return "<div class=\"scroll\"><table class=\"compare\">\n" + head + "</tr>\n" + rows + "</table></div>\n";
  }

  std::string curves() const {
    const std::size_t n = std::min(runs_.size(), kMostComparedRuns);
    Curves all;  // the names alone decide the figures
    for (const std::string& name : metrics()) all.emplace_back(name, Series());
    std::string charts;
    for (const Figure& f : figures(all))
      for (const auto& [label, name] : f.lines) {
        std::vector<ChartLine> lines;
        for (std::size_t i = 0; i < n; ++i)
          if (const Series* series = runs_[i].data.find(name))
            lines.push_back({runs_[i].name, series, i, is_evaluation(name)});
        if (is_chart(lines))
          charts += chart({.title = label.empty() ? f.title : f.title + ", " + label,
                           .legend = n <= kLegendInCharts,
                           .resumes = {}},
                          lines);
      }
    if (charts.empty()) return "";
    std::string legend;
    if (n > kLegendInCharts) {
      for (std::size_t i = 0; i < n; ++i) legend += key(i);
      legend = "<p class=\"legend\">" + legend + "</p>\n";
    }
    if (n < runs_.size())
      legend += fmt::format("<p class=\"sub\">The first {} of {} runs have curves.</p>\n", n, runs_.size());
    return legend + "<div class=\"charts\">\n" + charts + "</div>\n";
  }

  std::vector<Compared> runs_;
};

}  // namespace

std::string make_comparison(const std::vector<ReportRequest>& requests, std::vector<std::string>& skipped) {
  std::vector<Compared> runs;
  for (const ReportRequest& r : requests) {
    if (!is_workdir(r.workdir)) {
      skipped.push_back(r.workdir);
      continue;
    }
    Compared c{.name = without_slash(r.workdir), .data = read_run(r.workdir), .state = {}, .settings = {}};
    c.state = run_state(c.data.events, r.running);
    try {
      flatten(parse_yaml(c.data.config, "config.resolved.yaml"), "", c.settings);
    } catch (const UsageError& e) {
      c.data.problems.emplace_back(e.what());
    }
    runs.push_back(std::move(c));
  }
  if (runs.empty())
    throw UsageError("[report] none of these {} folders is the workdir of a training", requests.size());
  return Comparison(std::move(runs)).text(requests.front().now);
}

}  // namespace redco
