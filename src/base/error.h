// Errors. An Error has an exit code and a message for the user. REDCO_CHECK reports a bug in redco.
//
// A message states where the error is, what was found, what was expected and what to do, for example
//   [mesh] n_ranks=6 is not a multiple of n_model_shards=4 (job.yaml:12:13); use 4, 8 or 12
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace redco {

// The process exit codes; docs/exit_codes.md explains each.
enum class ExitCode : int {
  ok = 0,
  check_failed = 1,  // a check found a difference: `verify`, `score`
  usage = 2,         // command line or job file, including a path that doesn't exist
  contents = 3,      // the contents of a data, model or checkpoint file are wrong
  doesnt_fit = 4,    // not enough memory: `plan --require-fit`, or a run
  rank_failed = 5,   // a rank died or doesn't respond
  non_finite = 6,    // loss or gradient is not finite, and train.on_non_finite is stop
  io = 7,            // reading or writing failed (disk full, read-only)
  interrupted = 8,   // a signal stopped the run after a checkpoint; the job can resume
  bug = 70,          // an internal check failed
};

// Base class of all errors that redco throws. what() is the whole message for the user.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// The command line, the job file or the mesh is wrong: exit code 2.
class UsageError : public Error {
 public:
  template <class... A>
  explicit UsageError(fmt::format_string<A...> f, A&&... a)
      : Error(ExitCode::usage, fmt::format(f, std::forward<A>(a)...)) {}
};

// The contents of a file are wrong: exit code 3. The message names the file.
class ContentsError : public Error {
 public:
  template <class... A>
  explicit ContentsError(fmt::format_string<A...> f, A&&... a)
      : Error(ExitCode::contents, fmt::format(f, std::forward<A>(a)...)) {}
};

// The system failed to read or write: exit code 7.
class IoError : public Error {
 public:
  template <class... A>
  explicit IoError(fmt::format_string<A...> f, A&&... a)
      : Error(ExitCode::io, fmt::format(f, std::forward<A>(a)...)) {}
};

// A broken invariant inside redco: exit code 70. In the functions of a user's pipeline its cause is the
// user's code: in_pipeline() (pipeline/pipeline.h) makes it a UsageError.
class BugError : public Error {
 public:
  // found: what was found, without the place in redco's sources. In a user's function its line is added
  // (base/user_line.h).
  explicit BugError(const std::string& message, const std::string& found = "");
  const std::string& found() const { return found_; }

 private:
  std::string found_;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace redco

// REDCO_CHECK(cond) or REDCO_CHECK(cond, "format {}", args...): throws BugError with file and line.
#define REDCO_CHECK(cond, ...)                                                                       \
  do {                                                                                               \
    if (!(cond)) [[unlikely]]                                                                        \
      ::redco::check_failed(__FILE__, __LINE__, #cond, ::redco::detail::check_message(__VA_ARGS__)); \
  } while (0)

namespace redco::detail {
inline std::string check_message() { return {}; }
template <class... A>
std::string check_message(fmt::format_string<A...> f, A&&... a) {
  return fmt::format(f, std::forward<A>(a)...);
}
}  // namespace redco::detail
