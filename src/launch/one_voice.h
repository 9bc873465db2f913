// One message for a job that failed, whoever finds out first: ranks mark the lines of an error, the launcher
// passes those of one rank.
#pragma once

#include <string>
#include <string_view>

namespace redco {

// In the environment of ranks that redco itself has started.
constexpr const char* kMarkErrors = "REDCO_MARK_ERRORS";
// In the environment of a process that redco started again with its environment complete.
constexpr const char* kStarted = "REDCO_STARTED";

// Each line of `text` behind a mark with the rank; ends with a line break.
std::string marked(std::string_view text, int rank);

// The stream of all ranks' text: unmarked text passes at once, unchanged; of marked lines those of the first
// rank heard, without the mark.
class OneVoice {
 public:
  std::string feed(std::string_view bytes);
  // The end of the stream: a marked line that was cut.
  std::string flush();
  // A rank has said why the job failed.
  bool heard() const { return speaker_ >= 0; }

 private:
  std::string unmark(std::string_view line);
  std::string held_;      // an unfinished marked line
  bool at_start_ = true;  // of a line
  int speaker_ = -1;
};

}  // namespace redco
