// What changed in a job since a checkpoint was saved, and what that means for the run that resumes. Each
// setting declares it (OnResume in base/settings.h); docs/config.md lists it.
#pragma once

#include <string>
#include <vector>

#include "config/yaml.h"
#include "job/job_config.h"

namespace redco {

struct ResumeChange {
  std::string key;      // "train.learning_rate"; inside a model's config also "model.encoder.dropout"
  std::string was, is;  // as YAML; "not given" where a key of the model's config is absent
  OnResume meaning = OnResume::error;
  std::string remark;  // what the setting's declaration adds; "" is nothing
  std::string place;   // of the value now: "job.yaml:12:3"; "default" where not given
};

struct ResumeChanges {
  std::string saved_job;              // the name of the saved job: its path
  std::vector<ResumeChange> changed;  // in the order of docs/config.md, whatever they mean
  std::vector<std::string> unknown;   // keys of the saved job that this version doesn't read
};

// Compares the job saved with a checkpoint (the text of dump_job(), named by its path) with `job`. REQUIRES
// both with train.global_batch_size filled in (batch_sizes()): ~ and its value are different. Values are
// compared, not texts: 3e-4 equals 0.0003. A setting that the saved job lacks had its default. Touches no
// file: two paths are equal if their texts are. Throws ContentsError if the saved text can't be read as YAML.
ResumeChanges resume_changes(const YamlText& saved, const JobConfig& job);

// Throws one UsageError that names all changes with OnResume::error, one a line, and what to do.
// `checkpoint` is the checkpoint's folder.
void refuse_resume_changes(const ResumeChanges& changes, const std::string& checkpoint);

// The changes with OnResume::note, one line each ("train.learning_rate was 0.001, is 0.0003
// (job.yaml:12:3)"), and one line for all unknown keys.
std::vector<std::string> resume_notes(const ResumeChanges& changes);

}  // namespace redco
