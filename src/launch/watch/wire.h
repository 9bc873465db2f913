// Shared by the watchdog's client and server: the address, sockets, lines, a clock.
//
// The protocol is lines of text over TCP. A client sends
//   redco-watch CLIENT_KEY RANK PID HOST      its first line
//   beat STATE STILL_MS STEP WAITS WAITS_FOR PHASE     words without spaces; answered by `alive`
//   bye CODE                                  before it ends
// and the server sends
//   welcome SERVER_KEY                        answers a valid first line; other connections are closed
//   alive                                     answers a beat: a client sends the next beat only after it
//   stop SIGNAL                               asks the process to save and end, as this signal does
//   unread                                    nobody reads the job's messages: the log file gets a line
//   end                                       the process must end now, with code 5
//   free                                      the watching ends; the process continues
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// In the environment of ranks: the text of a WatchAddress. It holds keys, so it must not appear in command
// lines.
constexpr const char* kWatchVariable = "REDCO_WATCH";

struct WatchAddress {
  std::string client_key, server_key;  // each side proves itself by its key
  double timeout = 0;                  // fault.timeout, s; 0: no deadlines
  // The server is in a rank and must answer within the timeout. (A launcher may be stopped for a while.)
  bool in_rank = false;
  std::vector<std::string> endpoints;  // "10.0.0.1:40000", "[fd00::1]:40001": the same server
};
std::string text_of(const WatchAddress& a);
std::optional<WatchAddress> parse_watch_address(const std::string& text);  // nullopt: malformed

// 32 hexadecimal digits from the system's generator. IoError.
std::string random_key();

// A listening socket: on 127.0.0.1 only, or on all addresses of this host that other hosts may reach.
struct Listener {
  int fd = -1;
  std::vector<std::string> endpoints;
};
// One socket for each of IPv4 and IPv6 that this host has. IoError when it has none.
std::vector<Listener> listen_on(bool loopback);

// A nonblocking socket connecting to an endpoint; -1 if it fails immediately.
int connect_to(const std::string& endpoint);

// Sets TCP's limits so that a connection to an unreachable host fails within about `timeout` seconds (0: the
// system's limits).
void limit_silence(int fd, double timeout);

// Receives bytes and splits them into lines.
class LineReceiver {
 public:
  enum class Got : std::uint8_t { nothing, closed, failed };
  // Appends the complete lines to `lines`. failed: a network error, or a line that is too long.
  Got receive(int fd, std::vector<std::string>& lines);

 private:
  std::string held_;
};
// Sends a whole line; false if it cannot be sent immediately.
bool send_line(int fd, std::string_view line);

// Counts the seconds that this process was running: a gap between two calls counts as at most `most` seconds.
// Otherwise a process that was stopped for a while would find all others silent.
class AwakeClock {
 public:
  explicit AwakeClock(double most);
  double now();

 private:
  double most_, last_, sum_ = 0;
};

}  // namespace redco
