// The command hosts: the preflight of a job's hosts without starting ranks.
#pragma once

#include <string>

#include "job/job_config.h"
#include "launch/host_report.h"

namespace redco {

struct HostsCheck {
  std::string text;  // the table and the findings, or one JSON object; ends with a line break
  bool ok = true;    // all hosts can run the ranks
};
// UsageError: the job names no hosts. With the settings of a training, memory is compared with the plan.
HostsCheck check_hosts(const JobConfig& job, const std::string& version, bool json);

// The report of this host, `redco hosts --here`.
HostReport report_here(const HostQuestions& questions, const std::string& version);

}  // namespace redco
