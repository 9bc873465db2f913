// The processes that keep the buddy checkpoints of a training on its hosts: `redco keep KEY SECONDS`, one on
// each host, started in the way in which the preflight asks it, or by one step of srun on the nodes of a
// SLURM allocation. A keeper removes them and ends when its connection to this process ends, or has brought
// nothing for SECONDS.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launch/choose_launcher.h"

namespace redco {

inline constexpr const char* kKeepCommand = "keep";

// The commands that start a program on each of the hosts; an empty one where there is no way to.
// hosts: of the job; empty: the nodes where `plan` has ranks.
std::vector<std::vector<std::string>> keeper_commands(const LaunchRequest& request,
                                                      const std::vector<Host>& hosts, const LaunchPlan& plan,
                                                      const std::string& program,
                                                      const std::vector<std::string>& words);

// Starts the keepers, and starts those again that end. Its thread ends them with the object.
class Keepers {
 public:
  Keepers(const LaunchRequest& request, const std::vector<Host>& hosts, const LaunchPlan& plan,
          const std::string& program, const std::string& key);
  ~Keepers();
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;

 private:
  void run();
  std::vector<std::vector<std::string>> commands_;
  Environment environment_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

// The keeper: until a signal, until its input ends or is silent for `limit` seconds, or until nobody reads
// its output any more. An input that ends before the first byte has no beats (launch/join).
int run_keeper(const std::string& key, double limit);

}  // namespace redco
