// Decides which rank holds up a job. Pure: reports in, verdict out.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/types.h"
#include "launch/outcome.h"

namespace redco {

// The watch server's knowledge about a rank.
struct RankReport {
  enum class State : std::uint8_t {
    absent,   // has not reported yet
    working,  // must make progress
    waiting,  // waits for other ranks
    idle,     // waits for a person or for input: may take any time
    ended,    // has reported its end
    closed    // its connection has closed without such a report: its process is gone
  } state = State::absent;
  std::string host;       // "" if unknown
  double heard = 0;       // seconds since its last message; closed: since the end of the connection
  double still = 0;       // seconds without progress at the time of its last message
  std::string phase;      // "train"
  i64 step = -1;          // -1: none yet
  std::string waits_for;  // the collective, while waiting
  u64 waits = 0;          // how many waits it has begun
};

// The shortest deadline for a rank's first report, even if fault.timeout is lower: mpirun and ssh need time.
constexpr double kStartSeconds = 15;
// Seconds after which a rank whose process is gone ends the job, if nothing else has ended it.
constexpr double kGoneSeconds = 10;

// The outcome that ends the job; nullopt while the job may continue. `timeout`: fault.timeout, 0: no
// deadlines. `started`: seconds since the ranks were started. It is about a waiting rank only if no rank is
// lost, stuck or gone.
std::optional<Outcome> judge(std::span<const RankReport> ranks, double timeout, double started);

}  // namespace redco
