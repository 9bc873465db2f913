#include "launch/capture.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/signals.h"
#include "base/timing.h"
#include "launch/child_process.h"

namespace redco {

namespace {

struct Captured {
  std::string out, err;
  int code = 0;         // as Finished::code
  std::string problem;  // "ended with status 3"; "" if all went well
};

Captured capture(const std::vector<std::string>& argv, const Environment& environment, double seconds,
                 i64 max_bytes) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  REDCO_CHECK(!argv.empty(), "no command");
  Pipe outs, errors;
  const pid_t pid = start_process(argv, environment, -1, outs.out.fd, errors.out.fd);
  outs.out.reset();
  errors.out.reset();
  Captured got;
  bool out_ended = false, err_ended = false, too_much = false;
  const auto began = Clock::now();
  while (!(out_ended && err_ended) && since(began) < seconds && !too_much) {
    std::array<pollfd, 2> fds{pollfd{out_ended ? -1 : outs.in.fd, POLLIN, 0},
                              pollfd{err_ended ? -1 : errors.in.fd, POLLIN, 0}};
    poll(fds.data(), fds.size(), 100);
    if (fds[0].revents) got.out += read_some(outs.in.fd, out_ended);
    if (fds[1].revents) got.err += read_some(errors.in.fd, err_ended);
    too_much = static_cast<i64>(got.out.size()) > max_bytes || static_cast<i64>(got.err.size()) > max_bytes;
  }
  const bool finished = out_ended && err_ended;
  int status = 0;
  if (!finished) kill(-pid, SIGTERM);
  const auto asked = Clock::now();
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (!finished && since(asked) > 2) kill(-pid, SIGKILL);
    usleep(2000);
  }
  got.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (too_much) {
    got.problem = fmt::format("wrote more than {} bytes", max_bytes);
  } else if (!finished) {
    got.problem = fmt::format("took longer than {:g} s", seconds);
  } else if (got.code != 0) {
    got.problem = fmt::format("ended with status {}", got.code);
  }
  return got;
}

// A command of run_all() that runs.
struct Running {
  std::size_t index;
  pid_t pid;
  Pipe out, err;
  double deadline;
  bool out_ended = false, err_ended = false;
};

[[noreturn]] void fail(const std::string& program, const std::string& problem, std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw Error(ExitCode::rank_failed, fmt::format("{} {}: {}", program, problem, text.substr(0, 2000)));
}

}  // namespace

std::string output_of(const std::vector<std::string>& argv, double seconds, i64 max_bytes) {
  Captured got = capture(argv, current_environment(), seconds, max_bytes);
  if (!got.problem.empty()) fail(argv[0], got.problem, got.err);
  return got.out;
}

Finished run_to_end(const std::vector<std::string>& argv, const Environment& environment, i64 max_bytes) {
  Captured got = capture(argv, environment, std::numeric_limits<double>::infinity(), max_bytes);
  return {got.code, std::move(got.out), std::move(got.err)};
}

std::vector<Answered> run_all(const std::vector<std::vector<std::string>>& commands,
                              const Environment& environment, double limit, i64 max_bytes) {
  constexpr std::size_t kAtOnce = 64;
  std::vector<Answered> out(commands.size());
  std::vector<std::unique_ptr<Running>> running;
  std::size_t next = 0;
  const auto start = [&](std::size_t i) {
    auto r = std::make_unique<Running>();
    r->index = i;
    out[i].began = wall_seconds();
    r->deadline = seconds() + limit;
    try {
      r->pid = start_process(commands[i], environment, -1, r->out.out.fd, r->err.out.fd);
    } catch (const Error& e) {
      out[i].code = 127;
      out[i].problem = e.what();
      return;
    }
    r->out.out.reset();
    r->err.out.reset();
    running.push_back(std::move(r));
  };
  // `problem`: why it is ended by force; "": it has ended.
  const auto finish = [&](Running& r, const std::string& problem) {
    Answered& a = out[r.index];
    int status = 0;
    if (!problem.empty()) kill(-r.pid, SIGKILL);
    while (waitpid(r.pid, &status, 0) < 0 && errno == EINTR) {
    }
    a.seconds = wall_seconds() - a.began;
    a.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    a.problem = problem.empty() && a.code != 0 ? fmt::format("ended with status {}", a.code) : problem;
  };
  while (next < commands.size() || !running.empty()) {
    while (next < commands.size() && running.size() < kAtOnce && !end_requested()) start(next++);
    if (end_requested())
      for (; next < commands.size(); ++next) out[next].problem = "was not asked";
    std::vector<pollfd> fds;
    for (const auto& r : running) {
      fds.push_back({r->out_ended ? -1 : r->out.in.fd, POLLIN, 0});
      fds.push_back({r->err_ended ? -1 : r->err.in.fd, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), 50);
    for (std::size_t k = 0; k < running.size(); ++k) {
      Running& r = *running[k];
      Answered& a = out[r.index];
      if (fds[2 * k].revents) a.out += read_some(r.out.in.fd, r.out_ended);
      if (fds[2 * k + 1].revents) a.err += read_some(r.err.in.fd, r.err_ended);
      const bool ended = r.out_ended && r.err_ended;
      const bool big =
          static_cast<i64>(a.out.size()) > max_bytes || static_cast<i64>(a.err.size()) > max_bytes;
      a.late = !ended && !big && seconds() > r.deadline;
      if (!ended && !big && !a.late && !end_requested()) continue;
      finish(r, ended    ? ""
                : big    ? fmt::format("wrote more than {} bytes", max_bytes)
                : a.late ? fmt::format("took longer than {:g} s", limit)
                         : "was ended by a signal to redco");
      r.pid = -1;
    }
    std::erase_if(running, [](const auto& r) { return r->pid < 0; });
  }
  return out;
}

Environment environment_of(const Mpirun& mpirun) {
  Environment all = current_environment();
  for (const std::string& name : mpirun.dropped) all.erase(name);
  for (const auto& [name, value] : mpirun.own_environment) all[name] = value;
  return all;
}

}  // namespace redco
