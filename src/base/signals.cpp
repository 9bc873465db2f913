#include "base/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/temporaries.h"
#include "base/terminal.h"

namespace redco {

namespace {

constexpr std::array<int, 4> kEndingSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
// `timeout` and some batch systems signal both a process and its group; this counts as one request.
constexpr auto kSameRequest = std::chrono::milliseconds(500);

// The write end of the pipe to the signal thread. A handler may touch nothing else.
std::atomic<int> pipe_in{-1};
std::atomic<int> first_signal{0};
// A request_end() before catch_signals(); 0: none.
std::atomic<int> early_request{0};

// Guards the data that decides how a request ends. Never destroyed: the thread outlives static objects.
struct State {
  std::mutex mutex;
  bool deferred = false;
  std::string note = "nothing had to be saved";
  std::function<void(const std::string&)> print;
  std::chrono::steady_clock::time_point first_at;
};
State& state() {
  static auto* s = new State;
  return *s;
}

// A signal's number is one byte in the pipe; this bit marks a request that cannot be a second request.
constexpr unsigned char kAsks = 0x80;

void send(unsigned char byte) {
  const int fd = pipe_in.load();
  if (fd >= 0 && ::write(fd, &byte, 1) < 0) {  // a full pipe holds enough requests
  }
}

extern "C" void redco_catch_signal(int number) {
  const int before = errno;
  send(static_cast<unsigned char>(number) | (number == SIGUSR1 ? kAsks : 0));
  errno = before;
}

[[noreturn]] void end_now(int signal) {
  std::string note;
  {
    std::lock_guard lock(state().mutex);
    note = state().note;
  }
  end_process(static_cast<int>(ExitCode::interrupted),
              fmt::format("stopped by {}; {}", signal_text(signal), note));
}

void answer(int signal, bool asks) {
  State& s = state();
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(s.mutex);
    if (first_signal == 0) {
      s.first_at = now;
      first_signal = signal;
      if (s.deferred) return;
    } else {
      if (asks || now - s.first_at < kSameRequest) return;
      if (s.deferred) s.note = "this was the second request: the process ends without saving";
    }
  }
  end_now(signal);
}

[[noreturn]] void listen(int fd) {
  while (true) {
    unsigned char byte = 0;
    const ssize_t n = ::read(fd, &byte, 1);
    if (n == 1) answer(byte & ~kAsks, (byte & kAsks) != 0);
    if (n < 0 && errno != EINTR) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

// The two sides may meet: the request is sent once, by whoever takes it.
void send_early_request() {
  if (pipe_in < 0) return;
  if (const int signal = early_request.exchange(0)) send(static_cast<unsigned char>(signal) | kAsks);
}

void change_mask(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : kEndingSignals) sigaddset(&set, s);
  pthread_sigmask(how, &set, nullptr);
}

}  // namespace

void catch_signals() {
  static std::once_flag once;
  std::call_once(once, [] {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) throw IoError("pipe: {}", std::strerror(errno));
    ::fcntl(fds[1], F_SETFL, O_NONBLOCK);
    pipe_in = fds[1];
    state();
    // The signal thread itself must not receive signals.
    change_mask(SIG_BLOCK);
    std::thread([fd = fds[0]] { listen(fd); }).detach();
    struct sigaction act {};
    act.sa_handler = redco_catch_signal;
    act.sa_flags = SA_RESTART;
    sigemptyset(&act.sa_mask);
    for (const int s : kEndingSignals) {
      struct sigaction before {};
      sigaction(s, nullptr, &before);
      if (before.sa_handler != SIG_IGN) sigaction(s, &act, nullptr);
    }
    change_mask(SIG_UNBLOCK);
    send_early_request();
  });
}

void hold_signals() { change_mask(SIG_BLOCK); }

void request_end(int signal) {
  if (pipe_in >= 0) return send(static_cast<unsigned char>(signal) | kAsks);
  early_request = signal;
  send_early_request();
}

int end_requested() { return first_signal; }

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : fmt::format("signal {}", signal);
}

void defer_end() {
  std::lock_guard lock(state().mutex);
  state().deferred = true;
}

void set_end_note(std::string note) {
  std::lock_guard lock(state().mutex);
  state().note = std::move(note);
}

void set_end_printer(std::function<void(const std::string&)> print) {
  std::lock_guard lock(state().mutex);
  state().print = std::move(print);
}

void end_process(int code, const std::string& message) {
  std::function<void(const std::string&)> print;
  {
    std::lock_guard lock(state().mutex);
    print = state().print;
  }
  if (print) {
    print(message);
  } else {
    write_stderr("redco: " + message + "\n");
  }
  remove_temporaries();
  std::_Exit(code);
}

}  // namespace redco
