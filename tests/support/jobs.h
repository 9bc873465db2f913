// Jobs for tests, from the text of a job file that does not exist.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "config/bind.h"
#include "job/job_config.h"

namespace redco::test {

// Places in messages name "job.yaml".
inline JobConfig job_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  JobConfig job;
  job.origins = load_settings(settings_of(job), {{"job.yaml", text}}, overrides);
  return job;
}

}  // namespace redco::test
