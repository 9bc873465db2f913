#include "base/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/log.h"
#include "base/terminal.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kFirstLineSeconds = 5, kLongestLineSeconds = 60;

// The first `columns` characters.
std::string fit(const std::string& s, int columns) {
  int n = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if ((static_cast<unsigned char>(s[i]) & 0xC0) != 0x80 && ++n > columns) return s.substr(0, i);
  }
  return s;
}

}  // namespace

Progress::Output Progress::standard() {
  Output o;
  o.terminal = stderr_is_terminal();
  o.columns = 0;
  o.now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  o.status = [](std::string_view s) {
    if (log_level() <= LogLevel::info) set_status_line(s);
  };
  // Lines go to stderr alone: the log file has the run's own messages, metrics.jsonl its numbers.
  o.line = [](std::string_view s) {
    if (log_level() <= LogLevel::info) print_message(s);
  };
  return o;
}

Progress::Progress(std::string label, i64 total, i64 start, Output output)
    : label_(std::move(label)), total_(total), start_(start), out_(std::move(output)) {
  begin_ = shown_ = out_.now();
}

Progress::~Progress() {
  if (!finished_ && out_.terminal) out_.status("");
}

bool Progress::due(i64 done) {
  if (finished_) return false;
  const double now = out_.now();
  // Rarer and rarer: a sixtieth of the time gone by.
  const double wait = out_.terminal ? kRedrawSeconds
                                    : std::clamp((now - begin_) / 60, kFirstLineSeconds, kLongestLineSeconds);
  // The first step is shown at once on a terminal: something has begun.
  const bool first = out_.terminal && shown_ == begin_ && done > start_;
  return first || now - shown_ >= wait;
}

void Progress::update(i64 done, const Fields& fields) {
  if (due(done)) show(done, fields, false);
}

void Progress::finish(i64 done, const Fields& fields) {
  if (finished_) return;
  show(done, fields, true);
  finished_ = true;
}

void Progress::show(i64 done, const Fields& fields, bool last) {
  shown_ = out_.now();
  const std::string text = line(done, fields, last);
  if (!out_.terminal) return out_.line(text);
  const int columns = out_.columns > 0 ? out_.columns : terminal_columns();
  if (last) {
    out_.status("");
    out_.line(fit(text, columns));
  } else {
    // A character in the last column makes some terminals wrap.
    out_.status(fit(text, columns - 1));
  }
}

std::string Progress::line(i64 done, const Fields& fields, bool last) const {
  std::string s = label_;
  if (total_ > 0) {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
    if (out_.terminal) {
      constexpr int kWidth = 20;
      const int full = static_cast<int>(share * kWidth);
      s += fmt::format(" [{:=<{}}{}{:{}}]", "", full, full < kWidth ? ">" : "", "",
                       std::max(0, kWidth - 1 - full));
    }
    // Rounded down: 100% is the end.
    s += fmt::format("  {}/{}  {:.0f}%", done, total_, std::floor(100 * share));
  } else {
    s += fmt::format("  {}", done);
  }
  for (const auto& [name, value] : fields) s += "  " + (name.empty() ? value : name + " " + value);
  const double elapsed = shown_ - begin_;
  if (last) {
    s += "  in " + human_duration(elapsed);
  } else if (total_ > 0 && done > start_) {
    const double each = elapsed / static_cast<double>(done - start_);
    s += "  " + human_duration(each * static_cast<double>(std::max<i64>(0, total_ - done))) + " left";
  }
  return s;
}

}  // namespace redco
