// What mpirun writes to stderr is the ranks' stderr and its own banners between lines of dashes. This takes
// the stream apart: ranks' text passes at once and unchanged, mpirun's boilerplate is dropped, and what it
// says about the end of the job is kept as a Failure. Pure: bytes in, bytes out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

class MpirunOutput {
 public:
  struct Failure {
    enum class Kind {
      exit_code,  // a rank ended with a code; it has said why itself
      signal,     // a rank was killed
      lost_host,  // the connection to a host broke
      no_start    // ranks could not be started
    } kind = Kind::exit_code;
    int rank = -1;     // -1: unknown
    int number = 0;    // exit code or signal
    std::string host;  // "" unknown
    std::string name;  // the signal's, "Killed"
  };

  // What of `bytes` (and of what was held back before) is to be printed now.
  std::string feed(std::string_view bytes);
  // At the end of the stream, or when nothing has come for a moment: what was held back.
  std::string flush();
  // True while something is held back, waiting for the rest of a banner.
  bool holding() const { return inside_ || !line_.empty(); }
  // The first failure that mpirun named, those with a signal before those with an exit code.
  const std::optional<Failure>& failure() const { return failure_; }
  // One line for the user, "" where the ranks have said it themselves:
  //   rank 1 on node2 was killed by signal 9 (Killed): ...
  std::string message() const;

 private:
  void line(std::string& out);
  std::string end_of_banner();
  void keep(Failure f);

  std::string line_;      // the unfinished line
  bool inside_ = false;   // between dashes
  bool partial_ = false;  // the beginning of the line was printed already
  std::string banner_;
  std::optional<Failure> failure_;
};

}  // namespace redco
