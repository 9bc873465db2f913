// The `models:` section: models besides `model:`, by name. A pipeline's own: the frozen reference of DPO, the
// teacher of a distillation.
//
//   models:
//     reference: {path: runs/sft/checkpoints/last, frozen: true}
#pragma once

#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco {

// One entry.
struct NamedModelSettings {
  std::string name;
  bool frozen = true;
  ModelSettings model;
  std::vector<ShardingRuleSettings> sharding_rules;

  void visit(SettingsVisitor& v);
};

// The entries, in the order of their names. UsageError, with the place in the job file: a name that is no
// folder's name, unknown keys, values out of range, an entry without path, preset and arch.
std::vector<NamedModelSettings> named_models(const JobConfig& job);

// Adds the frozen model `reference` to a job whose pipeline compares with the model that the training begins
// with (PipelineInfo::reference), unless the job names one or trains adapters: a copy of `model:`.
void add_reference(JobConfig& job);

// Replaces paths in the section (config/paths.h, ids of the hub) by those of files. load_job() calls it once.
void expand_named_models(JobConfig& job);

// The job of a named model: `model:` and the sharding rules are those of the entry, without train.lora. What
// makes the objects of the job's model makes those of a named one from it.
JobConfig job_of_model(const JobConfig& job, const NamedModelSettings& named);

// Sets a path of an entry.
void set_named_path(JobConfig& job, const std::string& name, const std::string& path);

}  // namespace redco
