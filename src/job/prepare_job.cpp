#include "job/prepare_job.h"

#include "job/spool_pipes.h"

namespace redco {

void prepare_job(JobConfig& job, JobUse use, const MoreProblems& more, JobFiles files) {
  spool_pipes(job, use);
  expand_data_folders(job, use);
  check_job(job, use, more);
  if (files == JobFiles::must_exist) check_files(job, use, more);
}

}  // namespace redco
