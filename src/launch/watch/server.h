// The server of the watchdog: receives each rank's heartbeats, finds the rank that holds up the job, and can
// end all ranks. It runs in its own thread and uses neither MPI nor tensors. It trusts no input: it closes a
// connection without the key, and lines have a bounded length.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launch/watch/judge.h"
#include "launch/watch/wire.h"

namespace redco {

class WatchServer;

struct WatchOptions {
  int n_ranks = 1;
  double timeout = 0;              // fault.timeout, s; 0: no deadlines
  bool loopback = true;            // all ranks run on this host
  bool in_rank = false;            // the server is in the first rank, not in a launcher
  std::vector<std::string> hosts;  // expected host of each rank, until the rank reports it; may be shorter
  std::function<void(WatchServer&, const Outcome& verdict)> act;  // the server's thread calls it once
};

class WatchServer {
 public:
  // Starts to listen. IoError.
  explicit WatchServer(const WatchOptions& options);
  // Closes all connections: ranks that have not sent `bye` end.
  ~WatchServer();
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  const WatchAddress& address() const { return address_; }
  // judge()'s outcome, once there is one.
  std::optional<Outcome> verdict() const;
  // Orders all ranks to end immediately, also ranks that connect later.
  void end_all();
  // Asks all ranks to save and end like after a signal (base/signals.h), also ranks that connect later.
  void ask_to_end(int signal);
  // Nobody reads the job's messages any more: the ranks note it in their log file.
  void note_unread_messages();
  // Ends the watching: ranks continue without a server.
  void free_all();
  // How many ranks are connected.
  int connected() const;
  // Whether all ranks have reported.
  bool all_started() const;
  // Whether a rank has reported that it ends with this code.
  bool ended_with(int code) const;
  // The last reports of all ranks.
  std::vector<RankReport> reports() const;

 private:
  struct Connection;
  void serve();
  void greet(Connection& c, const std::string& line);
  void hear(Connection& c, const std::string& line);
  void order(const char* what);
  void wake() const;

  WatchOptions options_;
  WatchAddress address_;
  std::vector<Listener> listeners_;
  int wake_[2] = {-1, -1};
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;  // guards the rest
  AwakeClock clock_;
  double now_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<RankReport> ranks_;
  std::vector<double> heard_at_;
  std::vector<bool> has_reported_;  // a beat has arrived
  std::vector<int> codes_;
  std::optional<Outcome> verdict_;
  bool ending_ = false;
  int asked_ = 0;          // the signal of ask_to_end(); 0: none
  bool unread_ = false;    // see note_unread_messages()
  double accepts_at_ = 0;  // no connection is accepted before, because descriptors are lacking

  std::thread thread_;
};

}  // namespace redco
