#include "launch/watch/watchdog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/activity.h"
#include "base/call_log.h"
#include "base/error.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/timing.h"
#include "base/unread_messages.h"
#include "launch/rank_errors.h"
#include "launch/watch/end_daemon.h"
#include "launch/watch/judge.h"
#include "launch/watch/server.h"
#include "launch/watch/wire.h"

namespace redco::watchdog {

namespace {

constexpr double kUnlimitedConnect = 60;  // s to reach the server where fault.timeout sets no limit
constexpr double kRecordSeconds = 3;      // for a record of the end
constexpr double kPlaceSeconds = 0.3;     // to find the line of a user's code
constexpr double kSaveSeconds = 1;        // less than the time until SIGKILL (2 s)
constexpr double kServerGone = 3;         // s for mpirun to end the other ranks after the first rank died
constexpr double kDaemonSeconds = 2;      // for mpirun's daemon to end on a host without a network

int rank_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"})
    if (const char* v = std::getenv(name); v && *v) return std::atoi(v);
  return 0;
}

std::string word(const char* text) {
  std::string w = *text ? text : "-";
  std::replace(w.begin(), w.end(), ' ', '_');
  return w;
}

// Writes directly to stderr: the main thread may hang while it holds the log's lock.
void say(const std::string& why, int rank) {
  std::string text = "error: " + why;
  text = std::getenv(kMarkErrors) ? marked(text, rank) : text + "\n";
  write_stderr(text);
}

// The watchdog's thread and its shared state.
class Client {
 public:
  ~Client() { stop(); }

  using Record = std::function<void(const std::string&)>;

  void configure(std::optional<WatchAddress> address, int rank, double timeout, Record record = {}) {
    stop();
    record_ = std::move(record);
    address_ = std::move(address);
    rank_ = rank;
    timeout_ = timeout;
    ticks_ = 0;
    changed_ = 0;
    if (!address_ && timeout <= 0) return;
    if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) throw IoError("pipe: {}", std::strerror(errno));
    code_.reset();
    sigset_t every, before;  // the main thread handles all signals
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  bool connected() const { return address_.has_value() && thread_.joinable(); }
  // Ends the thread; with a code, sends it as the rank's last message first.
  void stop(std::optional<int> code = {}) {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      code_ = code;
      stopping_ = true;
    }
    if (write(wake_[1], "", 1) < 0) {  // a full pipe wakes too
    }
    thread_.join();
    close(wake_[0]);
    close(wake_[1]);
    stopping_ = false;
  }

 private:
  double interval() const { return timeout_ > 0 ? std::clamp(timeout_ / 10, 0.1, 1.0) : 1; }
  bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  [[noreturn]] void die(const std::string& why, bool network_down = false) const {
    say(why, rank_);
    give_time(
        [record = record_, why] {
          call_log::save();
          if (record) record(why);
        },
        kRecordSeconds);
    if (network_down) end_daemon(kDaemonSeconds);
    _exit(static_cast<int>(ExitCode::rank_failed));
  }
  // By order of the server, which has told why.
  [[noreturn]] static void end() {
    give_time(call_log::save, kSaveSeconds);
    _exit(static_cast<int>(ExitCode::rank_failed));
  }
  // The disk may be what hangs, so nothing waits for long.
  static void give_time(const std::function<void()>& f, double seconds) {
    try {
      auto task = std::make_shared<std::packaged_task<void()>>(f);
      const std::future<void> done = task->get_future();
      std::thread([task] { (*task)(); }).detach();
      done.wait_for(std::chrono::duration<double>(seconds));
    } catch (const std::system_error&) {  // no thread: the end has no record
    }
  }
  std::string who() const { return fmt::format("rank {} on {}", rank_, host_name()); }

  // Seconds without progress.
  double still(const activity::Snapshot& s, double now) {
    if (s.ticks != ticks_ || s.state == activity::State::idle) {
      ticks_ = s.ticks;
      changed_ = now;
    }
    return now - changed_;
  }

  // Sleeps; true when there is something to read from fd.
  bool pause(int fd, double seconds) {
    std::array<pollfd, 2> fds{pollfd{wake_[0], POLLIN, 0}, pollfd{fd, POLLIN, 0}};
    poll(fds.data(), fds.size(), static_cast<int>(seconds * 1000));
    return fds[1].revents != 0;
  }

  void run() {
    if (!address_) return watch_itself();
    const int fd = find_server();
    if (fd >= 0) report(fd);
    if (fd >= 0) close(fd);
  }

  // " in mine.py:33, loss" of a user's code that makes no progress; "" if it isn't known in time.
  static std::string place() {
    const auto found = std::make_shared<std::pair<std::mutex, std::string>>();
    give_time(
        [found] {
          std::string p = activity::place();
          const std::lock_guard lock(found->first);
          found->second = std::move(p);
        },
        kPlaceSeconds);
    const std::lock_guard lock(found->first);
    return found->second.empty() ? "" : " in " + found->second;
  }

  void watch_itself() {
    AwakeClock clock(2 * interval() + 1);
    while (!stopping()) {
      const activity::Snapshot s = activity::now();
      if (still(s, clock.now()) > timeout_)
        die(fmt::format(
            "[fault] {} made no progress for {:g} s (phase: {}{}{}{}): the process hangs, or waits for a disk, "
            "a network or another rank. The job resumes from its last checkpoint; raise fault.timeout if "
            "this work needs more time",
            who(), timeout_, s.phase, place(), s.step >= 0 ? fmt::format(", step {}", s.step) : "",
            s.state == activity::State::waiting ? fmt::format(", waits in {}", s.waits_for) : ""));
      pause(-1, interval());
    }
  }

  // A connection attempt to one of the server's endpoints.
  struct Attempt {
    std::string endpoint;
    int fd = -1;  // -1: none now
    bool greeted = false;
    double next = 0;  // when it is tried again
    LineReceiver in;
  };

  // Connects to all endpoints in parallel until the server answers on one; returns its socket, or -1 if the
  // process ends first. A connection that exists is kept: a launcher that is stopped, or gets a thousand
  // ranks together, answers late.
  int find_server() {
    constexpr double kAgain = 0.2;  // s
    const double limit = timeout_ > 0 ? std::max(timeout_, kStartSeconds) : kUnlimitedConnect;
    const double began = seconds();
    std::vector<Attempt> attempts(address_->endpoints.size());
    for (std::size_t i = 0; i < attempts.size(); ++i) attempts[i].endpoint = address_->endpoints[i];
    int found = -1;
    while (found < 0 && !stopping()) {
      const double now = seconds();
      if (now - began > limit)
        die(
            fmt::format("[fault] {} cannot connect to {} at {} within {:g} s. Check the firewall and the "
                        "route between the hosts",
                        who(), address_->in_rank ? "the first rank" : "the launcher",
                        fmt::join(address_->endpoints, ", "), limit));
      std::vector<pollfd> polls{{wake_[0], POLLIN, 0}};
      for (Attempt& a : attempts) {
        if (a.fd < 0 && now >= a.next) a = {a.endpoint, connect_to(a.endpoint), false, now + kAgain, {}};
        polls.push_back({a.fd, static_cast<short>(a.greeted ? POLLIN : POLLOUT), 0});
      }
      poll(polls.data(), polls.size(), 100);
      for (std::size_t i = 0; i < attempts.size() && found < 0; ++i)
        if (polls[i + 1].revents && is_welcome(attempts[i])) found = std::exchange(attempts[i].fd, -1);
    }
    for (const Attempt& a : attempts)
      if (a.fd >= 0) close(a.fd);
    return found;
  }

  // Goes on with an attempt whose socket is ready: true if its peer has proved to be the server. A failed one
  // is closed.
  bool is_welcome(Attempt& a) {
    bool failed = false;
    std::vector<std::string> lines;
    if (!a.greeted) {
      failed = !send_line(a.fd, fmt::format("redco-watch {} {} {} {}", address_->client_key, rank_, getpid(),
                                            word(host_name().c_str())));
      a.greeted = true;
    } else {
      failed = a.in.receive(a.fd, lines) != LineReceiver::Got::nothing;
    }
    if (!lines.empty() && lines[0] == "welcome " + address_->server_key) {
      early_.assign(lines.begin() + 1, lines.end());
      return true;
    }
    if (failed || !lines.empty()) {
      close(a.fd);
      a.fd = -1;
    }
    return false;
  }

  void report(int fd) {
    limit_silence(fd, timeout_);
    AwakeClock clock(2 * interval() + 1);
    LineReceiver in;
    bool answered = true;
    double sent = -interval(), answer = 0;
    std::vector<std::string> lines = std::move(early_);
    while (!stopping()) {
      const double now = clock.now();
      for (const std::string& line : lines) {
        if (line == "end") end();
        if (line == "free") return;
        if (line.starts_with("stop ")) request_end(std::atoi(line.c_str() + 5));
        // The main thread may hang while it holds the log's lock.
        if (line == "unread") give_time(note_unread_messages, 0);
        answered = answered || line == "alive";
        answer = now;
      }
      lines.clear();
      const activity::Snapshot s = activity::now();
      const double quiet = still(s, now);
      if (answered && now - sent >= interval()) {
        const char* const state = s.state == activity::State::waiting ? "waiting"
                                  : s.state == activity::State::idle  ? "idle"
                                                                      : "working";
        const bool slow = s.state == activity::State::working && quiet > 2 * interval();
        send_line(fd, fmt::format("beat {} {} {} {} {} {}{}", state, static_cast<i64>(quiet * 1000), s.step,
                                  s.waits, word(s.waits_for), word(s.phase), slow ? place() : ""));
        answered = false;
        sent = now;
      }
      if (address_->in_rank && timeout_ > 0 && !answered && now - answer > timeout_)
        die(fmt::format(
            "[fault] {} got no message from the first rank for {:g} s: its process is stopped, or its host "
            "or network is down",
            who(), timeout_));
      if (!pause(fd, std::max(0.01, answered ? sent + interval() - now : interval()))) continue;
      const auto got = in.receive(fd, lines);
      if (got == LineReceiver::Got::nothing) continue;
      if (std::find(lines.begin(), lines.end(), "end") != lines.end()) end();
      if (std::find(lines.begin(), lines.end(), "free") != lines.end()) return;
      if (address_->in_rank) pause(-1, kServerGone);
      if (stopping()) return;
      const char* const server = address_->in_rank ? "the first rank" : "the launcher";
      if (got == LineReceiver::Got::closed) die(fmt::format("[fault] {}: {} is gone", who(), server));
      die(fmt::format("[fault] {}: the network connection to {} has been down for {:g} s", who(), server,
                      timeout_),
          true);
    }
    const std::lock_guard lock(mutex_);
    if (code_) send_line(fd, fmt::format("bye {}", *code_));
  }

  std::optional<WatchAddress> address_;
  Record record_;
  int rank_ = 0;
  double timeout_ = 0;
  int wake_[2] = {-1, -1};
  std::vector<std::string> early_;  // lines that arrived together with the welcome
  u64 ticks_ = 0;
  double changed_ = 0;

  std::mutex mutex_;  // guards stopping_ and code_
  bool stopping_ = false;
  std::optional<int> code_;

  std::thread thread_;
};

// One of each per process. Never destroyed: the thread may outlive static objects.
Client& client() {
  static auto* const one = new Client;
  return *one;
}
std::unique_ptr<WatchServer>& server() {
  static auto* const one = new std::unique_ptr<WatchServer>;
  return *one;
}

void connect(const std::string& text, int rank) {
  const auto address = parse_watch_address(text);
  if (!address)
    throw UsageError("[fault] {} does not hold the address of a watchdog; unset it", kWatchVariable);
  client().configure(address, rank, address->timeout);
}

}  // namespace

void start() {
  const char* const text = std::getenv(kWatchVariable);
  if (!text || !*text) return;
  const std::string address = text;
  unsetenv(kWatchVariable);
  // The launch agent that mpirun starts (redco agent) inherits the variable. As rank 0 it would take the
  // place of the real one.
  if (std::getenv("OMPI_COMM_WORLD_RANK")) connect(address, rank_of_environment());
}

bool is_watched() { return client().connected(); }

void watch_alone(double timeout, std::function<void(const std::string& message)> record) {
  client().configure({}, rank_of_environment(), timeout, std::move(record));
}

std::string serve(int n_ranks, double timeout) {
  // This process gets the order too: its own client ends it.
  const auto act = [](WatchServer& s, const Outcome& verdict) {
    say(outcome_message(verdict), 0);
    s.end_all();
  };
  server() = std::make_unique<WatchServer>(WatchOptions{
      .n_ranks = n_ranks, .timeout = timeout, .loopback = false, .in_rank = true, .hosts = {}, .act = act});
  return text_of(server()->address());
}

void join(const std::string& address, int rank) { connect(address, rank); }

void finish(int code) {
  static std::mutex once;  // the main thread and the signal thread may both end the process
  const std::lock_guard lock(once);
  if (server()) server()->free_all();
  client().stop(code);
  server().reset();
}

}  // namespace redco::watchdog
