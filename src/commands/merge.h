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
  std::string checkpoint;  // of the workdir: last, best-..., or a folder; "": model.adapter's
  std::string output;      // a folder that doesn't exist yet, or an empty one
  std::string dtype;       // fp32, bf16; "": that of the base's weights
};
struct MergeRequest {
  JobConfig job;  // model.path and model.adapter, or a workdir with checkpoints
  MergeOptions options;
};

// Merges on the current context, each rank its own part; computes logits of some tokens with the adapter and
// with what was written, and publishes the folder only where they agree. -> exit code: check_failed where
// they don't. Collective. UsageError: no adapter, no base, the output exists; ContentsErrors as for reading
// both.
int merge(const MergeRequest& request);
// The same on the job's ranks; errors are printed. Without options.checkpoint it is `last` where the job has
// a workdir and no adapter.
int run_merge(const RunRequest& request, const MergeOptions& options);

// The job that merges the adapter in `folder` (an adapter's, or a workdir with checkpoints); `base`: "" is
// the one that the adapter names.
JobConfig merge_job(const std::string& folder, const std::string& base,
                    const std::vector<std::string>& overrides);

}  // namespace redco
