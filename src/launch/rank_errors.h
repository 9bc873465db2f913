// One error message for a failed job, even if several ranks fail together: ranks mark the lines of an error,
// and the launcher prints those of one rank.
#pragma once

#include <string>
#include <string_view>

namespace redco {

// Set in the environment of ranks that redco's launcher started.
constexpr const char* kMarkErrors = "REDCO_MARK_ERRORS";
// Set in the environment of a process that redco executed again with all variables.
constexpr const char* kStarted = "REDCO_STARTED";

// `text` with a mark and the rank before each line; ends with a line break.
std::string marked(std::string_view text, int rank);

// The text of a rank that a signal ends.
std::string marked_end(std::string_view text, int rank);

// A filter for the text of all ranks: unmarked text passes immediately and unchanged; marked lines pass,
// without the mark, if they are of the rank that wrote the first one. Ends by a signal do not pass: mpirun
// also sends it to the ranks that are left after an error.
class OneVoice {
 public:
  std::string feed(std::string_view bytes);
  // At the end of the stream: the rest of an unfinished marked line.
  std::string flush();
  // Whether a rank has printed an error.
  bool heard() const { return speaker_ >= 0; }
  // The first text of marked_end(); "" if there was none.
  const std::string& end_text() const { return end_text_; }

 private:
  std::string unmark(std::string_view line);
  std::string held_;  // an unfinished marked line
  std::string end_text_;
  bool at_start_ = true;  // the next byte begins a line
  int speaker_ = -1;
};

}  // namespace redco
