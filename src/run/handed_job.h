// The job that a process gets from the process that started it: from redco's launcher, or from a command that
// starts redco again. It is one variable of the environment.
#pragma once

#include <optional>
#include <string>

#include "job/resolved_job.h"

namespace redco {

// Holds text_to_hand().
constexpr const char* kJobVariable = "REDCO_JOB";

// The job as the value of kJobVariable. run() in the started process uses it instead of RunRequest::job.
// UsageError if it is too long for the environment.
std::string text_to_hand(const ResolvedJob& resolved);

// The value in this process's environment. Removes it, so that no child process inherits it.
std::optional<std::string> handed_job();

}  // namespace redco
