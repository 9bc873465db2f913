// The whole job: what one YAML file and its overrides say.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "data/data_settings.h"
#include "job/fault_settings.h"
#include "models/model_settings.h"
#include "plan/plan_settings.h"
#include "shard/parallel_settings.h"
#include "train/algorithm_settings.h"
#include "train/predict_settings.h"
#include "train/train_settings.h"

namespace redco {

// The `settings:` section: what a user's pipeline asks for, under names of its own.
struct OwnSettings {
  std::map<std::string, std::string> values;  // key -> JSON text

  void visit(SettingsVisitor& v) {
    v.rest(values, "setting of a user's pipeline; the pipeline checks the value");
  }
  std::string json() const;  // one object
};

struct JobConfig {
  std::string pipeline = "lm";
  ModelSettings model;
  DataSettings data;
  ParallelSettings parallel;
  TrainSettings train;
  EvalSettings eval;
  CheckpointSettings checkpoint;
  PredictSettings predict;
  MamlSettings maml;
  RlSettings rl;
  OwnSettings settings;
  PlanSettings plan;
  FaultSettings fault;
  std::optional<std::string> workdir;

  // Where each given value came from; not a setting.
  Origins origins;

  void visit(SettingsVisitor& v);
};

// What a job is to be used for: each needs other parts of it.
enum class JobUse { validate, plan, train, evaluate, predict, chat, merge, data, bench, verify };

// Reads the files, later ones laid over earlier ones, then the overrides "key=value". No file is allowed
// where the overrides say all (`verify`). Throws UsageError with up to ten problems, one a line. Single
// values are checked, what they mean together is not: see check_job(). Models of the hub (ids, cache folders)
// become the folders of their files (ckpt/hub.h).
JobConfig load_job(const std::vector<std::string>& files, const std::vector<std::string>& overrides);

// Checks what single values can't show: keys that exclude or need one another, ranks against shards, batch
// sizes against replicas. Needs no data and touches no file. Throws UsageError with all problems, one a line,
// each citing the places of the values it names.
void check_job(const JobConfig& job, JobUse use);

// The ranks of a job: n_ranks if given, else the sum of the slots in parallel.hosts, else n_model_shards.
// None where only a hostfile tells. What src/launch finds in a hostfile or a SLURM allocation goes through
// replicas() and batch_sizes() again.
std::optional<i64> declared_ranks(const JobConfig& job);

// dp = n_ranks / n_model_shards. Throws UsageError that lists the n_ranks that would do.
i64 replicas(const JobConfig& job, i64 n_ranks);

// The batch sizes once dp is known. A step has `accumulation` micro-batches of at most dp x per_device rows.
struct BatchSizes {
  i64 global = 0, per_device = 0, accumulation = 0;
  std::string assumed;  // what was assumed where nothing was given, for people; "" if nothing
};

// A missing per-device size is global / dp rounded up, and so is one above that share; a missing global size
// is per_device x dp; both missing, one row a replica. Throws UsageError where a replica would get no row in
// any step (dp > global_batch_size), or if per_device_batch_size > global_batch_size.
BatchSizes batch_sizes(const JobConfig& job, i64 dp);

// The pieces that the commands `schema`, `--help` and the documentation print.
std::string dump_job(const JobConfig& job);               // config.resolved.yaml
std::string job_schema();                                 // JSON Schema, draft 2020-12
std::string job_reference();                              // docs/config.md
std::string job_help(const std::string& section_or_key);  // "" is everything

// For shells: what a half-typed override may become, a line "text\thelp" each, and ":files" where a path may
// stand there.
std::string complete_job_override(const std::string& word);

}  // namespace redco
