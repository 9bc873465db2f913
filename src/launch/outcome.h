// What a start of the ranks came to, as a value: from the watchdog's verdict, mpirun's text and its wait
// status. Messages are made from it; nothing reads a message back. The supervisor decides from it whether
// another start can help (launch/supervisor.h).
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "launch/start_failure.h"

namespace redco {

struct Outcome {
  enum class Kind : std::uint8_t {
    done,         // all steps are done
    stopped,      // a signal ended the job
    error,        // the ranks ended with one of redco's codes and have printed the reason
    lost_rank,    // one rank ended with an error of its connection or its watchdog, and has printed it
    killed,       // a signal ended a rank
    exited,       // a rank ended with a code that is not redco's, without a message
    memory,       // the kernel killed a rank for lack of memory
    silent,       // no message from ranks within the time limit
    absent,       // no report of ranks after the start
    stuck,        // ranks without progress
    gone,         // the process of a rank is gone
    deadlock,     // all ranks wait for each other
    lost_host,    // the connection to a host broke
    no_start,     // the ranks could not be started
    lost_mpirun,  // mpirun was killed, or ended before its ranks
  } kind = Kind::done;

  // A rank that the outcome is about, and what it did.
  struct Place {
    int rank = -1;          // -1: unknown
    std::string host;       // "": unknown
    std::string phase;      // "train"; "": unknown
    i64 step = -1;          // -1: none yet
    std::string operation;  // the collective in which it waits; "": none
    u64 waits = 0;          // how many waits it has begun
  };
  std::vector<Place> places;
  std::vector<std::string> hosts;  // hosts that are lost or could not be reached
  int signal = 0;                  // killed, lost_mpirun, stopped; 0: none
  double seconds = 0;              // the time limit that was exceeded
  int number = 0;                  // exited: the rank's own code; lost_mpirun: its own error, or 0
  StartFailure start;              // no_start
  int code = 0;                    // the exit code of the command

  i64 step = -1;         // the last step that a rank reported; -1: none
  bool ran = false;      // all ranks have reported: the start itself worked
  bool printed = false;  // a rank has printed the reason
};

// "silent", "lost host", for logs and reports.
std::string name_of(Outcome::Kind kind);

// One line for the user, without "error: " or "redco: "; "" if there is nothing to say, or a rank has said
// it.
std::string outcome_message(const Outcome& outcome);

// The exit code that follows from the kind; REQUIRES: not `error`, whose code is the ranks' own.
int code_of(Outcome::Kind kind);

}  // namespace redco
