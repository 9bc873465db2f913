// ResolvedJob: what a run is, decided once. Files, overrides and names of hub models are read by the
// launcher, or by the first rank where people start the ranks themselves; all ranks get the same bytes, and
// workdir and checkpoints keep the same text.
#pragma once

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
  // Every setting with its value, as YAML that load_settings() reads back: config.resolved.yaml.
  const std::string& yaml() const { return yaml_; }
  // Hash of yaml(), 32 hexadecimal digits.
  const std::string& hash() const { return hash_; }

  // The job and the places of its values as text of one line without blanks (the environment carries it to
  // ranks), and back. from_text(): ContentsError on anything that to_text() didn't make.
  std::string to_text() const;
  static ResolvedJob from_text(std::string_view text);

  // This job with keys that the training data decide of the model's config (name -> JSON text). Keys that the
  // job has stay as they are.
  ResolvedJob with_model_config(const std::map<std::string, std::string>& keys) const;
  // This job with the rows of a step as they are on its ranks (batch_sizes()), where the job leaves them
  // open.
  ResolvedJob with_global_batch_size(i64 rows) const;

 private:
  JobConfig job_;
  std::string yaml_, hash_;
};

}  // namespace redco
