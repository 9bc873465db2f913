// Signals as bytes in a pipe, for a loop that polls.
#pragma once

#include <array>
#include <csignal>

#include "launch/child_process.h"

namespace redco {

// The signals that the launcher handles; its child processes start with the defaults.
inline constexpr std::array<int, 5> kLauncherSignals{SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGCHLD};

// While this lives, each of kLauncherSignals becomes one byte in the pipe. Signals that were ignored before
// (nohup, a script's `&`) stay ignored. REQUIRES: one at a time.
class SignalPipe {
 public:
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;
  int fd() const { return pipe_.in.fd; }

 private:
  Pipe pipe_;
  std::array<struct sigaction, kLauncherSignals.size()> before_{};
};

}  // namespace redco
