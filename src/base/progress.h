// Progress of a long task. A terminal shows one line that is redrawn at most ten times a second. Otherwise
// plain lines appear, one every 5 seconds at first and one a minute in long runs, so that a log stays small.
// The log file always gets the plain lines.
//
//   train [=======>            ]  380/1000  38%  4 min 05 s left  loss 3.21  lr 2.9e-04  12.3 k tokens/s
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/timing.h"
#include "base/types.h"

namespace redco {

class Progress {
 public:
  // Fields shown after the counts and the remaining time, in order: ("loss", "3.21"). If the name is empty,
  // only the value is shown. A narrow terminal shows only the first fields.
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // Where progress is shown. Tests pass their own.
  struct Output {
    bool terminal;
    int columns;                                   // of the terminal; 0: asked at each drawing
    std::function<double()> now;                   // seconds of a monotonic clock
    std::function<void(std::string_view)> status;  // replaces the transient line
    std::function<void(std::string_view)> line;    // writes a permanent line
    std::function<void(std::string_view)> record;  // writes a line to the log file
  };
  static Output standard();  // stderr unless REDCO_LOG hides messages, and the log file if there is one

  // Counts from `start` (a resumed run's step) to `total`. total 0 means unknown: no bar and no remaining
  // time.
  Progress(std::string label, i64 total, i64 start = 0, Output output = standard());
  ~Progress();  // removes the transient line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap when it is too early to show anything.
  void update(i64 done, const Fields& fields);

  // The same, but makes the fields only if they are shown.
  template <class MakeFields>
  requires std::invocable<MakeFields&>
  void update(i64 done, MakeFields&& fields) {
    if (due(done)) show(done, fields());
  }

  // Reports time since the last update without progress (an evaluation, a save). The remaining time includes
  // such pauses in proportion.
  void paused(double seconds);

  // Shows the final line with the elapsed time. Later calls do nothing.
  void finish(i64 done, const Fields& fields);

 private:
  bool due(i64 done);
  void show(i64 done, const Fields& fields);
  std::string line(i64 done, const Fields& fields, bool bar, bool last, std::size_t columns) const;

  std::string label_;
  i64 total_, start_, done_;
  Output out_;
  double begin_, counted_;  // seconds: the start, and the end of the last counted step
  double drawn_, written_;  // seconds: when the bar and the last plain line were shown
  double paused_ = 0;       // since counted_
  bool draw_ = false, write_ = false;
  bool finished_ = false;
  Pace pace_;
};

// Progress through bytes, shown only for tasks that take longer than a second.
class LateProgress {
 public:
  explicit LateProgress(std::string label) : label_(std::move(label)) {}
  ~LateProgress();
  LateProgress(const LateProgress&) = delete;
  LateProgress& operator=(const LateProgress&) = delete;
  void operator()(i64 done, i64 total);

 private:
  std::string label_;
  double begin_ = seconds();
  std::unique_ptr<Progress> shown_;
  i64 done_ = 0;
};

}  // namespace redco
