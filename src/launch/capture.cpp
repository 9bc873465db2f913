#include "launch/capture.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <limits>

#include "base/error.h"
#include "launch/child_process.h"
#include "launch/job_end.h"
#include "launch/mpirun_output.h"

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

std::string output_under_mpirun(const Mpirun& mpirun, double seconds, i64 max_bytes) {
  Captured got = capture(mpirun.argv(), environment_of(mpirun), seconds, max_bytes);
  if (got.problem.empty()) return got.out;
  MpirunOutput output;
  const std::string ranks = output.feed(got.err) + output.flush();
  if (output.failure())
    if (const std::string message = outcome_message(job_outcome(got.code << 8, output, {})); !message.empty())
      throw Error(ExitCode::rank_failed, message);
  fail(mpirun.path, got.problem, ranks.empty() ? "no message" : ranks);
}

Environment environment_of(const Mpirun& mpirun) {
  Environment all = current_environment();
  for (const std::string& name : mpirun.dropped) all.erase(name);
  for (const auto& [name, value] : mpirun.own_environment) all[name] = value;
  return all;
}

}  // namespace redco
