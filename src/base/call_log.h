// The last calls in which this process communicated with other ranks: what a run did before it was stuck. One
// log per process; lock-free for the thread that communicates, and readable by any thread.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco::call_log {

constexpr int kMost = 256;  // calls that are kept

struct Call {
  const char* what = "";  // a string literal: "all_reduce"
  i64 number = 0;         // in its group of ranks
  i64 ranks = 0;          // of the group
  i64 bytes = 0;          // of the tensor
  double at = 0;          // seconds since the process began to keep the log
  bool ended = false;
};

// A call begins. Returns its number in the log.
u64 add(const char* what, i64 number, i64 ranks, i64 bytes) noexcept;
// It is complete. `call`: what add() has returned.
void end(u64 call) noexcept;
// The last calls, oldest first.
std::vector<Call> last();

// Where save() writes the log ("": nowhere), and a name of this rank for its first line.
void save_to(const std::string& path, const std::string& rank);
// Writes the log as text, replacing the file; an empty log is not written. Errors are ignored: it runs when
// the process ends.
void save() noexcept;

}  // namespace redco::call_log
