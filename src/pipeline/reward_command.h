// A program of the user that rewards answers. It reads JSON lines on standard input and writes a number for
// each to standard output.
#pragma once

#include <string>
#include <vector>

namespace redco {

class RewardCommand {
 public:
  // `command` runs in /bin/sh -c, in the current folder, when score() is called first; it then stays. Its
  // standard error is that of this process.
  RewardCommand(std::string command, double timeout);
  // Closes the program's input. If the program then does not end, it is killed with its process group.
  ~RewardCommand();
  RewardCommand(const RewardCommand&) = delete;
  RewardCommand& operator=(const RewardCommand&) = delete;

  // Sends the lines (JSON objects without line breaks) and returns the program's numbers, in their order. A
  // number is a separate line: 0.5, or {"reward": 0.5}. UsageError that quotes the command: it can't
  // start, ends early, writes something else or too many lines, or takes longer than the time-out (seconds).
  // Error(interrupted): a signal has ended the run. One thread at a time.
  std::vector<double> score(const std::vector<std::string>& lines);

 private:
  void start();
  void stop() noexcept;
  [[noreturn]] void fail(const std::string& why);

  std::string command_, unread_;
  double timeout_;
  int pid_ = -1;            // of the program; -1: it does not run
  int in_ = -1, out_ = -1;  // this side of the program's standard input and output
};

}  // namespace redco
