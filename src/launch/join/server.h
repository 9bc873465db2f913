// Process 0 of a job that is started without ssh: it waits for the other processes, and lets mpirun's launch
// agent (`redco agent HOST COMMAND`) run commands on their hosts. It has threads; it uses neither MPI nor
// tensors.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "launch/join/channel.h"
#include "launch/join/starter.h"

namespace redco {

// In the environment of mpirun: "PORT KEY" of the server's door for agents, on the loopback interface.
constexpr const char* kAgentVariable = "REDCO_AGENT";
// Exit status of an agent whose host has not joined, or has left.
constexpr int kNotJoined = 123;

class JoinServer {
 public:
  // Listens on place.port on all addresses. IoError: the port is in use.
  JoinServer(const JoinPlace& place, const std::string& key);
  // Tells the processes that have joined to end with `code`.
  ~JoinServer();
  JoinServer(const JoinServer&) = delete;
  JoinServer& operator=(const JoinServer&) = delete;

  // Waits until all processes have joined, and logs which are missing; the hosts in the order of their
  // numbers, this one first. Error(rank_failed) that names the missing numbers after `seconds`;
  // Error(interrupted): a signal was noted; UsageError: two hosts have one name.
  std::vector<std::string> wait_for_all(double seconds);
  std::string agent_variable() const;
  // The exit code for the other processes.
  void set_code(int code) { code_ = code; }
  int port() const { return port_; }

 private:
  struct Peer;
  void accept_on(int fd, bool agents);
  void serve_member(std::shared_ptr<Peer> peer);
  bool admit(const std::shared_ptr<Peer>& peer, const std::string& hello);
  void warn_once(const std::string& text);
  void serve_agent(std::shared_ptr<Peer> peer);
  std::shared_ptr<Peer> member_on(const std::string& host);

  const JoinPlace place_;
  const std::string key_, agent_key_;
  Fd door_, agent_door_;
  int port_ = 0, agent_port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> code_{0};
  std::mutex mutex_;  // guards the rest
  std::map<i64, std::shared_ptr<Peer>> members_;
  std::map<i64, std::shared_ptr<Peer>> agents_;  // by the number of their command
  std::set<std::string> warned_;
  i64 commands_ = 0;
  int threads_ = 0;
  std::thread accepts_, accepts_agents_;
};

// `redco agent HOST COMMAND`: runs the command on the host and returns its status. For mpirun and the
// preflight.
int run_agent(const std::string& host, const std::string& command);

}  // namespace redco
