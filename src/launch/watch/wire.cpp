#include "launch/watch/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/timing.h"

namespace redco {

namespace {

constexpr std::size_t kMostEndpoints = 16;
constexpr std::size_t kLongestLine = 512;

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(by, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool is_key(const std::string& s) {
  return s.size() == 32 && s.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The addresses of this host that others may reach: of interfaces that are up, without loopback and
// link-local.
std::vector<std::string> own_addresses(int family) {
  std::vector<std::string> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) ||
        (i->ifa_flags & IFF_LOOPBACK))
      continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* address = nullptr;
    if (family == AF_INET) {
      address = &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr;
    } else {
      const in6_addr& a = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&a)) continue;
      address = &a;
    }
    if (inet_ntop(family, address, text.data(), text.size())) out.emplace_back(text.data());
  }
  freeifaddrs(list);
  return out;
}

std::string endpoint(const std::string& address, int port) {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

// A listening socket, or -1 and errno. Sets `port`.
int listening_socket(int family, bool loopback, int& port) {
  const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  sockaddr_storage at{};
  socklen_t size = sizeof(sockaddr_in);
  at.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(at).sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
  } else {
    const int only = 1;
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    reinterpret_cast<sockaddr_in6&>(at).sin6_addr = loopback ? in6addr_loopback : in6addr_any;
    size = sizeof(sockaddr_in6);
  }
  socklen_t got = sizeof at;
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 || listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&at), &got) != 0) {
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
  }
  port = ntohs(family == AF_INET ? reinterpret_cast<sockaddr_in&>(at).sin_port
                                 : reinterpret_cast<sockaddr_in6&>(at).sin6_port);
  return fd;
}

}  // namespace

std::string text_of(const WatchAddress& a) {
  return fmt::format("{},{},{:g},{:d},{}", a.client_key, a.server_key, a.timeout, a.in_rank,
                     fmt::join(a.endpoints, ","));
}

std::optional<WatchAddress> parse_watch_address(const std::string& text) {
  const auto parts = split(text, ',');
  if (parts.size() < 5 || parts.size() > 4 + kMostEndpoints) return std::nullopt;
  WatchAddress a{parts[0], parts[1], 0, parts[3] == "1", {parts.begin() + 4, parts.end()}};
  const auto [end, wrong] = std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), a.timeout);
  if (!is_key(a.client_key) || !is_key(a.server_key) || wrong != std::errc() ||
      end != parts[2].data() + parts[2].size() || !(a.timeout >= 0) || (parts[3] != "0" && parts[3] != "1"))
    return std::nullopt;
  return a;
}

std::string random_key() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw IoError("[fault] getrandom: {}", std::strerror(errno));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::vector<Listener> listen_on(bool loopback) {
  std::vector<Listener> out;
  int why = 0;
  for (const int family : {AF_INET, AF_INET6}) {
    if (loopback && !out.empty()) break;
    const auto addresses =
        loopback ? std::vector<std::string>{family == AF_INET ? "127.0.0.1" : "::1"} : own_addresses(family);
    if (addresses.empty()) continue;
    int port = 0;
    const int fd = listening_socket(family, loopback, port);
    if (fd < 0) {
      why = errno;
      continue;
    }
    Listener l{fd, {}};
    for (std::size_t i = 0; i < std::min(addresses.size(), kMostEndpoints / 2); ++i)
      l.endpoints.push_back(endpoint(addresses[i], port));
    out.push_back(std::move(l));
  }
  if (out.empty() && !loopback && !why) return listen_on(true);  // a host without a network
  if (out.empty())
    throw IoError(
        "[fault] cannot open a listening socket for the ranks' watchdogs: {}; check this host's network",
        std::strerror(why));
  return out;
}

int connect_to(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return -1;
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found) != 0 || !found) return -1;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool failed =
      fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS;
  freeaddrinfo(found);
  if (failed) close(fd);
  return failed ? -1 : fd;
}

void limit_silence(int fd, double timeout) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (timeout <= 0) return;
  const double t = std::min(timeout, 86400.0);
  const int idle = std::max(1, static_cast<int>(t / 3)), between = std::max(1, static_cast<int>(t / 6)),
            probes = 3;
  const auto unanswered = static_cast<unsigned>(std::max(1.0, 0.9 * t) * 1000);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
}

LineReceiver::Got LineReceiver::receive(int fd, std::vector<std::string>& lines) {
  std::array<char, 4096> buffer;
  const ssize_t n = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno == ECONNRESET)) return Got::closed;
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Got::nothing : Got::failed;
  held_.append(buffer.data(), static_cast<std::size_t>(n));
  for (std::size_t end; (end = held_.find('\n')) != std::string::npos && end <= kLongestLine;) {
    lines.push_back(held_.substr(0, end));
    held_.erase(0, end + 1);
  }
  return held_.size() > kLongestLine ? Got::failed : Got::nothing;
}

bool send_line(int fd, std::string_view line) {
  const std::string bytes = std::string(line) + "\n";
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

AwakeClock::AwakeClock(double most) : most_(most), last_(seconds()) {}
double AwakeClock::now() {
  const double t = seconds();
  sum_ += std::min(most_, t - last_);
  last_ = t;
  return sum_;
}

}  // namespace redco
