#include "report/starts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"
#include "report/html.h"

namespace redco {

std::vector<RunStartRow> run_starts(const std::vector<ckpt::RunEvent>& events) {
  using Kind = ckpt::RunEvent::Kind;
  std::vector<RunStartRow> out;
  double ended = 0;
  bool again = false;  // a launcher makes the next start
  for (const ckpt::RunEvent& e : events) {
    if (e.kind == Kind::start) {
      if (again && !out.empty()) out.back().lost_time = std::max(0.0, e.time - ended);
      // Where the next start begins is known better than the newest checkpoint.
      if (!out.empty() && out.back().last_step >= 0)
        out.back().lost_steps = std::max<i64>(0, out.back().last_step - e.step);
      out.push_back({.number = e.number, .began = e.time, .step = e.step, .hosts = e.hosts});
      again = false;
      continue;
    }
    if (out.empty()) continue;
    RunStartRow& row = out.back();
    if (!again) ended = e.time;
    row.last_step = std::max(row.last_step, e.step);
    if (e.kind == Kind::restart) {
      again = true;
      row.lost_steps = e.lost_steps;
    }
    if (row.end.empty())
      row.end = !e.reason.empty() ? e.reason : e.kind == Kind::finished ? "finished" : "failed";
  }
  return out;
}

std::string starts_section(const std::vector<ckpt::RunEvent>& events) {
  const std::vector<RunStartRow> starts = run_starts(events);
  if (starts.size() < 2) return "";
  std::vector<Row> rows;
  i64 lost = 0;
  double minutes = 0;
  for (const RunStartRow& s : starts) {
    lost += s.lost_steps;
    minutes += s.lost_time / 60;
    rows.push_back({s.number > 0 ? fmt::format("{}", s.number) : "", date_text(s.began),
                    fmt::format("{}", s.step), s.last_step >= 0 ? fmt::format("{}", s.last_step) : "",
                    s.hosts, s.end, fmt::format("{}", s.lost_steps),
                    s.lost_time > 0 ? fmt::format("{:.1f}", s.lost_time / 60) : ""});
  }
  return fmt::format("<p class=\"sub\">{}, {} made again, {:.1f} minutes until restarts</p>\n",
                     counted(starts.size(), "start"), counted(lost, "step"), minutes) +
         table({"start", "began", "from step", "to step", "hosts", "end", "lost steps", "lost minutes"}, rows,
               "ntnntcnn");
}

}  // namespace redco
