#include "launch/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/process.h"
#include "base/signals.h"
#include "launch/mpirun_output.h"
#include "launch/one_voice.h"
#include "launch/topology.h"
#include "launch/watch_server.h"

namespace redco {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kHoldMs = 200;         // a banner that isn't finished after this is printed as it is
constexpr int kLookMs = 100;         // how often the watch server is asked
constexpr double kAskedSeconds = 2;  // for ranks without anything to save
constexpr int kDrainMs = 1000;       // after mpirun's end, for what is left in its pipe

double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// A descriptor that closes itself.
struct Fd {
  int fd = -1;
  Fd() = default;
  explicit Fd(int f) : fd(f) {}
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  void reset() {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

struct Pipe {
  Fd in, out;  // read end, write end
  Pipe() {
    int p[2];
    if (pipe2(p, O_CLOEXEC)) throw IoError("pipe: {}", std::strerror(errno));
    in.fd = p[0];
    out.fd = p[1];
  }
};

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd p{fd, POLLOUT, 0};
      poll(&p, 1, 1000);
      continue;
    }
    if (n <= 0) return;  // nobody reads messages any more
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Reads what is there; "" at the end (ended = true) or when nothing is there now.
std::string read_some(int fd, bool& ended) {
  std::array<char, 16384> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) return {buffer.data(), static_cast<std::size_t>(n)};
  ended = n == 0 || (errno != EINTR && errno != EAGAIN);
  return {};
}

// The write end of the pipe that signals go into; handlers may touch nothing else.
volatile sig_atomic_t signal_fd = -1;

extern "C" void redco_note_signal(int number) {
  const int before = errno;
  const char c = static_cast<char>(number);
  if (signal_fd >= 0 && write(signal_fd, &c, 1) < 0) {  // a full pipe holds enough of them
  }
  errno = before;
}

// Signals arrive as bytes in a pipe while this lives.
class SignalPipe {
 public:
  SignalPipe() {
    fcntl(pipe_.out.fd, F_SETFL, O_NONBLOCK);
    fcntl(pipe_.in.fd, F_SETFL, O_NONBLOCK);
    signal_fd = pipe_.out.fd;
    struct sigaction act {};
    act.sa_handler = redco_note_signal;
    act.sa_flags = SA_RESTART;
    sigemptyset(&act.sa_mask);
    for (std::size_t i = 0; i < kSignals.size(); i++) {
      sigaction(kSignals[i], &act, &before_[i]);
      if (before_[i].sa_handler == SIG_IGN && kSignals[i] != SIGCHLD)  // nohup, or a script's `&`
        sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  ~SignalPipe() {
    for (std::size_t i = 0; i < kSignals.size(); i++) sigaction(kSignals[i], &before_[i], nullptr);
    signal_fd = -1;
  }
  int fd() const { return pipe_.in.fd; }
  static constexpr std::array<int, 5> kSignals{SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGCHLD};

 private:
  Pipe pipe_;
  std::array<struct sigaction, 5> before_{};
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> p;
  for (const auto& s : strings) p.push_back(const_cast<char*>(s.c_str()));
  p.push_back(nullptr);
  return p;
}

// This process's standard input, handed on to a child as it can take it.
class InputRelay {
 public:
  explicit InputRelay(bool wanted) : wanted_(wanted) {
    if (!wanted) return;
    fcntl(pipe_.out.fd, F_SETFL, O_NONBLOCK);
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;  // a child that has ended reads no more
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~InputRelay() {
    if (wanted_) sigaction(SIGPIPE, &before_, nullptr);
  }
  InputRelay(const InputRelay&) = delete;
  InputRelay& operator=(const InputRelay&) = delete;

  // What the child reads from; -1: nothing.
  int child_fd() const { return wanted_ ? pipe_.in.fd : -1; }
  void started() { pipe_.in.reset(); }
  // What to wait for.
  pollfd wish() const {
    if (!wanted_ || pipe_.out.fd < 0) return {-1, 0, 0};
    return held_.empty() ? pollfd{0, POLLIN, 0} : pollfd{pipe_.out.fd, POLLOUT, 0};
  }
  void go_on() {
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

// The environment that mpirun starts with.
Environment environment_of(const Mpirun& mpirun) {
  Environment all = current_environment();
  for (const std::string& name : mpirun.dropped) all.erase(name);
  for (const auto& [name, value] : mpirun.own_environment) all[name] = value;
  return all;
}

// Starts argv. stdin_fd (-1: empty), stdout_fd (-1: ours) and stderr_fd are its input and outputs. Its own
// process group; it gets SIGTERM if this process dies.
pid_t start(const std::vector<std::string>& argv, const Environment& all, int stdin_fd, int stdout_fd,
            int stderr_fd) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  const auto args = pointers(argv), env = pointers(lines);
  Pipe failed;  // closed by exec, or says why there was none
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) throw IoError("starting {}: fork: {}", argv[0], std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    for (int s : SignalPipe::kSignals) signal(s, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int input = stdin_fd >= 0 ? stdin_fd : open("/dev/null", O_RDONLY);
    if (input >= 0) dup2(input, 0);
    if (stdout_fd >= 0) dup2(stdout_fd, 1);
    dup2(stderr_fd, 2);
    execvpe(args[0], args.data(), env.data());
    const int why = errno;
    if (write(failed.out.fd, &why, sizeof why) < 0) _exit(126);
    _exit(127);
  }
  failed.out.reset();
  int why = 0;
  ssize_t n;
  while ((n = read(failed.in.fd, &why, sizeof why)) < 0 && errno == EINTR) {
  }
  if (n == static_cast<ssize_t>(sizeof why)) {
    waitpid(pid, nullptr, 0);
    if (why == ENOENT)
      throw UsageError(
          "{} isn't in PATH; several ranks need Open MPI (Debian: apt install openmpi-bin; clusters: module "
          "load openmpi)",
          argv[0]);
    throw UsageError("{} can't be started: {}", argv[0], std::strerror(why));
  }
  return pid;
}

// SIGKILL to each process of this user that was started with `key` in its environment: mpirun, ssh, orted,
// and ranks on this host, also those that are stopped.
void kill_marked(const std::string& key) {
  std::error_code gone;
  for (const auto& p : std::filesystem::directory_iterator("/proc", gone)) {
    const pid_t pid = std::atoi(p.path().filename().c_str());
    if (pid <= 1 || pid == getpid()) continue;
    std::ifstream in(p.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(in), {}};
    if (environment.find(key) != std::string::npos) kill(pid, SIGKILL);
  }
}

// Whether all ranks run on this host, so that nobody else needs to reach the watch server.
bool all_here(const std::vector<Host>& hosts) {
  const std::string here = host_name(), brief = here.substr(0, here.find('.'));
  return std::all_of(hosts.begin(), hosts.end(), [&](const Host& h) {
    return h.name == "localhost" || h.name == here || h.name == brief;
  });
}

std::unique_ptr<WatchServer> watch_ranks(const Mpirun& mpirun, double timeout) {
  WatchOptions o{.n_ranks = static_cast<int>(mpirun.options.n_ranks),
                 .timeout = timeout,
                 .loopback = all_here(mpirun.options.hosts)};
  for (const Host& h : mpirun.options.hosts)
    o.hosts.insert(o.hosts.end(), static_cast<std::size_t>(h.slots), h.name);
  return std::make_unique<WatchServer>(o);
}

// An end by force. mpirun may ignore SIGTERM, be stopped, or wait for a host that is cut off.
class ForcedEnd {
 public:
  ForcedEnd(WatchServer& server, pid_t mpirun) : server_(server), mpirun_(mpirun) {}
  bool begun() const { return began_.has_value(); }
  void begin() {
    if (began_) return;
    began_ = Clock::now();
    server_.end_all();
    kill(mpirun_, SIGTERM);
  }
  void kill_now() {
    kill(-mpirun_, SIGKILL);
    kill_marked(server_.address().client_key);
    killed_ = true;
  }
  // To be called now and then.
  void go_on() {
    if (began_ && !killed_ && since(*began_) > kGentleSeconds) kill_now();
  }

 private:
  static constexpr double kGentleSeconds = 2;
  WatchServer& server_;
  pid_t mpirun_;
  std::optional<Clock::time_point> began_;
  bool killed_ = false;
};

// The codes that a rank ends with on purpose; another one is a library's exit() or _exit().
bool is_ours(int code) {
  return (code >= 0 && code <= static_cast<int>(ExitCode::interrupted)) ||
         code == static_cast<int>(ExitCode::bug);
}

// mpirun's status 1 is a rank's only if a rank has said so: mpirun ends with 1 too when a signal ends it.
bool ended_alone(int status, const std::optional<MpirunOutput::Failure>& failure, const WatchServer& server) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 1 && !failure && !server.ended_with(1);
}

// Turns mpirun's status and banners into the job's exit code.
int job_code(int status, const std::optional<MpirunOutput::Failure>& failure) {
  using Kind = MpirunOutput::Failure::Kind;
  const int rank_failed = static_cast<int>(ExitCode::rank_failed);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 0) return 0;
  if (failure && failure->kind != Kind::exit_code) return rank_failed;
  if (failure && !is_ours(code)) return rank_failed;
  return code >= 128 ? rank_failed : code;  // 128 + signal, 205: lost a host, 255: no start
}

// What the user is told where no rank has said it. "" where there is nothing to say.
std::string end_message(int status, const MpirunOutput& output, bool alone, const WatchServer& server) {
  using Kind = MpirunOutput::Failure::Kind;
  if (WIFSIGNALED(status))
    return fmt::format("mpirun was killed by signal {} ({}); all ranks have ended", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  if (alone)
    return "mpirun ended before its ranks, as it does after a signal sent to it; all ranks have ended";
  // mpirun says the same of a host that it can't reach and of one that crashes.
  if (const auto& f = output.failure(); f && f->kind == Kind::no_start && server.all_started())
    return "the connection to a host was lost; all ranks have ended";
  if (std::string message = output.message(); !message.empty()) return message;
  // Now and then mpirun forgets to say which rank was killed; its status tells the signal all the same.
  if (const int n = WEXITSTATUS(status) - 128; n > 0 && n < 65)
    return fmt::format("a rank was killed by signal {} ({}); all ranks have ended", n, strsignal(n));
  if (const auto& f = output.failure(); f && f->kind == Kind::exit_code && !is_ours(f->number))
    return fmt::format("rank {} ended with code {} and no word; all ranks have ended", f->rank, f->number);
  return {};
}

// After mpirun's end: ranks that it has left behind.
void end_ranks(WatchServer& server) {
  constexpr double kWaitSeconds = 2;
  server.end_all();
  for (const auto began = Clock::now(); server.connected() > 0 && since(began) < kWaitSeconds;) usleep(20000);
  kill_marked(server.address().client_key);
}

// Whether a rank of this host was killed, and the kernel has killed a process of this cgroup for lack of
// memory since there were `kills` of them. Of other hosts nothing is known.
bool ran_out_of_memory(int status, const std::optional<MpirunOutput::Failure>& failure, i64 kills,
                       const std::string& root) {
  const auto brief = [](const std::string& host) { return host.substr(0, host.find('.')); };
  const bool killed = failure ? failure->kind == MpirunOutput::Failure::Kind::signal &&
                                    failure->number == SIGKILL && brief(failure->host) == brief(host_name())
                              : WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL;
  return killed && cgroup_oom_kills(root) > kills;
}

}  // namespace

int exec_under_mpirun(const Mpirun& mpirun, const ExecOptions& options) {
  const auto server = watch_ranks(mpirun, options.fault_timeout);
  Mpirun watched = mpirun;
  watched.own_environment[kWatchVariable] = text_of(server->address());
  watched.passed.insert(kWatchVariable);
  const i64 oom_kills = cgroup_oom_kills(options.root);
  SignalPipe signals;
  Pipe errors;
  InputRelay input(mpirun.options.input);
  const pid_t pid = start(watched.argv(), environment_of(watched), input.child_fd(), -1, errors.out.fd);
  errors.out.reset();
  input.started();
  fcntl(errors.in.fd, F_SETFL, O_NONBLOCK);

  MpirunOutput output;
  OneVoice voice;
  ForcedEnd ending(*server, pid);
  std::optional<std::string> verdict;
  int asked = 0;  // signals that ask for an end
  bool ended_by_us = false, closed = false, gone = false;
  int status = 0;
  Clock::time_point end, last_asked;
  while (!(gone && (closed || since(end) * 1000 > kDrainMs))) {
    std::array<pollfd, 3> fds{pollfd{signals.fd(), POLLIN, 0}, pollfd{closed ? -1 : errors.in.fd, POLLIN, 0},
                              gone ? pollfd{-1, 0, 0} : input.wish()};
    const int ready = poll(fds.data(), fds.size(), gone ? 50 : output.holding() ? kHoldMs : kLookMs);
    if (ready == 0 && output.holding()) write_all(options.stderr_fd, voice.feed(output.flush()));
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
      asked++;
      if (asked == 1) {
        if (options.save_on_signal)
          write_all(options.stderr_fd,
                    fmt::format("redco: {}: saving and ending; once more: ending without saving\n",
                                signal_text(number)));
        server->ask_to_end(number);
        continue;
      }
      ended_by_us = ended_by_us || !ending.begun();
      if (ending.begun()) ending.kill_now();
      ending.begin();
    }
    if (fds[1].revents)
      write_all(options.stderr_fd, voice.feed(output.feed(read_some(errors.in.fd, closed))));
    if (fds[2].revents) input.go_on();
    if (!gone && !ending.begun() && (verdict = server->verdict())) {
      if (!voice.heard()) write_all(options.stderr_fd, "error: " + *verdict + "\n");
      ending.begin();
    }
    if (!gone && waitpid(pid, &status, WNOHANG) == pid) {
      gone = true;
      end = Clock::now();
      if (status != 0) end_ranks(*server);
    }
    // Ranks that have nothing to save end at once.
    if (!gone && asked > 0 && !options.save_on_signal && !ending.begun() &&
        since(last_asked) > kAskedSeconds) {
      ended_by_us = true;
      ending.begin();
    }
    if (!gone) ending.go_on();
  }
  write_all(options.stderr_fd, voice.feed(output.flush()) + voice.flush());
  const auto& failure = output.failure();
  if (verdict) return static_cast<int>(ExitCode::rank_failed);
  if (ended_by_us) return status == 0 ? 0 : static_cast<int>(ExitCode::interrupted);
  if (ran_out_of_memory(status, failure, oom_kills, options.root)) {
    write_all(
        options.stderr_fd,
        fmt::format("error: [memory] {}the kernel killed it for lack of memory (cgroup or host); all ranks "
                    "have ended. `redco plan` says what the job needs\n",
                    failure ? fmt::format("rank {}: ", failure->rank) : "a rank: "));
    return static_cast<int>(ExitCode::doesnt_fit);
  }
  const bool alone = ended_alone(status, failure, *server);
  if (const std::string message = end_message(status, output, alone, *server);
      !voice.heard() && !message.empty())
    write_all(options.stderr_fd, "redco: " + message + "\n");
  return alone ? static_cast<int>(ExitCode::rank_failed) : job_code(status, failure);
}

namespace {

std::string collect_output(const std::vector<std::string>& argv, const Environment& environment,
                           double seconds, i64 max_bytes) {
  REDCO_CHECK(!argv.empty(), "no command");
  Pipe outs, errors;
  const pid_t pid = start(argv, environment, -1, outs.out.fd, errors.out.fd);
  outs.out.reset();
  errors.out.reset();
  std::string out, err;
  bool out_ended = false, err_ended = false, too_much = false;
  const auto began = Clock::now();
  while (!(out_ended && err_ended) && since(began) < seconds && !too_much) {
    std::array<pollfd, 2> fds{pollfd{out_ended ? -1 : outs.in.fd, POLLIN, 0},
                              pollfd{err_ended ? -1 : errors.in.fd, POLLIN, 0}};
    poll(fds.data(), fds.size(), 100);
    if (fds[0].revents) out += read_some(outs.in.fd, out_ended);
    if (fds[1].revents) err += read_some(errors.in.fd, err_ended);
    too_much = static_cast<i64>(out.size()) > max_bytes || static_cast<i64>(err.size()) > max_bytes;
  }
  const bool finished = out_ended && err_ended;
  int status = 0;
  if (!finished) kill(-pid, SIGTERM);
  const auto asked = Clock::now();
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (!finished && since(asked) > 2) kill(-pid, SIGKILL);
    usleep(2000);
  }
  if (finished && WIFEXITED(status) && WEXITSTATUS(status) == 0) return out;
  const std::string why = too_much ? fmt::format("wrote more than {} bytes", max_bytes)
                          : !finished
                              ? fmt::format("took longer than {:g} s", seconds)
                              : fmt::format("ended with status {}",
                                            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  MpirunOutput words;  // of mpirun's banners only the gist
  std::string text = words.feed(err);
  text += words.flush();
  if (!words.message().empty()) text += words.message();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw Error(ExitCode::rank_failed, fmt::format("{} {}: {}", argv[0], why, text.substr(0, 2000)));
}

}  // namespace

std::string output_of(const std::vector<std::string>& argv, double seconds, i64 max_bytes) {
  return collect_output(argv, current_environment(), seconds, max_bytes);
}

std::string output_under_mpirun(const Mpirun& mpirun, double seconds, i64 max_bytes) {
  return collect_output(mpirun.argv(), environment_of(mpirun), seconds, max_bytes);
}

std::string program_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw IoError("/proc/self/exe: {}", error.message());
  return path.string();
}

}  // namespace redco
