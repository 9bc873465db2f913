// How far a long job is. On a terminal one line that is drawn over itself, at most ten times a second;
// elsewhere plain lines, one every 5 seconds at first and one a minute in long runs, so that a log stays
// small. The log file has the plain lines in either case.
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
  // What is shown after the counts and the time left, in order: ("loss", "3.21"); an empty name shows the
  // value. A terminal too narrow for all shows the first ones.
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // Where it is shown; tests bring their own.
  struct Output {
    bool terminal;
    int columns;                                   // of the terminal, asked at each drawing where 0
    std::function<double()> now;                   // seconds, steadily growing
    std::function<void(std::string_view)> status;  // replaces the transient line
    std::function<void(std::string_view)> line;    // writes a line to stay
    std::function<void(std::string_view)> record;  // writes a line to the log file
  };
  static Output standard();  // stderr, unless REDCO_LOG hides messages; the log file, where there is one

  // From `start` (a resumed run's step) to `total`; total 0: unknown, no bar and no time left.
  Progress(std::string label, i64 total, i64 start = 0, Output output = standard());
  ~Progress();  // takes the transient line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Costs next to nothing when it is too early to show anything.
  void update(i64 done, const Fields& fields);

  // As update(), but `fields` is made only when it is to be shown.
  template <class MakeFields>
  requires std::invocable<MakeFields&>
  void update(i64 done, MakeFields&& fields) {
    if (due(done)) show(done, fields());
  }

  // Time since the last update that was no progress (an evaluation, a save): the time left counts it by its
  // share.
  void paused(double seconds);

  // Shows the end for good, with the time it took. Further calls do nothing.
  void finish(i64 done, const Fields& fields);

 private:
  bool due(i64 done);
  void show(i64 done, const Fields& fields);
  std::string line(i64 done, const Fields& fields, bool bar, bool last, std::size_t columns) const;

  std::string label_;
  i64 total_, start_, done_;
  Output out_;
  double begin_, counted_;  // seconds: the start, and until when steps are counted
  double drawn_, written_;  // when the bar and the last plain line were shown
  double paused_ = 0;       // since counted_
  bool draw_ = false, write_ = false;
  bool finished_ = false;
  Pace pace_;
};

// Progress through bytes, shown once it takes longer than anybody wants to wait without a word.
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
