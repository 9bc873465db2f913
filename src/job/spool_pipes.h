// Data that can be read only once: standard input and pipes among the data files.
#pragma once

#include "job/job_config.h"

namespace redco {

// Whether the path names standard input (-, /dev/stdin), another open file of this process (process
// substitution: /dev/fd/63), or a pipe.
bool is_pipe(const std::string& path);

// Replaces such paths in data.train, data.eval, their named lists and predict.input, if a command with this
// use reads them, by a file with the same contents in the folder of the data indexes (without one, in the
// user's cache). The process that reads the job does this, once: ranks get the job with the file's name. Logs
// the name. UsageError: no data.format, because a pipe has no name that tells it (predict.input: jsonl);
// standard input named twice, or a terminal. ContentsError: no bytes.
void spool_pipes(JobConfig& job, JobUse use);

}  // namespace redco
