// A job that uses a trained checkpoint: the given job (file and overrides) merged with the job that the
// checkpoint holds. Each setting declares whose value counts (DecidedBy in base/settings.h); docs/config.md
// lists it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/include.h"
#include "job/job_config.h"

namespace redco {

// A given value of a setting that the checkpoint decides, and the checkpoint's other value.
struct Contradiction {
  std::string key;           // "model.tokenizer"; inside a model's config also "model.encoder.hidden_size"
  std::string given, saved;  // as YAML
  std::string place;         // of the given value: "job.yaml:3:5", "override 'model.tokenizer=bytes'"
  bool is_override = false;
};

struct CheckpointJob {
  JobConfig job;
  std::vector<Contradiction> contradictions;  // in the order of docs/config.md
  std::vector<std::string> unknown;           // keys of the saved job that this version doesn't read
};

// Facts of the checkpoint beyond its job; each function may be empty.
struct CheckpointFacts {
  // Whether a given path means the files that the checkpoint holds. `saved`: the path in the saved job;
  // nullopt where it names none. Without this function paths are compared as texts.
  std::function<bool(const std::string& key, const std::string& given,
                     const std::optional<std::string>& saved)>
      same_files;
  // The JSON text of a key of the checkpoint's config.json; "" where it has none.
  std::function<std::string(const std::string& key)> config;
};

// Merges `given` with the job saved in a checkpoint (the text of dump_job(), named by its path). Only given
// keys are compared: a default contradicts nothing, nor does a path that is null. Inherited values have the
// saved job's path as their origin. Throws ContentsError if the saved text can't be read as YAML.
CheckpointJob merge_checkpoint_job(const JobConfig& given, const YamlText& saved,
                                   const CheckpointFacts& facts = {});

// Throws one UsageError that names all contradicting overrides, and what to do. `checkpoint` is its folder.
void refuse_contradicting_overrides(const CheckpointJob& merged, const std::string& checkpoint);

// The line about values of job files that the checkpoint replaces; "" if there are none.
std::string ignored_values(const CheckpointJob& merged, const std::string& checkpoint);

}  // namespace redco
