// Splits mpirun's stderr: the ranks' own text passes immediately and unchanged; mpirun's and Open MPI's own
// text (frames between lines of dashes, remarks) is kept apart, and what it says about the end of the job
// becomes a Failure. Pure: bytes in, bytes out.
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
      exit_code,  // a rank ended with a code; it has printed the reason itself
      signal,     // a rank was killed
      lost_host,  // the connection to a host broke
      no_start    // ranks could not be started
    } kind = Kind::exit_code;
    int rank = -1;     // -1: unknown
    int number = 0;    // exit code or signal
    std::string host;  // "" unknown
  };

  // `file`: where the caller keeps own_text(), for the message that points to it.
  explicit MpirunOutput(std::string file = "") : file_(std::move(file)) {}

  // The text to print now, from `bytes` and from text held back before. Of Open MPI's own text that redco
  // does not know, the first time, it has one line: its first sentence and the file.
  std::string feed(std::string_view bytes);
  // The text held back, at the end of the stream or after a pause.
  std::string flush();
  // True while text is held back, waiting for the rest of a frame.
  bool holding() const { return inside_ || !line_.empty(); }
  // The first failure that mpirun reported; one with a signal replaces one with an exit code.
  const std::optional<Failure>& failure() const { return failure_; }
  // Open MPI's own text so far, at most 64 KiB.
  const std::string& own_text() const { return own_text_; }
  // Whether own_text() has more than the failures above: a user may want to read it.
  bool has_unknown_text() const { return has_unknown_; }

 private:
  void line(std::string& out);
  std::string end_of_frame();
  void keep(Failure f);
  void keep_own(std::string_view text);
  std::string point_to(std::string_view text);

  std::string file_;
  std::string line_;      // the unfinished line
  bool inside_ = false;   // between dashes
  bool partial_ = false;  // the beginning of the line was printed already
  std::string frame_;
  std::string own_text_;
  bool has_unknown_ = false;
  bool aborted_ = false;  // by a rank that has printed the reason
  std::optional<Failure> failure_;
};

}  // namespace redco
