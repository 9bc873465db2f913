#include "launch/watch/end_daemon.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/timing.h"

namespace redco::watchdog {

void end_daemon(double patience) {
  const pid_t parent = getppid();
  std::string name;
  std::ifstream(fmt::format("/proc/{}/comm", parent)) >> name;
  if (name != "orted" && name != "prted") return;
  kill(parent, SIGTERM);
  // When the parent has ended, another process is the parent.
  for (const double began = seconds(); getppid() == parent && seconds() - began < patience;)
    poll(nullptr, 0, 50);  // ms
  if (getppid() == parent) kill(parent, SIGKILL);
}

}  // namespace redco::watchdog
