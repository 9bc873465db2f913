// Settings that changed since a checkpoint was saved, and the effect on the resumed run. Each setting
// declares its effect (OnResume in base/settings.h); docs/config.md lists it.
#pragma once

#include <string>
#include <vector>

#include "config/include.h"
#include "job/job_config.h"

namespace redco {

struct ResumeChange {
  std::string key;      // "train.learning_rate"; inside a model's config also "model.encoder.dropout"
  std::string was, is;  // as YAML; "not given" where a key of the model's config is absent
  OnResume meaning = OnResume::error;
  std::string remark;  // of the setting's on_resume(); "" if none
  std::string place;   // of the present value: "job.yaml:12:3"; "default" if not given
};

struct ResumeChanges {
  std::string saved_job;              // path of the saved job
  std::vector<ResumeChange> changed;  // all of them, in the order of docs/config.md
  std::vector<std::string> unknown;   // keys of the saved job that this version does not have
};

// Compares the job saved with a checkpoint (the text of dump_job(), named by its path) with `job`. REQUIRES
// that train.global_batch_size is set in both (batch_sizes()), because ~ differs from its value. Compares
// values, not texts: 3e-4 equals 0.0003. A setting that the saved job lacks had its default. Reads no file:
// two paths are equal if their texts are. Throws ContentsError if the saved text is not valid YAML.
ResumeChanges resume_changes(const YamlText& saved, const JobConfig& job);

// Throws one UsageError that lists all changes with OnResume::error, one per line, with their remedy.
// `checkpoint` is the checkpoint's folder.
void refuse_resume_changes(const ResumeChanges& changes, const std::string& checkpoint);

// The changes with OnResume::note, one line each ("train.learning_rate was 0.001, is 0.0003
// (job.yaml:12:3)"), and one line for all unknown keys.
std::vector<std::string> resume_notes(const ResumeChanges& changes);

}  // namespace redco
