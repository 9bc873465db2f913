#include "report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/words.h"
#include "metrics/metric_direction.h"
#include "report/chart.h"
#include "report/figures.h"
#include "report/html.h"
#include "report/profile_section.h"
#include "report/run_data.h"
#include "report/run_state.h"
#include "report/starts.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// A member for people; "" if it is missing or of another kind.
std::string text_of(const Json& j) {
  if (j.is_string()) return j.get<std::string>();
  if (j.is_number_float()) return human_number(j.get<double>());
  if (j.is_number_integer()) return j.dump();
  if (j.is_boolean()) return j.get<bool>() ? "yes" : "no";
  return "";
}
const Json& at(const Json& j, const char* key) {
  static const Json none;
  return j.is_object() && j.contains(key) ? j[key] : none;
}
double number(const Json& j) { return j.is_number() ? j.get<double>() : 0; }
class Page {
 public:
  Page(const ReportRequest& request, RunData run)
      : request_(request), run_(std::move(run)), state_(run_state(run_.events, request.running)) {}

  std::string text() {
    HtmlPage page;
    page.section("curves", "Curves", curves());
    std::string matrices;
    for (const RunData::Confusion& c : run_.confusions) matrices += confusion(c);
    page.section("confusion", "Confusion matrix", matrices);
    page.section("samples", "Evaluation samples", samples());
    page.section("starts", "Starts", starts_section(run_.events));
    page.section("checkpoints", "Checkpoints", checkpoints());
    page.section("profile", "Profile", run_.profile ? profile_section(*run_.profile) : "");
    page.section("plan", "Plan", plan());
    page.section("environment", "Environment", environment());
    page.section("config", "Config", pre(run_.config));
    page.section("log", "Log", pre(run_.log_tail));
    std::string lead;
    if (!state_.error.empty()) lead += "<pre class=\"error\">" + escape(state_.error) + "</pre>\n";
    lead += facts();
    for (const std::string& p : run_.problems) lead += "<p class=\"warn\">" + escape(p) + "</p>\n";
    return page.text(title(), badge(state_), subtitle(), lead, request_.now);
  }

 private:
  std::string title() const {
    const std::string name = file_name(without_slash(request_.workdir));
    return name.empty() || name == "." ? request_.workdir : name;
  }

  std::string subtitle() const {
    std::vector<std::string> parts = {request_.workdir};
    if (!state_.text.empty()) parts.push_back(state_.text);
    if (run_.first_time > 0)
      parts.push_back(fmt::format("{} to {} ({})", date_text(run_.first_time), date_text(run_.last_time),
                                  human_duration(run_.last_time - run_.first_time)));
    return fmt::format("{}", fmt::join(parts, "  \xC2\xB7  "));
  }

  // The last values, and the best of each evaluation metric.
  std::string facts() const {
    std::vector<Card> all;
    const auto last = [&](const char* name) { return run_.find(name); };
    if (const Series* loss = last("loss")) {
      const i64 total = total_steps(run_.events);
      const auto step = static_cast<i64>(loss->last().step);
      all.push_back({"step", fmt::format("{}", step), total > 0 ? fmt::format("of {}", total) : ""});
      if (const Series* e = last("epoch"))
        all.push_back({"epoch", fmt::format("{:.2f}", e->last().value), ""});
      all.push_back({"loss", human_number(loss->last().value), ""});
    }
    constexpr std::size_t kMostMetrics = 6;
    std::size_t shown = 0;
    for (const auto& [name, series] : run_.curves)
      if (is_evaluation(name) && ++shown <= kMostMetrics) all.push_back(evaluation_card(name, series));
    for (const auto& [name, series] : run_.curves)
      if (name.ends_with("_per_s"))
        all.push_back(
            {words(name.substr(0, name.size() - 6)) + " per second", human_count(series.last().value), ""});
    if (const Series* v = last("ceiling_share"))
      all.push_back({"of peak matmul speed", human_percent(v->last().value), ""});
    if (const Series* v = last("peak_memory_bytes"))
      all.push_back({"peak memory", bytes_text(v->last().value), ""});
    return cards(all);
  }

  static Card evaluation_card(const std::string& name, const Series& series) {
    const auto more = more_is_better(name);
    const Series::Point& p = !more ? series.last() : *more ? series.most() : series.least();
    return {(more ? "best " : "last ") + words(name), human_number(p.value),
            fmt::format("step {:.0f}", p.step)};
  }

  std::string curves() const {
    std::vector<double> resumes;
    for (const ckpt::RunEvent& e : run_.events)
      if (e.kind == ckpt::RunEvent::Kind::start && e.step > 0) resumes.push_back(static_cast<double>(e.step));
    std::string s;
    std::vector<Card> numbers;
    for (const Figure& f : figures(run_.curves)) {
      std::vector<ChartLine> lines;
      for (const auto& [label, name] : f.lines)
        if (const Series* series = run_.find(name))
          lines.push_back({label, series, lines.size(), is_evaluation(name)});
      if (is_chart(lines)) {
        s += chart({.title = f.title, .resumes = resumes}, lines);
        continue;
      }
      for (const ChartLine& l : lines)
        numbers.push_back({lines.size() > 1 ? f.title + ", " + l.label : f.title,
                           human_number(l.series->last().value),
                           fmt::format("step {:.0f}", l.series->last().step)});
    }
    return (s.empty() ? "" : "<div class=\"charts\">\n" + s + "</div>\n") + cards(numbers);
  }

  // A row for each true class, a column for each predicted one, with the share of the row as the shade.
  static std::string confusion(const RunData::Confusion& c) {
    const std::size_t n = c.classes.size();
    std::vector<double> predicted(n, 0);
    std::string rows;
    for (std::size_t t = 0; t < n; ++t) {
      double total = 0;
      for (std::size_t p = 0; p < n; ++p) {
        total += static_cast<double>(c.counts[t][p]);
        predicted[p] += static_cast<double>(c.counts[t][p]);
      }
      rows += "<tr><th>" + escape(c.classes[t]) + "</th>";
      for (std::size_t p = 0; p < n; ++p) {
        const double share = total > 0 ? static_cast<double>(c.counts[t][p]) / total : 0;
        rows += fmt::format("<td class=\"n{}\" style=\"--p:{:.2f}\">{}</td>", p == t ? " hit" : "", share,
                            c.counts[t][p]);
      }
      rows +=
          "<td class=\"n edge\">" + share_text(static_cast<double>(c.counts[t][t]), total) + "</td></tr>\n";
    }
    std::string head = "<tr><th>true \\ predicted</th>", precision = "<tr><th>precision</th>";
    for (std::size_t p = 0; p < n; ++p) {
      head += "<th class=\"n\">" + escape(c.classes[p]) + "</th>";
      precision +=
          "<td class=\"n edge\">" + share_text(static_cast<double>(c.counts[p][p]), predicted[p]) + "</td>";
    }
    return fmt::format("<p class=\"sub\">evaluation after step {}{}</p>\n", c.step,
                       c.set.empty() ? "" : ", " + escape(c.set)) +
           "<div class=\"scroll fit\"><table class=\"confusion\">\n" + head +
           "<th class=\"n\">recall</th></tr>\n" + rows + precision + "<td></td></tr>\n</table></div>\n";
  }

  static std::string share_text(double part, double whole) {
    return whole > 0 ? fmt::format("{:.0f}%", 100 * part / whole) : "-";
  }

  std::string samples() const {
    std::string s;
    for (std::size_t i = 0; i < run_.outputs.size(); ++i) {
      const RunData::Outputs& o = run_.outputs[i];
      if (o.rows.empty()) continue;
      std::string what = fmt::format("after step {}{}", o.step, o.set.empty() ? "" : ", " + escape(o.set));
      if (o.n > static_cast<i64>(o.rows.size())) what += fmt::format(", {} of {}", o.rows.size(), o.n);
      const std::string inside = sample_rows(o);
      s += s.empty() ? "<p class=\"sub\">" + what + "</p>\n" + inside
                     : "<details><summary>" + what + "</summary>\n" + inside + "</details>\n";
    }
    return s;
  }

  // A table, or a grid if the outputs have images: below an image are the row's texts, except its id.
  static std::string sample_rows(const RunData::Outputs& o) {
    std::vector<Picture> pictures;
    bool images = false;
    for (const Row& row : o.rows) {
      Picture& one = pictures.emplace_back();
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (is_png_uri(row[i])) {
          one.uris.push_back(row[i]);
        } else if (o.head[i] != "id" && !row[i].empty()) {
          one.caption += (one.caption.empty() ? "" : "; ") + row[i];
        }
      }
      images = images || !one.uris.empty();
    }
    return images ? image_grid(pictures) : table(o.head, o.rows, "");
  }

  std::string checkpoints() const {
    std::vector<Row> rows;
    for (const auto& c : run_.checkpoints)
      rows.push_back({c.name, fmt::format("{}", c.step), human_bytes(static_cast<u64>(c.bytes)),
                      fmt::format("{}", fmt::join(c.pointers, ", ")),
                      c.newest_whole ? "newest complete one" : ""});
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
    struct Part {
      const char* name;
      bool optional = false;  // not shown if it is 0
    };
    for (const Part& part : {Part{"parameters"}, Part{"gradients"}, Part{"optimizer"}, Part{"activations"},
                             Part{"buffers"}, Part{"base"}, Part{.name = "checkpoint", .optional = true}}) {
      const double n = number(at(memory, part.name));
      if (part.optional && !(n > 0)) continue;
      bar += fmt::format("<i class=\"k{}\" style=\"width:{:.2f}%\"></i>", color,
                         std::clamp(100 * n / total, 0.0, 100.0));
      row(fmt::format("<span class=\"key k{}\">{}</span>", color++, part.name), n);
    }
    row("all", total);
    row("limit per rank", number(at(plan, "memory_limit")));
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
  RunState state_;
};

}  // namespace

std::string make_report(const ReportRequest& request) {
  return Page(request, read_run(request.workdir)).text();
}

}  // namespace redco
