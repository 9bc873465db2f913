// ResolvedJob: the complete settings of a run. The launcher reads files, overrides, paths and names of hub
// models once; if ranks are started by hand, the first rank does. All ranks get the same bytes. Workdir and
// checkpoints keep the same text.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "job/job_config.h"

namespace redco {

// Immutable.
class ResolvedJob {
 public:
  // A loaded and checked job.
  explicit ResolvedJob(JobConfig job);

  const JobConfig& job() const { return job_; }
  // Every setting with its value, as YAML that load_settings() reads back, for files: config.resolved.yaml.
  // Values of parallel.environment may be secret: only their names are in it.
  const std::string& yaml() const { return yaml_; }
  // Hash of all settings and values, 32 hexadecimal digits.
  const std::string& hash() const { return hash_; }

  // The job and the places of its values as one line without blanks, for the environment of the ranks, and
  // back. from_text() throws ContentsError for any text that to_text() did not make.
  std::string to_text() const;
  static ResolvedJob from_text(std::string_view text);

  // This job with keys of the model's config that follow from the training data (name -> JSON text). Keys of
  // the job are not changed.
  ResolvedJob with_model_config(const std::map<std::string, std::string>& keys) const;
  // This job with global_batch_size set, for jobs that do not give it: batch_sizes() of the actual ranks.
  ResolvedJob with_global_batch_size(i64 rows) const;
  // This job with changes that the launcher makes for another start.
  ResolvedJob with(const std::function<void(JobConfig&)>& change) const;

 private:
  JobConfig job_;
  std::string text_, yaml_, hash_;  // text_: yaml() with all values
};

}  // namespace redco
