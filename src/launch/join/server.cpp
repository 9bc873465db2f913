#include "launch/join/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/timing.h"
#include "base/words.h"
#include "launch/host.h"
#include "launch/join/hello.h"
#include "launch/watch/wire.h"

namespace redco {

namespace {

constexpr double kProofSeconds = 10, kAliveSeconds = 1;
constexpr double kSilentSeconds = 30;                  // a process without any frame for so long has left
constexpr double kDeadSeconds = 5;                     // and can be replaced by another one after so long
constexpr double kWaitNews = 10, kWaitNewsAgain = 60;  // s of waiting until a line about it
constexpr int kMostThreads = 1 << 13;

// A listening socket. port 0: any free one.
int listen_at(int port, bool loopback, int& got) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int family = fd >= 0 && !loopback ? AF_INET6 : AF_INET;
  int use = fd;
  if (family == AF_INET) {
    if (fd >= 0) close(fd);
    use = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  const int on = 1, off = 0;
  setsockopt(use, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage at{};
  socklen_t size = sizeof(sockaddr_in);
  at.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    setsockopt(use, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    reinterpret_cast<sockaddr_in6&>(at).sin6_port = htons(static_cast<std::uint16_t>(port));
    size = sizeof(sockaddr_in6);
  } else {
    auto& four = reinterpret_cast<sockaddr_in&>(at);
    four.sin_port = htons(static_cast<std::uint16_t>(port));
    four.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
  }
  socklen_t length = sizeof at;
  if (use < 0 || bind(use, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(use, SOMAXCONN) != 0 ||
      getsockname(use, reinterpret_cast<sockaddr*>(&at), &length) != 0) {
    const int why = errno;
    if (use >= 0) close(use);
    throw IoError("[join] cannot listen on port {}: {}. Use another --host0-port, the same on all hosts",
                  port, std::strerror(why));
  }
  got = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(at).sin6_port
                                 : reinterpret_cast<sockaddr_in&>(at).sin_port);
  return use;
}

// "17\nrest" -> 17 and "rest"; -1 for anything else.
i64 split_number(const std::string& body, std::string& rest) {
  const std::size_t end = body.find('\n');
  const std::string number = body.substr(0, end);
  if (number.empty() || number.size() > 18 || number.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  rest = end == std::string::npos ? "" : body.substr(end + 1);
  return std::atoll(number.c_str());
}

}  // namespace

struct JoinServer::Peer {
  explicit Peer(Channel c) : channel(std::move(c)) {}
  bool send(Channel::Kind kind, const std::string& body) {
    const std::lock_guard lock(sends);
    return !gone && channel.send(kind, body);
  }
  Channel channel;
  std::mutex sends;
  std::atomic<bool> gone{false};
  std::atomic<double> heard{seconds()};
  bool joined = false;
  JoinHello hello;
};

JoinServer::JoinServer(const JoinPlace& place, const std::string& key)
    : place_(place), key_(key), agent_key_(random_key()) {
  door_.fd = listen_at(place.port, false, port_);
  agent_door_.fd = listen_at(0, true, agent_port_);
  accepts_ = std::thread([this] { accept_on(door_.fd, false); });
  accepts_agents_ = std::thread([this] { accept_on(agent_door_.fd, true); });
}

JoinServer::~JoinServer() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, m] : members_) m->send(Channel::Kind::bye, fmt::format("{}", code_.load()));
  }
  stopping_ = true;
  accepts_.join();
  accepts_agents_.join();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (threads_ == 0) return;
    }
    usleep(10000);
  }
}

std::string JoinServer::agent_variable() const { return fmt::format("{} {}", agent_port_, agent_key_); }

// Accepts connections. Each gets a thread, so that a stranger who proves nothing delays nobody.
void JoinServer::accept_on(int fd, bool agents) {
  while (!stopping_) {
    pollfd p{fd, POLLIN, 0};
    if (poll(&p, 1, 100) <= 0) continue;
    const int got = accept4(fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (got < 0) {
      usleep(10000);
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      if (threads_ >= kMostThreads) {
        close(got);
        continue;
      }
      ++threads_;
    }
    std::thread([this, got, agents] {
      Fd socket(got);
      limit_silence(got, kSilentSeconds);
      auto channel = Channel::open(socket, agents ? agent_key_ : key_, Channel::Role::host0, kProofSeconds);
      if (!channel && !agents)
        warn_once(
            "a process without the job's key wants to join; it is refused. Use the same key on all hosts");
      if (channel) {
        auto peer = std::make_shared<Peer>(std::move(*channel));
        agents ? serve_agent(std::move(peer)) : serve_member(std::move(peer));
      }
      const std::lock_guard lock(mutex_);
      --threads_;
    }).detach();
  }
}

// Takes the process in, or tells it why not. A process that lost its connection joins again with its number.
bool JoinServer::admit(const std::shared_ptr<Peer>& peer, const std::string& text) {
  const auto hello = parse_hello(text);
  std::string why = why_refused(hello, place_);
  std::shared_ptr<Peer> other;
  if (why.empty()) {
    const std::lock_guard lock(mutex_);
    const auto it = members_.find(hello->process_id);
    if (it != members_.end() && it->second->hello.instance != hello->instance) other = it->second;
  }
  // A process of a host that has died is silent; it is replaced.
  for (const double began = seconds(); other && !other->gone && !stopping_; usleep(50000)) {
    if (seconds() - other->heard > kDeadSeconds) break;
    if (other->heard - began > kAliveSeconds) {
      why = why_twice(*hello, other->hello);
      break;
    }
  }
  if (!why.empty()) {
    warn_once(why);
    peer->send(Channel::Kind::refused, why);
    return false;
  }
  if (hello->job != place_.job)
    warn_once(fmt::format("process {} on {} was started with `{}`, process 0 with `{}`, which counts",
                          hello->process_id, hello->host, excerpt(hello->job), excerpt(place_.job)));
  const std::lock_guard lock(mutex_);
  if (const auto it = members_.find(hello->process_id); it != members_.end()) it->second->gone = true;
  peer->hello = *hello;
  peer->joined = true;
  members_[hello->process_id] = peer;
  return true;
}

void JoinServer::serve_member(std::shared_ptr<Peer> peer) {
  using Kind = Channel::Kind;
  double sent = 0;
  bool open = true;
  while (open && !stopping_ && !peer->gone && seconds() - peer->heard < kSilentSeconds) {
    pollfd p{peer->channel.fd(), POLLIN, 0};
    const bool ready = poll(&p, 1, 200) > 0;
    if (ready) open = peer->channel.receive();
    while (const auto f = peer->channel.next()) {
      peer->heard = seconds();
      if (f->kind == Kind::hello && !peer->joined) {
        if (admit(peer, f->body)) continue;
        // A socket that is closed with unread bytes may lose what it has sent.
        for (const double began = seconds(); peer->channel.receive() && seconds() - began < kAliveSeconds;)
          usleep(20000);
        return;
      }
      std::string rest;
      const i64 number = split_number(f->body, rest);
      if (f->kind == Kind::signal && peer->joined && number > 0 && number < 65) {
        kill(getpid(), static_cast<int>(number));
      } else if (f->kind == Kind::out || f->kind == Kind::err || f->kind == Kind::ended) {
        std::shared_ptr<Peer> agent;
        {
          const std::lock_guard lock(mutex_);
          const auto it = agents_.find(number);
          if (it != agents_.end()) agent = it->second;
        }
        if (agent) agent->send(f->kind, f->body);
      }
    }
    if (seconds() - sent > kAliveSeconds) {
      sent = seconds();
      open = open && peer->send(Kind::alive, "");
    }
  }
  peer->gone = true;
  const std::lock_guard lock(mutex_);
  if (const auto it = members_.find(peer->hello.process_id); it != members_.end() && it->second == peer)
    members_.erase(it);
}

void JoinServer::warn_once(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    constexpr std::size_t kMostWarnings = 64;
    if (warned_.size() >= kMostWarnings || !warned_.insert(text).second) return;
  }
  warn("[join] {}", text);
}

std::shared_ptr<JoinServer::Peer> JoinServer::member_on(const std::string& host) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, m] : members_)
    if (m->hello.host == host && !m->gone) return m;
  return nullptr;
}

// One command: from the agent to the member, and its output back.
void JoinServer::serve_agent(std::shared_ptr<Peer> peer) {
  using Kind = Channel::Kind;
  std::shared_ptr<Peer> member;
  i64 command = -1;
  const auto refuse = [&] { peer->send(Kind::ended, fmt::format("0\n{}", kNotJoined)); };
  while (!stopping_) {
    pollfd p{peer->channel.fd(), POLLIN, 0};
    if (poll(&p, 1, 200) > 0 && !peer->channel.receive()) break;
    while (const auto f = peer->channel.next()) {
      if (f->kind != Kind::run || member) continue;
      const std::size_t end = f->body.find('\n');
      member = end == std::string::npos ? nullptr : member_on(f->body.substr(0, end));
      if (!member) {
        refuse();
        break;
      }
      {
        const std::lock_guard lock(mutex_);
        command = ++commands_;
        agents_[command] = peer;
      }
      if (!member->send(Kind::run, fmt::format("{}\n{}", command, f->body.substr(end + 1)))) refuse();
    }
    if (member && member->gone) {
      refuse();
      break;
    }
  }
  if (member && !member->gone) member->send(Kind::kill, fmt::format("{}", command));
  const std::lock_guard lock(mutex_);
  agents_.erase(command);
}

std::vector<std::string> JoinServer::wait_for_all(double limit) {
  const double began = seconds();
  for (double next = kWaitNews;;) {
    std::vector<std::string> hosts = {host_name()};
    std::vector<i64> missing;
    {
      const std::lock_guard lock(mutex_);
      for (i64 id = 1; id < place_.n_processes; ++id) {
        const auto it = members_.find(id);
        if (it == members_.end())
          missing.push_back(id);
        else
          hosts.push_back(it->second->hello.host);
      }
    }
    if (missing.empty()) {
      for (std::size_t i = 0; i < hosts.size(); ++i)
        for (std::size_t k = 0; k < i; ++k)
          if (same_host(hosts[i], hosts[k]))
            throw Error(
                ExitCode::usage,
                fmt::format(
                    "[join] the processes {} and {} run on hosts with one name, {}. Start one process per host, "
                    "and give each host or container its own name",
                    k, i, hosts[i]));
      return hosts;
    }
    if (const int signal = end_requested())
      throw Error(ExitCode::interrupted,
                  fmt::format("[join] stopped by {} before all processes had joined; nothing had to be saved",
                              signal_text(signal)));
    constexpr std::size_t kMostNamed = 8;
    const std::size_t n = missing.size();
    missing.resize(std::min(n, kMostNamed));
    const std::string which =
        fmt::format("--process-id {}{}", fmt::join(missing, ", "), n > kMostNamed ? ", ..." : "");
    const double waited = seconds() - began;
    if (waited > limit)
      throw Error(
          ExitCode::rank_failed,
          fmt::format(
              "[join] {} of {} processes have not joined within {:g} s: {}. Start them with the same "
              "--n-processes, --host0-address and key; {} must be an address of this host, and its port "
              "{} must be open",
              n, place_.n_processes, limit, which, place_.host0, port_));
    if (waited > next) {
      next += kWaitNewsAgain;
      info("[join] {} of {} processes have not joined yet: {}", n, place_.n_processes, which);
    }
    usleep(50000);
  }
}

int run_agent(const std::string& host, const std::string& command) {
  using Kind = Channel::Kind;
  const char* const door = std::getenv(kAgentVariable);
  const std::string text = door ? door : "";
  const std::size_t space = text.find(' ');
  if (space == std::string::npos)
    throw UsageError("[join] redco starts `redco agent` itself, for a job without ssh; {} is not set",
                     kAgentVariable);
  Fd socket(connect_to("127.0.0.1:" + text.substr(0, space)));
  pollfd writable{socket.fd, POLLOUT, 0};
  if (socket.fd < 0 || poll(&writable, 1, 5000) <= 0) return kNotJoined;
  auto channel = Channel::open(socket, text.substr(space + 1), Channel::Role::member, kProofSeconds);
  if (!channel || !channel->send(Kind::run, host + "\n" + command)) return kNotJoined;
  for (;;) {
    pollfd p{channel->fd(), POLLIN, 0};
    if (poll(&p, 1, 1000) < 0 && errno != EINTR) return kNotJoined;
    if (p.revents && !channel->receive()) return kNotJoined;
    while (const auto f = channel->next()) {
      std::string rest;
      if (split_number(f->body, rest) < 0) continue;
      if (f->kind == Kind::out) write_all(1, rest);
      if (f->kind == Kind::err) write_all(2, rest);
      if (f->kind == Kind::ended) return std::atoi(rest.c_str()) & 255;
    }
  }
}

}  // namespace redco
