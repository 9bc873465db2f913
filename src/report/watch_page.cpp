#include "report/watch_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "base/words.h"
#include "report/starts.h"

namespace redco {

namespace {

constexpr std::array<const char*, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr int kChartRows = 8, kEvents = 4;
constexpr std::size_t kRecent = 20;  // buckets

std::string last_value(const RunData& run, const char* name, std::string (*text)(double)) {
  const Series* s = run.find(name);
  return s ? text(s->last().value) : "-";
}

// The mean of the last values: a single one depends on what the machine did at that moment.
double recent(const Series& s) {
  const auto& buckets = s.buckets();
  double sum = 0, n = 0;
  for (std::size_t i = buckets.size() - std::min(kRecent, buckets.size()); i < buckets.size(); ++i) {
    sum += buckets[i].sum;
    n += static_cast<double>(buckets[i].n);
  }
  return sum / n;
}

std::string share(double v) { return human_percent(v); }
std::string bytes(double v) { return human_bytes(static_cast<u64>(std::max(0.0, v))); }
std::string count(double v) { return human_count(v); }
std::string number(double v) { return human_number(v); }

// The first `columns` characters of a line of UTF-8.
std::string cut(const std::string& line, int columns) {
  int n = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if ((static_cast<unsigned char>(line[at]) & 0xC0) != 0x80 && n++ == columns) return line.substr(0, at);
  }
  return line;
}

std::string bar(double part, int columns) {
  const int full = static_cast<int>(std::clamp(part, 0.0, 1.0) * columns);
  std::string text;
  for (int i = 0; i < columns; ++i) text += i < full ? "█" : "░";
  return text;
}

// "step 40 of 200, 20 %, about 3 min left"
std::string progress(const RunData& run, const RunState& state, i64 total, int columns) {
  const Series* steps = run.find("step_s");
  const Series* loss = run.find("loss");
  const i64 step = loss ? static_cast<i64>(loss->last().step) : 0;
  if (total <= 0) return fmt::format("step {}", step);
  const double part = static_cast<double>(step) / static_cast<double>(total);
  std::string text = fmt::format("step {} of {}  {:.0f} %", step, total, 100 * part);
  if (steps && state.kind == RunState::Kind::running)
    text += "  about " + human_duration(recent(*steps) * static_cast<double>(total - step)) + " left";
  const int left = columns - static_cast<int>(text.size()) - 2;
  return left > 10 ? text + "  " + bar(part, std::min(left, 40)) : text;
}

}  // namespace

std::vector<std::string> text_chart(const Series& series, int columns, int rows) {
  std::vector<double> values;
  for (const Series::Bucket& b : series.buckets()) values.push_back(b.mean());
  // Neighbours are averaged, so that all of the run fits.
  const std::size_t width = static_cast<std::size_t>(std::max(1, columns));
  std::vector<double> shown;
  const std::size_t n = std::min(width, values.size());
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t begin = i * values.size() / n, end = std::max(begin + 1, (i + 1) * values.size() / n);
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += values[k];
    shown.push_back(sum / static_cast<double>(end - begin));
  }
  std::vector<std::string> out(static_cast<std::size_t>(std::max(1, rows)));
  if (shown.empty()) return out;
  const auto [least, most] = std::minmax_element(shown.begin(), shown.end());
  const double low = *least, range = *most - *least;
  const int levels = rows * 8;
  for (const double v : shown) {
    const int level = range > 0 ? 1 + static_cast<int>((v - low) / range * (levels - 1)) : levels / 2;
    for (int r = 0; r < rows; ++r)
      out[static_cast<std::size_t>(r)] +=
          kBlocks[static_cast<std::size_t>(std::clamp(level - 8 * (rows - 1 - r), 0, 8))];
  }
  return out;
}

std::string watch_page(const std::string& workdir, const RunData& run, const RunState& state,
                       const WatchPage& page) {
  const int columns = std::max(1, page.columns);
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}  {}", workdir, state.text.empty() ? name_of(state.kind) : state.text));
  if (!state.error.empty()) lines.push_back(excerpt(state.error, static_cast<std::size_t>(columns)));
  const i64 total = total_steps(run.events);
  lines.push_back(progress(run, state, total, columns));
  if (run.last_time > 0)
    lines.push_back(fmt::format("last step {} ago, run {} long",
                                human_duration(std::max(0.0, page.now - run.last_time)),
                                human_duration(run.last_time - run.first_time)));
  const Series* loss = run.find("loss");
  if (loss) {
    lines.emplace_back();
    const int rows = std::clamp(page.rows - 16, 3, kChartRows);
    const auto chart = text_chart(*loss, columns - 12, rows);
    for (std::size_t r = 0; r < chart.size(); ++r)
      lines.push_back(fmt::format("{:>9}  {}",
                                  r == 0                  ? number(loss->most().value)
                                  : r + 1 == chart.size() ? number(loss->least().value)
                                  : r == chart.size() / 2 ? "loss"
                                                          : "",
                                  chart[r]));
    lines.emplace_back();
    lines.push_back(fmt::format("loss {}  lr {}  grad norm {}", last_value(run, "loss", number),
                                last_value(run, "learning_rate", number),
                                last_value(run, "grad_norm", number)));
    lines.push_back(
        fmt::format("{} tokens/s  {} of peak matmul speed  {}", last_value(run, "tokens_per_s", count),
                    last_value(run, "ceiling_share", share), last_value(run, "peak_memory_bytes", bytes)));
    const Series *step = run.find("step_s"), *waits = run.find("waiting_s");
    if (step && waits && step->last().value > 0)
      lines.push_back(fmt::format("step {}, of which {} are waits for other ranks",
                                  human_duration(step->last().value),
                                  human_percent(waits->last().value / step->last().value)));
  }
  std::string evaluations;
  for (const auto& [name, series] : run.curves)
    if (name.starts_with("eval_"))
      evaluations += fmt::format("{}{} {} (step {:.0f})", evaluations.empty() ? "" : "  ", name.substr(5),
                                 number(series.last().value), series.last().step);
  if (!evaluations.empty())
    lines.push_back("evaluation: " + excerpt(evaluations, static_cast<std::size_t>(columns)));
  const auto starts = run_starts(run.events);
  if (!starts.empty()) {
    i64 lost = 0;
    for (const RunStartRow& s : starts) lost += s.lost_steps;
    lines.push_back(fmt::format(
        "hosts: {}{}", starts.back().hosts.empty() ? "unknown" : excerpt(starts.back().hosts, 200),
        starts.size() > 1
            ? fmt::format("  {}, {} lost", counted(starts.size(), "start"), counted(lost, "step"))
            : ""));
  }
  lines.emplace_back();
  std::vector<std::string> log;
  std::istringstream tail(run.log_tail);
  for (std::string line; std::getline(tail, line);)
    log.push_back(excerpt(line, static_cast<std::size_t>(columns)));
  const std::size_t shown =
      std::min(log.size(),
               static_cast<std::size_t>(std::max(kEvents, page.rows - static_cast<int>(lines.size()) - 1)));
  lines.insert(lines.end(), log.end() - static_cast<std::ptrdiff_t>(shown), log.end());
  for (const std::string& p : run.problems) lines.push_back("damaged: " + excerpt(p, 200));
  std::string text;
  const std::size_t most = static_cast<std::size_t>(std::max(1, page.rows - 1));
  for (std::size_t i = 0; i < std::min(lines.size(), most); ++i) text += cut(lines[i], columns) + "\n";
  return text;
}

}  // namespace redco
