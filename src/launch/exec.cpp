#include "launch/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/patient_writer.h"
#include "base/process.h"
#include "base/signals.h"
#include "launch/capture.h"
#include "launch/child_process.h"
#include "launch/job_end.h"
#include "launch/mpirun_output.h"
#include "launch/rank_errors.h"
#include "launch/resource_limits.h"
#include "launch/session_folder.h"
#include "launch/signal_pipe.h"
#include "launch/watch/server.h"
#include "launch/watch/wire.h"

namespace redco {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kHoldMs = 200;         // an unfinished frame is printed unchanged after this time
constexpr int kLookMs = 100;         // how often the watch server is asked
constexpr double kAskedSeconds = 2;  // ranks without anything to save get this long to end
constexpr double kRestartLook = 1;   // s between two questions to ends_for_restart
constexpr int kDrainMs = 1000;       // how long mpirun's pipe is read after mpirun's end

double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// Copies this process's standard input to a child, at the speed at which the child reads.
class InputRelay {
 public:
  explicit InputRelay(bool wanted) : wanted_(wanted) {
    if (!wanted) return;
    fcntl(pipe_.out.fd, F_SETFL, O_NONBLOCK);
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;  // writing to a child that has ended is an EPIPE
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~InputRelay() {
    if (wanted_) sigaction(SIGPIPE, &before_, nullptr);
  }
  InputRelay(const InputRelay&) = delete;
  InputRelay& operator=(const InputRelay&) = delete;

  // The child's standard input; -1: empty.
  int child_fd() const { return wanted_ ? pipe_.in.fd : -1; }
  void started() { pipe_.in.reset(); }
  // The descriptor to poll.
  pollfd poll_request() const {
    if (!wanted_ || pipe_.out.fd < 0) return {-1, 0, 0};
    return held_.empty() ? pollfd{0, POLLIN, 0} : pollfd{pipe_.out.fd, POLLOUT, 0};
  }
  void copy() {
    bool ended = false;
    if (held_.empty()) held_ = read_some(0, ended);
    if (!held_.empty()) {
      const ssize_t n = write(pipe_.out.fd, held_.data(), held_.size());
      if (n > 0) held_.erase(0, static_cast<std::size_t>(n));
      if (n < 0 && errno != EINTR && errno != EAGAIN) ended = true;
    }
    if (ended) pipe_.out.reset();
  }

 private:
  bool wanted_;
  Pipe pipe_;
  std::string held_;
  struct sigaction before_ {};
};

// The file with Open MPI's own text, written only if there is text that redco does not know. The name is
// random, so that nobody can prepare a link in a shared temporary folder.
class OwnText {
 public:
  OwnText() {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    path_ = ((error ? std::filesystem::path("/tmp") : folder) /
             fmt::format("redco-open-mpi-{}.txt", random_key().substr(0, 12)))
                .string();
  }
  const std::string& path() const { return path_; }
  void write(const std::string& text) {
    if (text.size() == written_) return;
    const Fd file(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd >= 0) write_all(file.fd, text);
    written_ = text.size();
  }

 private:
  std::string path_;
  std::size_t written_ = 0;
};

// Whether all ranks run on this host, so that nobody else needs to reach the watch server.
bool all_here(const std::vector<Host>& hosts) {
  const std::string here = host_name();
  return std::all_of(hosts.begin(), hosts.end(),
                     [&](const Host& h) { return h.name == "localhost" || same_host(h.name, here); });
}

std::unique_ptr<WatchServer> watch_ranks(const Mpirun& mpirun, double timeout) {
  WatchOptions o{.n_ranks = static_cast<int>(mpirun.options.n_ranks),
                 .timeout = timeout,
                 .loopback = all_here(mpirun.options.hosts)};
  for (const Host& h : mpirun.options.hosts)
    o.hosts.insert(o.hosts.end(), static_cast<std::size_t>(h.slots), h.name);
  return std::make_unique<WatchServer>(o);
}

// Ends all ranks and mpirun by force. mpirun may ignore SIGTERM, be stopped, or wait for a host that is cut
// off.
class ForcedEnd {
 public:
  ForcedEnd(WatchServer& server, pid_t mpirun) : server_(server), mpirun_(mpirun) {}
  bool begun() const { return begun_; }
  void begin() {
    if (begun_) return;
    begun_ = true;
    began_ = Clock::now();
    server_.end_all();
    kill(mpirun_, SIGTERM);
  }
  void kill_now() {
    kill(-mpirun_, SIGKILL);
    kill_marked(server_.address().client_key);
    killed_ = true;
  }
  // Call it repeatedly: sends SIGKILL once mpirun has had its time.
  void check() {
    if (begun_ && !killed_ && since(began_) > kGentleSeconds) kill_now();
  }

 private:
  static constexpr double kGentleSeconds = 2;
  WatchServer& server_;
  pid_t mpirun_;
  bool begun_ = false, killed_ = false;
  Clock::time_point began_;
};

// What the ranks have reported when mpirun has ended. It ends with status 1 after a rank that ends with code
// 1, whose report may still be on its way.
RankEnds reported(WatchServer& server, int status) {
  constexpr double kReportSeconds = 1;
  const bool one = WIFEXITED(status) && WEXITSTATUS(status) == 1;
  for (const auto began = Clock::now(); one && !server.ended_with(1) && since(began) < kReportSeconds;)
    usleep(5000);
  return {server.all_started(), server.ended_with(1), server.ended_with(5)};
}

// Ends the ranks that mpirun left behind.
void end_ranks(WatchServer& server) {
  constexpr double kWaitSeconds = 2;
  server.end_all();
  for (const auto began = Clock::now(); server.connected() > 0 && since(began) < kWaitSeconds;) usleep(20000);
  kill_marked(server.address().client_key);
}

// Adds what the ranks have reported: where each was, and the last step.
void add_reports(const WatchServer& server, Outcome& o) {
  const std::vector<RankReport> reports = server.reports();
  for (const RankReport& r : reports) o.step = std::max(o.step, r.step);
  for (Outcome::Place& p : o.places) {
    if (p.rank < 0 || p.rank >= static_cast<int>(reports.size())) continue;
    const RankReport& r = reports[static_cast<std::size_t>(p.rank)];
    if (p.host.empty()) p.host = r.host;
    if (p.phase.empty()) p.phase = r.phase;
    if (p.step < 0) p.step = r.step;
  }
}

// A text that child processes read as a file; no file for an empty text.
class InheritedFile {
 public:
  explicit InheritedFile(const std::string& text) {
    if (text.empty()) return;
    file_.fd = memfd_create("redco-hosts", 0);  // without close-on-exec
    if (file_.fd < 0) throw IoError("memfd_create: {}", std::strerror(errno));
    write_all(file_.fd, text);
  }
  std::string path() const { return file_.fd < 0 ? "" : fmt::format("/proc/self/fd/{}", file_.fd); }

 private:
  Fd file_;
};

}  // namespace

Outcome exec_under_mpirun(const Mpirun& mpirun, const ExecOptions& options) {
  const auto server = watch_ranks(mpirun, options.fault_timeout);
  Mpirun watched = mpirun;
  watched.own_environment[kWatchVariable] = text_of(server->address());
  watched.passed.insert(kWatchVariable);
  const SessionFolder sessions(!all_here(mpirun.options.hosts));
  if (!std::getenv(kSessionVariable)) watched.own_environment[kSessionVariable] = sessions.path();
  const i64 oom_kills = cgroup_oom_kills(options.root);
  SignalPipe signals;
  Pipe errors;
  InputRelay input(mpirun.options.input);
  const InheritedFile hosts(mpirun.hostfile_text());
  const pid_t pid =
      start_process(watched.argv(hosts.path()), environment_of(watched), input.child_fd(), -1, errors.out.fd);
  errors.out.reset();
  input.started();
  fcntl(errors.in.fd, F_SETFL, O_NONBLOCK);

  OwnText own_text;
  MpirunOutput output(own_text.path());
  OneVoice voice;
  PatientWriter messages(options.stderr_fd);
  ForcedEnd ending(*server, pid);
  std::optional<Outcome> verdict;
  RankEnds ranks;
  int asked = 0;  // signals that requested an end
  bool ended_by_us = false, closed = false, gone = false;
  int status = 0;
  int last_signal = 0;
  bool restarts = false;
  Clock::time_point end, last_asked, last_look = Clock::now();
  while (!(gone && (closed || since(end) * 1000 > kDrainMs))) {
    std::array<pollfd, 3> fds{pollfd{signals.fd(), POLLIN, 0}, pollfd{closed ? -1 : errors.in.fd, POLLIN, 0},
                              gone ? pollfd{-1, 0, 0} : input.poll_request()};
    const int ready = poll(fds.data(), fds.size(), gone ? 50 : output.holding() ? kHoldMs : kLookMs);
    if (ready == 0 && output.holding()) messages.write(voice.feed(output.flush()));
    bool nothing = false;
    for (char number : fds[0].revents ? read_some(signals.fd(), nothing) : std::string()) {
      if (number == SIGCHLD || gone) continue;
      if (number == SIGINT && options.passes_interrupts) {
        kill(pid, SIGUSR1);
        continue;
      }
      if (number == SIGUSR1) {
        server->ask_to_end(number);
        continue;
      }
      // `timeout`, and some batch systems, signal the process and its group: that is one request.
      if (asked > 0 && since(last_asked) < 0.5) continue;
      last_asked = Clock::now();
      last_signal = number;
      asked++;
      if (asked == 1) {
        if (options.save_on_signal)
          messages.write(fmt::format("redco: {}: saving, then ending; a second signal ends without saving\n",
                                     signal_text(number)));
        server->ask_to_end(number);
        continue;
      }
      ended_by_us = ended_by_us || !ending.begun();
      if (ending.begun()) ending.kill_now();
      ending.begin();
    }
    if (fds[1].revents) {
      const std::string text = output.feed(read_some(errors.in.fd, closed));
      if (output.has_unknown_text()) own_text.write(output.own_text());
      messages.write(voice.feed(text));
    }
    if (fds[2].revents) input.copy();
    if (messages.lost()) server->note_unread_messages();
    if (!gone && !ending.begun() && (verdict = server->verdict())) {
      if (!voice.heard()) messages.write("error: " + outcome_message(*verdict) + "\n");
      ending.begin();
    }
    if (options.ends_for_restart && !restarts && !gone && asked == 0 && since(last_look) > kRestartLook) {
      last_look = Clock::now();
      restarts = options.ends_for_restart();
      if (restarts) server->ask_to_end(SIGUSR1);
    }
    if (!gone && waitpid(pid, &status, WNOHANG) == pid) {
      gone = true;
      end = Clock::now();
      ranks = reported(*server, status);
      if (status != 0) end_ranks(*server);
    }
    // Ranks that have nothing to end immediately.
    if (!gone && asked > 0 && !options.save_on_signal && !ending.begun() &&
        since(last_asked) > kAskedSeconds) {
      ended_by_us = true;
      ending.begin();
    }
    if (!gone) ending.check();
  }
  messages.write(voice.feed(output.flush()) + voice.flush());
  Outcome outcome = verdict ? *verdict : job_outcome(status, output, ranks);
  outcome.ran = server->all_started();
  if (!verdict && ended_by_us && status != 0) {
    outcome = {};
    outcome.kind = Outcome::Kind::stopped;
  } else if (!verdict && ran_out_of_memory(outcome, oom_kills, options.root)) {
    outcome.kind = Outcome::Kind::memory;
  }
  if (outcome.kind != Outcome::Kind::error) outcome.code = code_of(outcome.kind);
  outcome.printed = voice.heard();
  if (outcome.kind == Outcome::Kind::stopped) {
    outcome.signal = last_signal;
    if (!voice.heard()) messages.write(voice.end_text());
  }
  add_reports(*server, outcome);
  const std::string message = outcome_message(outcome);
  const bool memory = outcome.kind == Outcome::Kind::memory;
  if (!verdict && !message.empty() && (memory || !voice.heard()))
    messages.write((memory ? "error: " : "redco: ") + message + "\n");
  return outcome;
}

}  // namespace redco
