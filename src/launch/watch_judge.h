// Which rank holds up a job. Pure: reports in, verdict out.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/types.h"

namespace redco {

// What the watch server knows about a rank.
struct RankReport {
  enum class State : std::uint8_t {
    absent,   // has not reported yet
    working,  // must make progress
    waiting,  // for other ranks
    idle,     // for a person or for input: may take any time
    ended,    // has said that it ends
    closed    // its connection has ended and it said nothing: its process is gone
  } state = State::absent;
  std::string host;       // "" unknown
  double heard = 0;       // seconds since its last message; closed: since the end of the connection
  double still = 0;       // seconds without progress, as of its last message
  std::string phase;      // "train"
  i64 step = -1;          // -1: none yet
  std::string waits_for;  // the collective, while waiting
  u64 waits = 0;          // how many waits it has begun
};

// A rank has this long to report for the first time, if fault.timeout is less: mpirun and ssh need some time.
constexpr double kStartSeconds = 15;
// After this long a rank whose process is gone ends the job, if nothing else has ended it.
constexpr double kGoneSeconds = 10;

// The message of the error that ends the job, without "error: ". `timeout`: fault.timeout, 0: no deadlines.
// `started`: seconds since the ranks were started. A rank that waits is not named while another is lost,
// stuck or gone.
std::optional<std::string> judge(std::span<const RankReport> ranks, double timeout, double started);

}  // namespace redco
