#include "launch/join/channel.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/timing.h"

namespace redco {

namespace {

constexpr std::size_t kDigest = 32, kHead = 4 + kDigest + 1;
constexpr std::size_t kMostBody = 1 << 20;
constexpr std::size_t kLeastKey = 16;
constexpr double kSendSeconds = 10;

// Compares in a time that does not depend on the contents.
bool same_digest(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

std::string bytes_of(std::uint64_t n, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(n >> (8 * i));
  return out;
}

std::string sha256_bytes(std::string_view text) {
  Sha256 h;
  h.update(text);
  const std::string hex = h.hex();
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

std::string without_blanks(std::string text) {
  const char* const blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

bool send_bytes(int fd, std::string_view bytes, double deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      pollfd p{fd, POLLOUT, 0};
      if (seconds() > deadline) return false;
      poll(&p, 1, 100);
    } else {
      return false;
    }
  }
  return true;
}

// Exactly n bytes; "" if the connection ends or the deadline passes.
std::string receive_bytes(int fd, std::size_t n, double deadline) {
  std::string out(n, '\0');
  for (std::size_t got = 0; got < n;) {
    pollfd p{fd, POLLIN, 0};
    if (seconds() > deadline) return "";
    if (poll(&p, 1, 100) <= 0) continue;
    const ssize_t r = recv(fd, out.data() + got, n - got, MSG_DONTWAIT);
    if (r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR)) return "";
    if (r > 0) got += static_cast<std::size_t>(r);
  }
  return out;
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view text) {
  constexpr std::size_t kBlock = 64;
  std::string block = key.size() > kBlock ? sha256_bytes(key) : std::string(key);
  block.resize(kBlock, '\0');
  std::string inner = block, outer = block;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  return sha256_bytes(outer + sha256_bytes(inner + std::string(text)));
}

std::string job_key(const std::string& file) {
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  const std::string path = !file.empty() ? file : variable("REDCO_KEY_FILE");
  std::string key;
  if (!path.empty()) {
    struct stat st {};
    if (::stat(path.c_str(), &st) == 0 && (st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
      throw UsageError("[join] other users may read the key file {}. Forbid it: chmod 600 {}", path, path);
    key = without_blanks(read_file(path, 4096));
  } else {
    key = without_blanks(variable("REDCO_KEY"));
  }
  if (key.empty())
    throw UsageError(
        "[join] the job has no key, which all its processes need. Put one into a file (openssl rand -hex 32 > "
        "key; chmod 600 key) and pass --key-file, or set REDCO_KEY_FILE or REDCO_KEY");
  if (key.size() < kLeastKey)
    throw UsageError("[join] the key has {} bytes, expected at least {}", key.size(), kLeastKey);
  return key;
}

std::optional<Channel> Channel::open(Fd& socket, const std::string& key, Role role, double limit) {
  const double deadline = seconds() + limit;
  std::array<char, kDigest> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return std::nullopt;
  const std::string mine(random.data(), random.size());
  if (!send_bytes(socket.fd, mine, deadline)) return std::nullopt;
  const std::string theirs = receive_bytes(socket.fd, kDigest, deadline);
  if (theirs.empty() || theirs == mine) return std::nullopt;
  const bool host0 = role == Role::host0;
  const std::string both = host0 ? mine + theirs : theirs + mine;
  const char me = host0 ? '0' : 'm', other = host0 ? 'm' : '0';
  if (!send_bytes(socket.fd, hmac_sha256(key, std::string(1, me) + both), deadline)) return std::nullopt;
  const std::string proof = receive_bytes(socket.fd, kDigest, deadline);
  if (proof.empty() || !same_digest(proof, hmac_sha256(key, std::string(1, other) + both)))
    return std::nullopt;
  Channel c;
  c.fd_.fd = std::exchange(socket.fd, -1);
  c.session_ = hmac_sha256(key, "session" + both);
  c.me_ = me;
  c.other_ = other;
  return c;
}

Channel::Channel(Channel&& o) noexcept
    : session_(std::move(o.session_)),
      held_(std::move(o.held_)),
      me_(o.me_),
      other_(o.other_),
      sent_(o.sent_),
      received_(o.received_),
      forged_(o.forged_) {
  fd_.fd = std::exchange(o.fd_.fd, -1);
}

bool Channel::send(Kind kind, std::string_view body) {
  if (body.size() > kMostBody) return false;
  std::string signed_part = std::string(1, static_cast<char>(kind)) + std::string(body);
  const std::string code = hmac_sha256(session_, std::string(1, me_) + bytes_of(sent_++, 8) + signed_part);
  return send_bytes(fd_.fd, bytes_of(body.size(), 4) + code + signed_part, seconds() + kSendSeconds);
}

bool Channel::receive() {
  std::array<char, 65536> buffer;
  const ssize_t n = recv(fd_.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (n > 0) held_.append(buffer.data(), static_cast<std::size_t>(n));
  return !forged_;
}

std::optional<Channel::Frame> Channel::next() {
  if (forged_ || held_.size() < kHead) return std::nullopt;
  std::size_t size = 0;
  for (int i = 0; i < 4; ++i)
    size |= static_cast<std::size_t>(static_cast<unsigned char>(held_[static_cast<std::size_t>(i)]))
            << (8 * i);
  forged_ = size > kMostBody;
  if (forged_ || held_.size() < kHead + size) return std::nullopt;
  const std::string signed_part = held_.substr(4 + kDigest, 1 + size);
  const std::string code =
      hmac_sha256(session_, std::string(1, other_) + bytes_of(received_++, 8) + signed_part);
  forged_ = !same_digest(held_.substr(4, kDigest), code) ||
            static_cast<unsigned char>(signed_part[0]) > static_cast<unsigned char>(Kind::refused);
  if (forged_) return std::nullopt;
  Frame f{static_cast<Kind>(signed_part[0]), signed_part.substr(1)};
  held_.erase(0, kHead + size);
  return f;
}

}  // namespace redco
