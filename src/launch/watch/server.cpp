#include "launch/watch/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "launch/resource_limits.h"

namespace redco {

namespace {

constexpr int kJudgeMs = 100;           // how often the server judges
constexpr double kLongestGap = 1;       // s: see AwakeClock
constexpr double kGreetSeconds = 5;     // a connection without a first line is closed after this time
constexpr std::size_t kStrangers = 64;  // most connections without a first line
constexpr double kPauseSeconds = 0.5;   // before the next accept() where descriptors have run out

// A rank's own text, safe to print.
std::string printable(std::string text, char first, std::size_t most) {
  for (char& c : text)
    if (c < first || c > 126) c = '?';
  if (text.size() > most) text.resize(most);
  return text;
}
std::string shown(std::string word) { return printable(std::move(word), '!', 64); }

std::string without_underscores(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

}  // namespace

struct WatchServer::Connection {
  explicit Connection(int f, double now) : fd(f), since(now) {}
  ~Connection() { close(fd); }
  int fd;
  int rank = -1;  // -1: no first line yet
  bool dropped = false;
  double since;
  LineReceiver in;
};

WatchServer::WatchServer(const WatchOptions& o) : options_(o), clock_(kLongestGap) {
  address_ = {random_key(), random_key(), o.timeout, o.in_rank, {}};
  listeners_ = listen_on(o.loopback);
  for (const Listener& l : listeners_)
    address_.endpoints.insert(address_.endpoints.end(), l.endpoints.begin(), l.endpoints.end());
  ranks_.resize(static_cast<std::size_t>(o.n_ranks));
  heard_at_.resize(ranks_.size());
  has_reported_.resize(ranks_.size());
  // A connection for each rank: the usual soft limit of 1024 descriptors is too low for a large job.
  allow_open_files(o.n_ranks + kOtherOpenFiles);
  for (std::size_t r = 0; r < std::min(ranks_.size(), o.hosts.size()); ++r) ranks_[r].host = o.hosts[r];
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) throw IoError("pipe: {}", std::strerror(errno));
  // The main thread handles all signals.
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  thread_ = std::thread([this] { serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WatchServer::~WatchServer() {
  stopping_ = true;
  wake();
  thread_.join();
  for (const Listener& l : listeners_) close(l.fd);
  close(wake_[0]);
  close(wake_[1]);
}

void WatchServer::wake() const {
  if (write(wake_[1], "", 1) < 0) {  // a full pipe wakes too
  }
}

std::optional<Outcome> WatchServer::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

int WatchServer::connected() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(connections_.begin(), connections_.end(),
                                        [](const auto& c) { return c->rank >= 0 && !c->dropped; }));
}

bool WatchServer::all_started() const {
  const std::lock_guard lock(mutex_);
  return std::none_of(ranks_.begin(), ranks_.end(),
                      [](const RankReport& r) { return r.state == RankReport::State::absent; });
}

bool WatchServer::ended_with(int code) const {
  const std::lock_guard lock(mutex_);
  return std::find(codes_.begin(), codes_.end(), code) != codes_.end();
}

std::vector<RankReport> WatchServer::reports() const {
  const std::lock_guard lock(mutex_);
  return ranks_;
}

void WatchServer::order(const char* what) {
  // The first rank gets the order last: it may be this process, which then ends immediately.
  for (const bool first : {false, true})
    for (const auto& c : connections_)
      if (c->rank >= 0 && (c->rank == 0) == first && !c->dropped) send_line(c->fd, what);
}

void WatchServer::end_all() {
  const std::lock_guard lock(mutex_);
  if (!ending_) order("end");
  ending_ = true;
}

void WatchServer::ask_to_end(int signal) {
  const std::lock_guard lock(mutex_);
  asked_ = signal;
  order(fmt::format("stop {}", signal).c_str());
}

void WatchServer::note_unread_messages() {
  const std::lock_guard lock(mutex_);
  if (!unread_) order("unread");
  unread_ = true;
}

void WatchServer::free_all() {
  const std::lock_guard lock(mutex_);
  order("free");
}

// The first line of a connection.
void WatchServer::greet(Connection& c, const std::string& line) {
  std::istringstream in(line);
  std::string word, key, host;
  i64 rank = -1, pid = 0;
  in >> word >> key >> rank >> pid >> host;
  c.dropped = true;
  if (!in || word != "redco-watch" || key != address_.client_key || rank < 0 || rank >= options_.n_ranks)
    return;
  RankReport& r = ranks_[rank];
  // A rank connects once. It tries again if this process was stopped for a while: then the connection that it
  // gave up comes first.
  const bool again = r.state == RankReport::State::closed && !has_reported_[rank];
  if (r.state != RankReport::State::absent && !again) return;
  c.dropped = false;
  c.rank = static_cast<int>(rank);
  r.state = RankReport::State::working;
  r.host = shown(host);
  r.phase = "start";
  heard_at_[rank] = now_;
  send_line(c.fd, "welcome " + address_.server_key);
  if (ending_) send_line(c.fd, "end");
  if (asked_ != 0) send_line(c.fd, fmt::format("stop {}", asked_));
  if (unread_) send_line(c.fd, "unread");
}

void WatchServer::hear(Connection& c, const std::string& line) {
  using State = RankReport::State;
  if (c.rank < 0) return greet(c, line);
  RankReport& r = ranks_[c.rank];
  std::istringstream in(line);
  std::string word, state, waits_for, phase;
  i64 still_ms = 0, step = -1;
  u64 waits = 0;
  int code = 0;
  in >> word;
  if (word == "beat" && in >> state >> still_ms >> step >> waits >> waits_for >> phase &&
      r.state != State::ended) {
    r.state = state == "waiting" ? State::waiting : state == "idle" ? State::idle : State::working;
    r.still = static_cast<double>(still_ms) / 1000;
    r.step = step;
    r.waits = waits;
    r.waits_for = shown(waits_for);
    std::string place;
    std::getline(in, place);
    r.phase = without_underscores(shown(phase)) + printable(std::move(place), ' ', 200);
    heard_at_[c.rank] = now_;
    has_reported_[c.rank] = true;
    send_line(c.fd, "alive");
  } else if (word == "bye" && in >> code) {
    r.state = State::ended;
    codes_.push_back(code);
  } else {
    c.dropped = true;
  }
}

void WatchServer::serve() {
  std::vector<pollfd> fds;
  std::vector<std::string> lines;
  while (!stopping_) {
    fds.clear();
    fds.push_back({wake_[0], POLLIN, 0});
    std::size_t strangers = 0, first = 0, watched = 0;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& c : connections_) strangers += c->rank < 0;
      const bool accepts = strangers < kStrangers && clock_.now() >= accepts_at_;
      for (const Listener& l : listeners_) fds.push_back({accepts ? l.fd : -1, POLLIN, 0});
      first = fds.size();
      watched = connections_.size();
      for (const auto& c : connections_) fds.push_back({c->fd, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), kJudgeMs);
    std::unique_lock lock(mutex_);
    now_ = clock_.now();
    std::array<char, 64> bytes;
    if (fds[0].revents && read(wake_[0], bytes.data(), bytes.size()) < 0) {  // the bytes only end the poll
    }
    for (std::size_t i = 0; i < watched; ++i) {
      Connection& c = *connections_[i];
      if (fds[first + i].revents) {
        lines.clear();
        const auto got = c.in.receive(c.fd, lines);
        for (const std::string& line : lines)
          if (!c.dropped) hear(c, line);
        if (got != LineReceiver::Got::nothing) c.dropped = true;
        // After a network error the process may still live: the deadline for its messages decides.
        if (c.rank >= 0 && got == LineReceiver::Got::closed &&
            ranks_[c.rank].state != RankReport::State::ended) {
          ranks_[c.rank].state = RankReport::State::closed;
          heard_at_[c.rank] = now_;
        }
      }
      if (c.rank < 0 && now_ - c.since > kGreetSeconds) c.dropped = true;
    }
    std::erase_if(connections_, [](const auto& c) { return c->dropped; });
    for (std::size_t l = 0; l < listeners_.size(); ++l) {
      if (!fds[1 + l].revents) continue;
      const int fd = accept4(listeners_[l].fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      // The connection stays in the queue: without a pause this loop would spin.
      if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
        accepts_at_ = now_ + kPauseSeconds;
      if (fd < 0) continue;
      limit_silence(fd, options_.timeout);
      connections_.push_back(std::make_unique<Connection>(fd, now_));
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].heard = now_ - heard_at_[r];
    if (verdict_ || ending_) continue;
    verdict_ = judge(ranks_, options_.timeout, now_);
    lock.unlock();
    if (verdict_ && options_.act) options_.act(*this, *verdict_);
  }
  const std::lock_guard lock(mutex_);
  connections_.clear();
}

}  // namespace redco
