#include "pipeline/reward_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "base/words.h"

extern char** environ;

namespace redco {

namespace {

using Clock = std::chrono::steady_clock;

// While it lives, a write to a program that has ended is EPIPE and no signal of this thread.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec now{};
    if (!sigismember(&before_, SIGPIPE))
      while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
};

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

// NaN if the line has another form.
double number_of(const std::string& line) {
  auto j = nlohmann::json::parse(line, nullptr, false);
  if (j.is_object() && j.contains("reward")) j = nlohmann::json(j["reward"]);
  return j.is_number() ? j.get<double>() : NAN;
}

}  // namespace

RewardCommand::RewardCommand(std::string command, double timeout)
    : command_(std::move(command)), timeout_(timeout) {}

RewardCommand::~RewardCommand() { stop(); }

void RewardCommand::fail(const std::string& why) {
  stop();
  throw UsageError("[grpo] grpo.reward_command='{}' {}", excerpt(command_), why);
}

void RewardCommand::start() {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0) fail(fmt::format("can't start: {}", std::strerror(errno)));
  if (pipe2(from, O_CLOEXEC) != 0) {
    close(to[0]);
    close(to[1]);
    fail(fmt::format("can't start: {}", std::strerror(errno)));
  }
  in_ = to[1];
  out_ = from[0];
  fcntl(in_, F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, to[0], 0);
  posix_spawn_file_actions_adddup2(&files, from[1], 1);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setsigdefault(&how, &all);
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string shell = "/bin/sh", option = "-c", text = command_;
  char* const words[] = {shell.data(), option.data(), text.data(), nullptr};
  const int error = posix_spawn(&pid_, "/bin/sh", &files, &how, words, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  close(to[0]);
  close(from[1]);
  if (error != 0) {
    pid_ = -1;
    fail(fmt::format("can't start: {}", std::strerror(error)));
  }
}

void RewardCommand::stop() noexcept {
  close_fd(in_);
  close_fd(out_);
  unread_.clear();
  if (pid_ <= 0) return;
  const auto ended = [&] { return waitpid(pid_, nullptr, WNOHANG) != 0; };
  for (int k = 0; k < 100 && !ended(); ++k) {  // 1 s
    if (k == 99) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  pid_ = -1;
}

std::vector<double> RewardCommand::score(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  if (pid_ < 0) start();
  const NoPipeSignal guard;
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_);
  std::vector<double> out;
  for (std::size_t sent = 0; out.size() < lines.size();) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    if (left <= 0)
      fail(
          fmt::format("has written {} of {} rewards within grpo.reward_timeout={} s. Flush the output after "
                      "each line, or raise the time-out",
                      out.size(), lines.size(), timeout_));
    if (end_requested() != 0) {
      stop();
      throw Error(ExitCode::interrupted, "[train] a signal stopped the run while grpo.reward_command worked");
    }
    std::array<pollfd, 2> fds = {pollfd{out_, POLLIN, 0}, pollfd{sent < text.size() ? in_ : -1, POLLOUT, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(std::min(left * 1000 + 1, 200.0)));
    if (fds[1].revents != 0) {
      const ssize_t n = write(in_, text.data() + sent, text.size() - sent);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if (n < 0 && errno == EPIPE) sent = text.size();  // what it has written tells more
    }
    if (fds[0].revents == 0) continue;
    std::array<char, 16384> buffer;
    const ssize_t n = read(out_, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0)
      fail(fmt::format("ended after {} of {} rewards. It must read lines until its input ends", out.size(),
                       lines.size()));
    unread_.append(buffer.data(), static_cast<std::size_t>(n));
    for (std::size_t at; (at = unread_.find('\n')) != std::string::npos;) {
      const std::string line = unread_.substr(0, at);
      unread_.erase(0, at + 1);
      if (out.size() == lines.size())
        fail(fmt::format("wrote more than one line for each of {} answers; the first too many: '{}'",
                         lines.size(), excerpt(line)));
      const double value = number_of(line);
      if (!std::isfinite(value))
        fail(fmt::format("wrote '{}' for answer {} of {}; expected a number, or {{\"reward\": number}}",
                         excerpt(line), out.size() + 1, lines.size()));
      out.push_back(value);
    }
  }
  return out;
}

}  // namespace redco
