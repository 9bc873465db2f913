#include "launch/keepers.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>

#include "base/error.h"
#include "base/kept_memory.h"
#include "base/process.h"
#include "base/timing.h"
#include "launch/child_process.h"
#include "launch/preflight.h"
#include "launch/resource_limits.h"
#include "launch/signal_pipe.h"

namespace redco {

namespace {

constexpr double kKeeperLooks = 0.5, kKeeperAgain = 5;  // s
constexpr double kKeeperEnd = 2;                        // s until SIGKILL
constexpr double kLeastSilence = 5, kMostSilence = 600;

struct KeeperProcess {
  pid_t pid = -1;
  std::unique_ptr<Pipe> beats;
  double next = 0;  // seconds() of the next start
};

}  // namespace

std::vector<std::vector<std::string>> keeper_commands(const LaunchRequest& request,
                                                      const std::vector<Host>& hosts, const LaunchPlan& plan,
                                                      const std::string& program,
                                                      const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> out;
  if (hosts.empty() && plan.hosts.size() > 1) {  // nodes of a SLURM allocation
    std::vector<std::string> names;
    for (const Host& h : plan.hosts) names.push_back(h.name);
    // --overlap: the step takes no cores and memory from the step of the ranks. A lost node does not end the
    // other keepers (--no-kill, --kill-on-bad-exit=0). All get the beats (--input=all).
    out.push_back({"srun", "--overlap", fmt::format("--nodes={}", names.size()),
                   fmt::format("--ntasks={}", names.size()), "--ntasks-per-node=1", "--cpus-per-task=1",
                   "--mem=0", "--mpi=none", "--no-kill", "--kill-on-bad-exit=0", "--input=all",
                   fmt::format("--nodelist={}", fmt::join(names, ",")), program});
    out.back().insert(out.back().end(), words.begin(), words.end());
    return out;
  }
  for (const Host& h : hosts) out.push_back(command_on_host(request, h.name, program, words));
  if (hosts.empty()) out.push_back(command_on_host(request, "localhost", program, words));
  return out;
}

Keepers::Keepers(const LaunchRequest& request, const std::vector<Host>& hosts, const LaunchPlan& plan,
                 const std::string& program, const std::string& key)
    : environment_(request.environment) {
  // srun takes them for requests, which contradict --mem.
  for (const char* name : {"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_MEM_PER_NODE"})
    environment_.erase(name);
  const double limit =
      request.fault_timeout > 0 ? std::max(request.fault_timeout, kLeastSilence) : kMostSilence;
  commands_ = keeper_commands(request, hosts, plan, program, {kKeepCommand, key, fmt::format("{:g}", limit)});
  allow_open_files(static_cast<i64>(commands_.size()) + plan.n_ranks + kOtherOpenFiles);
  thread_ = std::thread([this] { run(); });
}

Keepers::~Keepers() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

// One thread starts and ends all of them, because the system ends a child with the thread that started it.
void Keepers::run() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  Fd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::vector<KeeperProcess> keepers(commands_.size());
  std::unique_lock lock(mutex_);
  do {
    for (std::size_t i = 0; i < keepers.size(); ++i) {
      KeeperProcess& k = keepers[i];
      if (k.pid > 0 && ::waitpid(k.pid, nullptr, WNOHANG) == k.pid)
        k = {-1, nullptr, seconds() + kKeeperAgain};
      if (k.pid > 0 && ::write(k.beats->out.fd, ".", 1) < 0) continue;  // it has ended, or is behind
      if (k.pid > 0 || seconds() < k.next || commands_[i].empty()) continue;
      try {
        k.beats = std::make_unique<Pipe>();
        ::fcntl(k.beats->out.fd, F_SETFL, O_NONBLOCK);
        k.pid = start_process(commands_[i], environment_, k.beats->in.fd, nothing.fd, nothing.fd);
        k.beats->in.reset();
      } catch (const Error&) {  // the ranks report a host without a keeper
        k.next = seconds() + kKeeperAgain;
      }
    }
  } while (!wake_.wait_for(lock, std::chrono::duration<double>(kKeeperLooks), [&] { return ends_; }));
  for (const KeeperProcess& k : keepers)
    if (k.pid > 0) ::kill(-k.pid, SIGTERM);
  const double asked = seconds();
  for (KeeperProcess& k : keepers)
    while (k.pid > 0 && ::waitpid(k.pid, nullptr, WNOHANG) == 0) {
      if (seconds() - asked > kKeeperEnd) ::kill(-k.pid, SIGKILL);
      ::usleep(2000);
    }
}

int run_keeper(const std::string& key, double limit) {
  ::signal(SIGPIPE, SIG_IGN);
  const Keeper keeper(kept_key(key, host_name()));  // may wait; a signal then ends the process
  const SignalPipe signals;
  bool beats = false, ended = false;
  for (double heard = seconds(), wrote = 0; !beats || seconds() - heard < limit;) {
    pollfd p[] = {{signals.fd(), POLLIN, 0}, {ended ? -1 : 0, POLLIN, 0}};
    ::poll(p, 2, 1000);
    if (p[0].revents) break;
    if (p[1].revents && !read_some(0, ended).empty()) {
      beats = true;
      heard = seconds();
    }
    if (beats && ended) break;
    if (seconds() - wrote < 1) continue;
    wrote = seconds();
    // The lines go nowhere, but to write them fails when the connection has ended.
    if (::write(1, ".\n", 2) < 0 && errno != EINTR && errno != EAGAIN) break;
  }
  return 0;
}

}  // namespace redco
