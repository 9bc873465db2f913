// merge: W + scale * B A of every adapted layer into a Hugging Face folder of its own, which needs no adapter
// any more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job_config.h"
#include "run/run.h"

namespace redco {

struct MergeOptions {
  std::string output;  // a folder that doesn't exist yet, or an empty one
  std::string dtype;   // fp32, bf16; "": that of the base's weights
};
struct MergeRequest {
  JobConfig job;  // of trained_job()
  MergeOptions options;
};

// Merges on the current context, each rank its own part; computes logits of some tokens with the adapter and
// with what was written, and publishes the folder only where they agree. -> exit code: check_failed where
// they don't. Collective. UsageError: no adapter, no base, the output exists; ContentsErrors as for reading
// both.
int merge(const MergeRequest& request);
// The same on the job's ranks, with the job's checkpoint or model.adapter; errors are printed.
int run_merge(const RunRequest& request, const MergeOptions& options);

// The job that merges the adapter in `folder` (an adapter's, or a workdir with checkpoints); `base`: "" means
// the one that the adapter names.
JobConfig merge_job(const std::string& folder, const std::string& base,
                    const std::vector<std::string>& overrides);

}  // namespace redco
