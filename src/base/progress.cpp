#include "base/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/activity.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kFirstLineSeconds = 5, kLongestLineSeconds = 60;

// Number of UTF-8 characters.
std::size_t width(const std::string& s) {
  return static_cast<std::size_t>(std::count_if(
      s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

Progress::Output Progress::standard() {
  Output o;
  o.terminal = stderr_is_terminal();
  o.columns = 0;
  o.now = seconds;
  o.status = [](std::string_view s) {
    if (log_level() <= LogLevel::info) set_status_line(s);
  };
  o.line = [](std::string_view s) {
    if (log_level() <= LogLevel::info) print_message(s);
  };
  o.record = log_to_file;
  return o;
}

Progress::Progress(std::string label, i64 total, i64 start, Output output)
    : label_(std::move(label)), total_(total), start_(start), done_(start), out_(std::move(output)) {
  begin_ = counted_ = drawn_ = written_ = out_.now();
}

Progress::~Progress() {
  if (!finished_ && out_.terminal) out_.status("");
}

void Progress::paused(double seconds) { paused_ += seconds; }

bool Progress::due(i64 done) {
  activity::tick();
  if (finished_) return false;
  const double now = out_.now();
  if (done > done_) {
    pace_.step(done - done_, std::max(0.0, now - counted_ - paused_));
    pace_.pause(paused_);
    done_ = done;
    counted_ = now;
    paused_ = 0;
  }
  // Lines become rarer: the interval is 1/60 of the elapsed time.
  write_ = now - written_ >= std::clamp((now - begin_) / 60, kFirstLineSeconds, kLongestLineSeconds);
  // The first step is drawn immediately, to show that the work has begun.
  draw_ = out_.terminal && ((drawn_ == begin_ && done > start_) || now - drawn_ >= kRedrawSeconds);
  if (write_) written_ = now;
  if (draw_) drawn_ = now;
  return write_ || draw_;
}

void Progress::update(i64 done, const Fields& fields) {
  if (due(done)) show(done, fields);
}

void Progress::show(i64 done, const Fields& fields) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  if (draw_) {
    // Leave the last column free: some terminals wrap after a character there.
    const int columns = (out_.columns > 0 ? out_.columns : terminal_columns()) - 1;
    out_.status(line(done, fields, true, false, static_cast<std::size_t>(std::max(1, columns))));
  }
  if (!write_) return;
  const std::string text = line(done, fields, false, false, kAll);
  if (!out_.terminal) out_.line(text);
  out_.record(text);
}

void Progress::finish(i64 done, const Fields& fields) {
  if (finished_) return;
  finished_ = true;
  if (out_.terminal) out_.status("");
  const std::string text = line(done, fields, false, true, std::numeric_limits<std::size_t>::max());
  out_.line(text);
  out_.record(text);
}

std::string Progress::line(i64 done, const Fields& fields, bool bar, bool last, std::size_t columns) const {
  std::vector<std::string> parts;
  std::string head = label_;
  if (total_ > 0) {
    const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0);
    if (bar) {
      constexpr int kWidth = 20;
      const int full = static_cast<int>(share * kWidth);
      head += fmt::format(" [{:=<{}}{}{:{}}]", "", full, full < kWidth ? ">" : "", "",
                          std::max(0, kWidth - 1 - full));
    }
    // Rounded down, so that 100% appears only at the end.
    head += fmt::format("  {}/{}  {:.0f}%", done, total_, std::floor(100 * share));
  } else {
    head += fmt::format("  {}", done);
  }
  parts.push_back(head);
  if (last) {
    parts.push_back("in " + human_duration(out_.now() - begin_));
  } else if (total_ > 0 && pace_.step_seconds() > 0) {
    parts.push_back(human_duration(pace_.left(total_ - done)) + " left");
  }
  for (const auto& [name, value] : fields) parts.push_back(name.empty() ? value : name + " " + value);
  std::string s;
  for (const std::string& p : parts) {
    if (!s.empty() && width(s) + 2 + width(p) > columns) break;
    s += (s.empty() ? "" : "  ") + p;
  }
  while (width(s) > columns) s.pop_back();
  return s;
}

void LateProgress::operator()(i64 done, i64 total) {
  constexpr double kLate = 1;  // s
  done_ = done;
  const double took = seconds() - begin_;
  if (!shown_ && took > kLate) shown_ = std::make_unique<Progress>(label_, total);
  if (shown_)
    shown_->update(done, [&] {
      return Progress::Fields{{"", human_bytes(static_cast<u64>(static_cast<double>(done) / took)) + "/s"}};
    });
}

LateProgress::~LateProgress() {
  if (shown_) shown_->finish(done_, {});
}

}  // namespace redco
