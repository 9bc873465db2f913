#include "launch/job_end.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/process.h"
#include "launch/resource_limits.h"

namespace redco {

namespace {

// The codes of redco's own ends. Any other code comes from exit() in a library.
bool is_ours(int code) {
  return (code >= 0 && code <= static_cast<int>(ExitCode::interrupted)) ||
         code == static_cast<int>(ExitCode::bug);
}

// mpirun ends with status 1 when a rank ends with code 1, and also when a signal ends mpirun itself.
bool ended_by_signal(int status, const std::optional<MpirunOutput::Failure>& failure, const RankEnds& ranks) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 1 && !failure && !ranks.said_code_1;
}

int code_of(int status, const std::optional<MpirunOutput::Failure>& failure, const RankEnds& ranks) {
  using Kind = MpirunOutput::Failure::Kind;
  const int rank_failed = static_cast<int>(ExitCode::rank_failed);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 0) return 0;
  if (ended_by_signal(status, failure, ranks)) return rank_failed;
  if (failure && failure->kind != Kind::exit_code) return rank_failed;
  if (failure && !is_ours(code)) return rank_failed;
  return code >= 128 ? rank_failed : code;  // 128 + signal, 205: lost a host, 255: no start
}

std::string message_of(int status, const MpirunOutput& output, const RankEnds& ranks) {
  using Kind = MpirunOutput::Failure::Kind;
  const auto& failure = output.failure();
  if (WIFSIGNALED(status))
    return fmt::format("mpirun was killed by signal {} ({}); all ranks have ended", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  if (ended_by_signal(status, failure, ranks))
    return "mpirun ended before its ranks, as it does after a signal; all ranks have ended";
  // mpirun writes the same text for a host that it cannot reach and for a host that crashes later.
  if (failure && failure->kind == Kind::no_start && ranks.all_started)
    return "the connection to a host was lost; all ranks have ended";
  if (std::string message = output.message(); !message.empty()) return message;
  // Open MPI 4.1.4 sometimes omits which rank was killed; its status still holds the signal.
  if (const int n = WEXITSTATUS(status) - 128; n > 0 && n < 65)
    return fmt::format("a rank was killed by signal {} ({}); all ranks have ended", n, strsignal(n));
  if (failure && failure->kind == Kind::exit_code && !is_ours(failure->number))
    return fmt::format("rank {} ended with code {} without a message; all ranks have ended", failure->rank,
                       failure->number);
  return {};
}

}  // namespace

JobEnd job_end(int status, const MpirunOutput& output, const RankEnds& ranks) {
  return {code_of(status, output.failure(), ranks), message_of(status, output, ranks)};
}

bool ran_out_of_memory(int status, const std::optional<MpirunOutput::Failure>& failure, i64 kills_before,
                       const std::string& root) {
  const auto brief = [](const std::string& host) { return host.substr(0, host.find('.')); };
  const bool killed = failure ? failure->kind == MpirunOutput::Failure::Kind::signal &&
                                    failure->number == SIGKILL && brief(failure->host) == brief(host_name())
                              : WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL;
  return killed && cgroup_oom_kills(root) > kills_before;
}

}  // namespace redco
