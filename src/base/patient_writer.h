// Writes messages to a descriptor whose reader may stop reading or go away (`2>&1 | head`, a paused `less`).
// Messages never hold up the work: what cannot be written is dropped and counted.
#pragma once

#include <atomic>
#include <string_view>

#include "base/types.h"

namespace redco {

// Any thread may call it. REQUIRES: SIGPIPE is ignored, or the reader stays.
class PatientWriter {
 public:
  // patience: seconds that a call waits for a reader that has stopped. Later calls do not wait until it reads
  // again; then they first write how many bytes are missing.
  explicit PatientWriter(int fd, double patience = 1) : fd_(fd), patience_(patience) {}
  // Texts of at most 4096 bytes are written by one system call, so that lines of several processes do not
  // mix.
  void write(std::string_view text);
  // Whether the reader has gone away: nothing that is written arrives any more.
  bool lost() const { return lost_; }

 private:
  bool ready(double seconds) const;
  void put(std::string_view text);
  int fd_;
  double patience_;
  std::atomic<bool> lost_{false};
  std::atomic<u64> dropped_{0};  // bytes since the reader has stopped
};

}  // namespace redco
