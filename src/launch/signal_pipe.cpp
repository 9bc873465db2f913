#include "launch/signal_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace redco {

namespace {

// The write end of the pipe that signals go into; handlers may touch nothing else.
volatile sig_atomic_t signal_fd = -1;

extern "C" void redco_note_signal(int number) {
  const int before = errno;
  const char c = static_cast<char>(number);
  if (signal_fd >= 0 && write(signal_fd, &c, 1) < 0) {  // a full pipe wakes the reader too
  }
  errno = before;
}

}  // namespace

SignalPipe::SignalPipe() {
  fcntl(pipe_.out.fd, F_SETFL, O_NONBLOCK);
  fcntl(pipe_.in.fd, F_SETFL, O_NONBLOCK);
  signal_fd = pipe_.out.fd;
  struct sigaction act {};
  act.sa_handler = redco_note_signal;
  act.sa_flags = SA_RESTART;
  sigemptyset(&act.sa_mask);
  for (std::size_t i = 0; i < kLauncherSignals.size(); i++) {
    sigaction(kLauncherSignals[i], &act, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN && kLauncherSignals[i] != SIGCHLD)
      sigaction(kLauncherSignals[i], &before_[i], nullptr);
  }
}

SignalPipe::~SignalPipe() {
  for (std::size_t i = 0; i < kLauncherSignals.size(); i++)
    sigaction(kLauncherSignals[i], &before_[i], nullptr);
  signal_fd = -1;
}

}  // namespace redco
