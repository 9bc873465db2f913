// The check of all hosts of a job before ranks start. All hosts are asked at the same time, each with its own
// deadline, in the way in which the ranks start. Each report is compared with this host's build and with what
// the job needs. A failure is one line with host and remedy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/choose_launcher.h"
#include "launch/host_report.h"
#include "launch/start_failure.h"

namespace redco {

// What the job needs from its hosts, and this host's own build.
struct PreflightNeeds {
  std::vector<Host> hosts;         // slots: ranks on the host
  std::string workdir;             // must be shared; "": none
  std::vector<std::string> files;  // must be readable on all hosts: the model
  std::vector<std::string>
      data;  // must be readable on the first host, whose first rank reads and indexes them
  i64 n_ranks = 1;
  i64 memory_per_rank = 0;                     // bytes; 0: not known
  int threads_per_rank = 0;                    // 0: auto
  std::string version, program, library, mpi;  // of this host (HostReport)
};

struct HostAnswer {
  std::string host;  // the name in the job
  std::string way;   // "here", "ssh", "redco agent"
  std::optional<HostReport> report;
  StartFailure failure;  // without a report, if the host was not reached
  std::string problem;   // without a report: one line with the remedy
  double seconds = 0;    // until the answer
  double clock = 0;      // s that the host's clock is ahead of this one's
};

struct HostFinding {
  std::string host, text;  // text: what is wrong and what to do
  bool fails = true;       // false: worth a line, but ranks can run
};

// Asks the hosts of the needs. Writes a file into the workdir for the time of the questions; the workdir is
// made if it does not exist, and removed again if it then stays empty. `seconds`: the deadline of each host.
std::vector<HostAnswer> ask_hosts(const LaunchRequest& request, const PreflightNeeds& needs,
                                  const std::string& program, double seconds);

// What is wrong, in the order of the hosts. Pure.
std::vector<HostFinding> findings(const PreflightNeeds& needs, const std::vector<HostAnswer>& answers);

// Lines for `redco hosts`: a table, and the findings below it. And the same as JSON.
std::string preflight_text(const PreflightNeeds& needs, const std::vector<HostAnswer>& answers);
std::string preflight_json(const PreflightNeeds& needs, const std::vector<HostAnswer>& answers);

// The command that runs `program` with these words on a host, in the way in which the ranks start: here by a
// shell, elsewhere by the agent. Empty if there is no agent.
std::vector<std::string> command_on_host(const LaunchRequest& request, const std::string& host,
                                         const std::string& program, const std::vector<std::string>& words);

// The command that starts a program on another host: the user's agent (OMPI_MCA_plm_rsh_agent) or ssh, with
// its arguments, without the host. Empty if PATH has no such program.
std::vector<std::string> agent_words(const LaunchRequest& request);

}  // namespace redco
