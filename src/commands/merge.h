// The command merge: writes W + scale * B A of every adapted layer into a plain Hugging Face folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job_config.h"
#include "run/run.h"

namespace redco {

struct MergeOptions {
  std::string output;  // a folder that doesn't exist, or an empty one
  std::string dtype;   // fp32, bf16; "" means the type of the base's weights
};
struct MergeRequest {
  JobConfig job;  // of trained_job()
  MergeOptions options;
};

// Merges on the current context; each rank merges its own part. Computes logits of a few tokens with the
// adapter and with the merged weights, and publishes the folder only if they agree. Returns the exit code:
// check_failed if they differ. Collective. UsageError: no adapter, no base, the output exists. ContentsError:
// the weights can't be read.
int merge(const MergeRequest& request);
// The same on the job's ranks, with the job's checkpoint or model.adapter; errors are printed.
int run_merge(const RunRequest& request, const MergeOptions& options);

// The job that merges the adapter in `folder` (an adapter's, or a workdir with checkpoints); `base`: "" means
// the one that the adapter names.
JobConfig merge_job(const std::string& folder, const std::string& base,
                    const std::vector<std::string>& overrides);

}  // namespace redco
