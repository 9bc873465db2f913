// What the watchdog's client and server share: the address, sockets, lines, a clock.
//
// The protocol is lines of text over TCP. A client says
//   redco-watch CLIENT_KEY RANK PID HOST      first
//   beat STATE STILL_MS STEP WAITS WAITS_FOR PHASE     words without spaces; answered by `alive`
//   bye CODE                                  before it ends
// and the server
//   welcome SERVER_KEY                        to a right first line; other connections are closed
//   alive                                     to each beat: a client sends the next beat only after that
//   end                                       the process is to end now, with code 5
//   free                                      nobody watches any more; the process goes on
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// In the environment of ranks: the text of a WatchAddress. It has keys, so it is not for command lines.
constexpr const char* kWatchVariable = "REDCO_WATCH";

struct WatchAddress {
  std::string client_key, server_key;  // each side proves itself by its key
  double timeout = 0;                  // fault.timeout, s; 0: no deadlines
  // The server is in a rank: it must answer within the timeout. A launcher may be stopped for a while.
  bool in_rank = false;
  std::vector<std::string> endpoints;  // "10.0.0.1:40000", "[fd00::1]:40001": the same server
};
std::string text_of(const WatchAddress& a);
std::optional<WatchAddress> parse_watch_address(const std::string& text);  // none: not such a text

// 32 hexadecimal digits from the system's generator. IoError.
std::string random_key();

// A socket that listens: of 127.0.0.1 only, or of all of this host's addresses that others may reach.
struct Listener {
  int fd = -1;
  std::vector<std::string> endpoints;
};
// One for each protocol, IPv4 and IPv6, that this host has. IoError when there is none.
std::vector<Listener> listen_on(bool loopback);

// A nonblocking socket that connects to an endpoint; -1 when that fails at once.
int connect_to(const std::string& endpoint);

// A connection to a host that is cut off ends within about `timeout` seconds (0: the system's own limits).
void limit_silence(int fd, double timeout);

// Reads what has come and takes whole lines from it.
class LineReceiver {
 public:
  enum class Got : std::uint8_t { nothing, closed, failed };
  // Appends whole lines to `lines`. failed: an error of the network, or a line that no peer of ours sends.
  Got receive(int fd, std::vector<std::string>& lines);

 private:
  std::string held_;
};
// Sends a line whole or not at all; false when it can't.
bool send_line(int fd, std::string_view line);

// Seconds that this process was awake: a gap between two calls counts as `most` at the longest, so that a
// process that was stopped for a while does not believe that all others were silent.
class AwakeClock {
 public:
  explicit AwakeClock(double most);
  double now();

 private:
  double most_, last_, sum_ = 0;
};

}  // namespace redco
