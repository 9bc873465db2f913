#include "launch/join/member.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/timing.h"
#include "launch/child_process.h"
#include "launch/join/channel.h"
#include "launch/join/hello.h"
#include "launch/signal_pipe.h"
#include "launch/watch/wire.h"

namespace redco {

namespace {

constexpr double kBeatSeconds = 1, kLostSeconds = 30, kHandshakeSeconds = 10, kRetrySeconds = 0.5;
constexpr double kMemberNews = 10, kMemberNewsAgain = 60;  // s without a connection until a line about it

// A connected socket to one of the addresses of host 0, or -1 and `why`.
int connect_to_host0(const JoinPlace& place, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error =
          getaddrinfo(place.host0.c_str(), fmt::format("{}", place.port).c_str(), &hints, &found)) {
    why = gai_strerror(error);
    return -1;
  }
  int fd = -1;
  for (const addrinfo* a = found; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    if (::connect(fd, a->ai_addr, a->ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
      pollfd p{fd, POLLOUT, 0};
      if (poll(&p, 1, 5000) <= 0)
        error = ETIMEDOUT;
      else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    }
    if (!error) continue;
    why = std::strerror(error);
    close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  return fd;
}

// A command that runs, or whose children hold its output.
struct Command {
  pid_t pid = -1;
  Pipe out, err;
  bool out_ended = false, err_ended = false;
};

class Member {
 public:
  Member(const JoinPlace& place, const std::string& key) : place_(place), key_(key), mark_(random_key()) {}
  ~Member() { end_commands(); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  int run(double limit) {
    double since = seconds(), next = seconds() + kMemberNews;
    for (bool joined_before = false;;) {
      auto channel = join();
      if (channel) {
        if (joined_before) info("[join] connected to {} again", place_.host0);
        joined_before = true;
        const double began = seconds();
        if (const auto code = serve(*channel)) return *code;
        end_commands();
        why_ = "the connection was lost";
        if (seconds() - began > kMemberNews) since = seconds();
        next = seconds() + kMemberNews;
        info("[join] the connection to {} was lost; trying again for {:g} s", place_.host0, limit);
      }
      if (stopped_) return static_cast<int>(ExitCode::interrupted);
      if (seconds() - since > limit)
        throw Error(
            ExitCode::rank_failed,
            fmt::format(
                "[join] process {} cannot join {} port {} within {:g} s: {}. Check that process 0 runs "
                "there with the same key, and that the port is open",
                place_.process_id, place_.host0, place_.port, limit, why_));
      if (seconds() > next) {
        next = seconds() + kMemberNewsAgain;
        info("[join] cannot join {} port {} yet: {}; trying for {:g} s", place_.host0, place_.port, why_,
             limit);
      }
      wait(kRetrySeconds);
    }
  }

 private:
  std::optional<Channel> join() {
    Fd socket(connect_to_host0(place_, why_));
    if (socket.fd < 0) return std::nullopt;
    limit_silence(socket.fd, kLostSeconds);
    auto channel = Channel::open(socket, key_, Channel::Role::member, kHandshakeSeconds);
    if (!channel) why_ = "another key";
    if (!channel && !warned_) {
      warned_ = true;
      warn(
          "[join] {} port {} answers, but not with this process's key; trying again. Use the same key everywhere",
          place_.host0, place_.port);
    }
    const JoinHello hello{place_.process_id, place_.n_processes, host_name(), mark_, place_.job};
    if (channel && !channel->send(Channel::Kind::hello, to_text(hello))) channel.reset();
    return channel;
  }

  void wait(double limit) {
    pollfd p{signals_.fd(), POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(limit * 1000)) <= 0) return;
    bool nothing = false;
    for (const char number : read_some(signals_.fd(), nothing)) stopped_ = stopped_ || number != SIGCHLD;
  }

  // Until the job has ended: its code. nullopt: the connection was lost.
  std::optional<int> serve(Channel& channel) {
    double heard = seconds(), sent = 0;
    int asked = 0;
    while (seconds() - heard < kLostSeconds) {
      std::vector<pollfd> fds = {{channel.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
      std::vector<i64> ids;
      for (const auto& [id, c] : commands_) {
        ids.push_back(id);
        fds.push_back({c->out_ended ? -1 : c->out.in.fd, POLLIN, 0});
        fds.push_back({c->err_ended ? -1 : c->err.in.fd, POLLIN, 0});
      }
      poll(fds.data(), fds.size(), 200);
      bool nothing = false;
      for (const char number : fds[1].revents ? read_some(signals_.fd(), nothing) : std::string()) {
        if (number == SIGCHLD) continue;
        if (++asked > 1 && number != SIGUSR1) return static_cast<int>(ExitCode::interrupted);
        info("[join] {}: the job saves and ends", signal_text(number));
        channel.send(Channel::Kind::signal, fmt::format("{}", static_cast<int>(number)));
      }
      if (fds[0].revents && !channel.receive()) return std::nullopt;
      while (const auto f = channel.next()) {
        heard = seconds();
        if (f->kind == Channel::Kind::bye) return std::atoi(f->body.c_str());
        if (f->kind == Channel::Kind::refused) throw UsageError("[join] {}", f->body);
        obey(channel, *f);
      }
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!commands_.count(ids[i])) continue;
        Command& c = *commands_[ids[i]];
        if (fds[2 + 2 * i].revents) pass(channel, Channel::Kind::out, ids[i], c.out.in.fd, c.out_ended);
        if (fds[3 + 2 * i].revents) pass(channel, Channel::Kind::err, ids[i], c.err.in.fd, c.err_ended);
        reap(channel, ids[i]);
      }
      if (seconds() - sent > kBeatSeconds) {
        sent = seconds();
        if (!channel.send(Channel::Kind::alive, "")) return std::nullopt;
      }
    }
    return std::nullopt;
  }

  static void pass(Channel& channel, Channel::Kind kind, i64 id, int fd, bool& ended) {
    const std::string bytes = read_some(fd, ended);
    if (!bytes.empty()) channel.send(kind, fmt::format("{}\n{}", id, bytes));
  }

  void obey(Channel& channel, const Channel::Frame& f) {
    const std::size_t end = f.body.find('\n');
    const i64 id = std::atoll(f.body.c_str());
    if (f.kind == Channel::Kind::kill && commands_.count(id) && commands_[id]->pid > 0)
      kill(-commands_[id]->pid, SIGTERM);
    if (f.kind != Channel::Kind::run || end == std::string::npos) return;
    auto c = std::make_unique<Command>();
    Environment environment = current_environment();
    environment["REDCO_JOINED"] = mark_;  // finds daemons of the command later
    environment.erase("REDCO_KEY");
    environment.erase("REDCO_KEY_FILE");
    try {
      c->pid =
          start_process({"sh", "-c", f.body.substr(end + 1)}, environment, -1, c->out.out.fd, c->err.out.fd);
    } catch (const Error& e) {
      channel.send(Channel::Kind::err, fmt::format("{}\n{}\n", id, e.what()));
      channel.send(Channel::Kind::ended, fmt::format("{}\n127", id));
      return;
    }
    c->out.out.reset();
    c->err.out.reset();
    for (const int fd : {c->out.in.fd, c->err.in.fd}) fcntl(fd, F_SETFL, O_NONBLOCK);
    commands_[id] = std::move(c);
  }

  // Reports the end of a command. A daemon that it left may hold its output; that is not read any more.
  void reap(Channel& channel, i64 id) {
    Command& c = *commands_[id];
    int status = 0;
    if (waitpid(c.pid, &status, WNOHANG) != c.pid) return;
    if (!c.out_ended) pass(channel, Channel::Kind::out, id, c.out.in.fd, c.out_ended);
    if (!c.err_ended) pass(channel, Channel::Kind::err, id, c.err.in.fd, c.err_ended);
    channel.send(Channel::Kind::ended,
                 fmt::format("{}\n{}", id, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
    commands_.erase(id);
  }

  void end_commands() {
    for (const auto& [id, c] : commands_) kill(-c->pid, SIGTERM);
    kill_marked(mark_);
    for (const auto& [id, c] : commands_) waitpid(c->pid, nullptr, 0);
    commands_.clear();
  }

  const JoinPlace place_;
  const std::string key_, mark_;
  std::string why_;  // this process has not joined
  SignalPipe signals_;
  bool stopped_ = false, warned_ = false;
  std::map<i64, std::unique_ptr<Command>> commands_;
};

}  // namespace

int run_member(const JoinPlace& place, const std::string& key, double limit) {
  return Member(place, key).run(limit);
}

}  // namespace redco
