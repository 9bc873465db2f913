// The checks between reading a job and using it, in their order.
#pragma once

#include "job/job_config.h"

namespace redco {

enum class JobFiles : std::uint8_t { must_exist, unchecked };

// spool_pipes(), expand_data_folders(), check_job(), check_files(). Throws their UsageErrors.
void prepare_job(JobConfig& job, JobUse use, const MoreProblems& more = nullptr,
                 JobFiles files = JobFiles::must_exist);

}  // namespace redco
