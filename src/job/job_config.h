// The settings of a job: all sections of a job file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "data/data_settings.h"
#include "job/fault_settings.h"
#include "models/model_settings.h"
#include "pipeline/algorithm_sections.h"
#include "plan/plan_settings.h"
#include "shard/layout.h"
#include "shard/parallel_settings.h"
#include "train/predict_settings.h"
#include "train/train_settings.h"

namespace redco {

// The `settings:` section: settings of a custom pipeline, with its own names.
struct OwnSettings {
  std::map<std::string, std::string> values;  // key -> JSON text

  void visit(SettingsVisitor& v) {
    v.rest(values, "setting of a user's pipeline; the pipeline checks the value");
  }
  std::string json() const;  // one object
};

// The `models:` section; job/named_models.h reads the entries.
struct NamedModelsSettings {
  std::map<std::string, std::string> values;  // name -> JSON text

  void visit(SettingsVisitor& v) {
    v.rest(values,
           "a model besides `model`, under a name that the pipeline asks for: the keys of `model`, frozen "
           "(true: not trained and not saved; the default) and sharding_rules. E.g. reference: {path: "
           "runs/sft/checkpoints/last}")
        .on_resume(OnResume::free);
  }
};

struct JobConfig : AlgorithmSections {
  std::string pipeline = "lm";
  std::vector<std::string> plugins;
  ModelSettings model;
  NamedModelsSettings models;
  DataSettings data;
  ParallelSettings parallel;
  TrainSettings train;
  EvalSettings eval;
  CheckpointSettings checkpoint;
  PredictSettings predict;
  OwnSettings settings;
  PlanSettings plan;
  FaultSettings fault;
  std::optional<std::string> workdir;

  // The place of each given value; not a setting.
  Origins origins;

  void visit(SettingsVisitor& v);
};

// The use of a job. Each use needs other settings.
enum class JobUse { validate, plan, train, evaluate, predict, chat, merge, data, bench, verify };

// Problems that only other modules find, e.g. those of the model's keys. load_job(), check_job() and
// check_files() call it if they find problems, so that one error lists all of them.
using MoreProblems = std::function<std::vector<std::string>(const JobConfig&)>;

// Reads the files, where later ones win over earlier ones, then the overrides "key=value". The list of files
// may be empty. Expands paths (config/paths.h). Throws UsageError with up to 20 problems, one per line.
// Checks each value on its own; check_job() checks their combination. Replaces models of the hub (ids, cache
// folders) by the folders of their files (ckpt/hub.h). Calls load_plugins().
JobConfig load_job(const std::vector<std::string>& files, const std::vector<std::string>& overrides,
                   const MoreProblems& more = nullptr);

// Loads the shared objects of the job (pipeline/plugin.h): those of `plugins`, and the pipeline's if it
// exists. Their model families are then known to this process. UsageError: one cannot be loaded.
void load_plugins(const JobConfig& job);
// The paths of those shared objects.
std::vector<std::string> shared_objects(const JobConfig& job);
// The same with the pipeline's Python file: all code of the user that the job names.
std::vector<std::string> user_code_files(const JobConfig& job);

// Replaces the folders among the data files by the files in them (data/index/data_folders.h). If the pipeline
// may read folders of images, a folder stays if it has subfolders or no data file. Logs the number of files
// if a command with this use reads them. Call it before check_job(), which depends on the format. Throws
// UsageError with all problems, each with its place: a folder without data files or with several formats.
void expand_data_folders(JobConfig& job, JobUse use);

// Checks combinations of values: keys that exclude or require each other, ranks and shards, batch sizes and
// replicas. Reads no file. Throws UsageError with all problems, one per line, each with the places of its
// values.
void check_job(const JobConfig& job, JobUse use, const MoreProblems& more = nullptr);

// Checks that the files exist which a command with this use reads: data of built-in pipelines, prompts,
// hostfile. Throws UsageError with all problems, one per line, each with its key and place.
void check_files(const JobConfig& job, JobUse use, const MoreProblems& more = nullptr);

// The folder of the data indexes: data.cache, else the folder cache in workdir; nullopt if the job has
// neither.
std::optional<std::string> cache_folder(const JobConfig& job);

// The number of ranks: n_ranks if given, else the sum of the slots in parallel.hosts, else n_model_shards.
// None if only a hostfile gives it. The launcher checks the ranks that it finds in a hostfile or a SLURM
// allocation by the same rule (shard/mesh_of.h).
std::optional<i64> declared_ranks(const JobConfig& job);

// The mesh of the job on this number of ranks. UsageError of shard/mesh_of.h with the places of the values;
// `counted`: what gave n_ranks if the job does not.
Mesh mesh_of(const JobConfig& job, i64 n_ranks, const std::string& counted = "the slots of the hosts");

// The batch sizes for a given dp. A step has `accumulation` micro-batches of at most dp x per_device rows.
struct BatchSizes {
  i64 global = 0, per_device = 0, accumulation = 0;
  std::string assumed;  // a sentence about assumed sizes; "" if none was assumed
};

// per_device is at most global / dp, rounded up, and has this value if it is not given. A missing global size
// is per_device x dp. If both are missing, each replica gets one row. Throws UsageError if dp >
// global_batch_size (a replica would get no row) or per_device_batch_size > global_batch_size.
BatchSizes batch_sizes(const JobConfig& job, i64 dp);

// Texts for the commands `schema` and `validate`, and for the documentation.
std::string dump_job(const JobConfig& job);               // config.resolved.yaml
std::string job_schema();                                 // JSON Schema, draft 2020-12
std::string job_reference();                              // docs/config.md
std::string job_help(const std::string& section_or_key);  // "" is everything

// Keys that an override can set: "train.seed".
std::vector<std::string> job_keys();

// Shell completions of an incomplete override, one line "text\thelp" each, and ":files" if a path may follow.
std::string complete_job_override(const std::string& word);

}  // namespace redco
