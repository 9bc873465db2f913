#include "assembly/trained_job.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "assembly/trust.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "chat/chat_template.h"
#include "ckpt/manifest.h"
#include "ckpt/peft.h"
#include "ckpt/publish.h"
#include "ckpt/verify_checkpoint.h"
#include "config/bind.h"
#include "config/include.h"
#include "data/builtin/builtin.h"
#include "job/checkpoint_job.h"
#include "job/named_models.h"
#include "launch/slurm.h"
#include "pipelines/pipelines.h"
#include "tokenizers/tokenizer.h"
#include "train/checkpoint.h"
#include "workdir/run_record.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSetting = "predict.checkpoint";
constexpr i64 kMostBytes = i64{16} << 20;

bool is_pointer(const std::string& checkpoint) {
  return checkpoint.find('/') == std::string::npos && !is_folder(checkpoint);
}

// The folder that predict.checkpoint or the workdir names; "" if the workdir holds no checkpoint, or neither
// is given.
std::string find_checkpoint(const JobConfig& job) {
  const std::string folder = job.workdir ? join_path(*job.workdir, workdir::kCheckpoints) : "";
  if (const auto& named = job.predict.checkpoint) {
    if (!is_pointer(*named)) return *named;
    if (folder.empty())
      throw UsageError("[predict] predict.checkpoint={} ({}) is a pointer of a workdir; give workdir", *named,
                       job.origins.where(kSetting));
    return ckpt::CheckpointFolder(folder).resolve(*named);
  }
  if (folder.empty()) return "";
  const auto record = read_run_record(*job.workdir);
  const auto found =
      ckpt::CheckpointFolder(folder, record ? std::optional(record->run) : std::nullopt).find_last(kSetting);
  for (const auto& s : found.skipped)
    warn("[checkpoint] skipping {}: {}", join_path(folder, s.name), s.reason);
  if (!found.newer.empty())
    warn("[checkpoint] {} names {}, and {} is newer; predict.checkpoint={} takes that one",
         join_path(folder, "last"), ckpt::step_name(found.step), found.newer, join_path(folder, found.newer));
  return found ? found.path : "";
}

void check_weights(const JobConfig& job) {
  if (job.model.random) return;
  if (job.workdir) {
    const std::string folder = join_path(*job.workdir, workdir::kCheckpoints);
    const bool named = job.model.path || job.model.adapter;
    if (exists(join_path(*job.workdir, "config.json")) ||
        exists(join_path(*job.workdir, ckpt::kAdapterConfig)))
      throw UsageError(
          "[checkpoint] workdir={} ({}) is the folder of a model or checkpoint, not of a run. Give "
          "predict.checkpoint={} or model.path={} in place of workdir",
          *job.workdir, job.origins.where("workdir"), *job.workdir, *job.workdir);
    throw UsageError(
        "[checkpoint] workdir={} ({}) holds no checkpoint: {} {}. Train first (`redco train`), or name "
        "another workdir, {}",
        *job.workdir, job.origins.where("workdir"), folder,
        is_folder(folder) ? "has no finished one" : "does not exist",
        named ? "or give workdir=null for the weights of model.path"
              : "or give model.random=true for random weights");
  }
  if (!job.model.path && !job.model.adapter)
    throw UsageError(
        "[model] the job names no weights. Give workdir or predict.checkpoint (a trained model), model.path, "
        "or model.random=true for random weights");
}

// Facts of a checkpoint's folder beyond its job. Its state.json is read only if it is needed.
class SavedFacts {
 public:
  explicit SavedFacts(std::string folder) : folder_(std::move(folder)) {}

  const std::string& started_in() { return state().started_in; }

  bool same_files(const std::string& key, const std::string& given, const std::optional<std::string>& saved) {
    if (key == "model.tokenizer") return same_tokenizer(given, saved);
    if (key == "data.chat_template") return same_template(given, saved);
    if (given == saved) return true;
    if (key == "pipeline") return !pipeline_info(given) && file_name(given) == file_name(*saved);
    std::error_code none;
    if (fs::equivalent(given, folder_, none)) return true;
    return saved && fs::absolute(given).lexically_normal() == absolute(*saved);
  }

  std::string config(const std::string& key) {
    const std::string path = join_path(folder_, "config.json");
    if (config_.is_null() && exists(path))
      config_ = nlohmann::json::parse(read_file(path, kMostBytes), nullptr, false);
    return config_.is_object() && config_.contains(key) ? config_[key].dump() : "";
  }

  // A path of the saved job, from where its training began.
  fs::path absolute(const std::string& path) { return (fs::path(started_in()) / path).lexically_normal(); }

 private:
  const TrainState& state() {
    if (!state_)
      state_ = exists(join_path(folder_, ckpt::kStatePath))
                   ? parse_state(ckpt::read_verified(folder_, ckpt::kStatePath, kSetting),
                                 join_path(folder_, ckpt::kStatePath))
                   : TrainState{};
    return *state_;
  }

  bool same_tokenizer(const std::string& given, const std::optional<std::string>& saved) {
    if (given != "bytes" && !exists(given)) return given == saved;
    return load_tokenizer(given)->fingerprint() == state().tokenizer_fingerprint;
  }

  bool same_template(const std::string& given, const std::optional<std::string>& saved) {
    if (given != "builtin:chat" && !exists(given)) return given == saved;
    const auto mine = ChatTemplate::load(folder_);
    if (!mine) return false;
    if (given == "builtin:chat") return mine->source() == builtin_chat_template();
    if (!is_folder(given)) return mine->source() == read_file(given, kMostBytes);
    const auto other = ChatTemplate::load(given);
    return other && mine->source() == other->source();
  }

  std::string folder_;
  std::optional<TrainState> state_;
  nlohmann::json config_;
};

// A shared object may be moved or rebuilt, so only its file name is compared.
std::string pipeline_of(const JobConfig& given, const std::string& saved, SavedFacts& facts) {
  if (pipeline_info(saved)) return saved;
  if (given.origins.given("pipeline") && exists(given.pipeline)) return given.pipeline;
  const std::string there = facts.absolute(saved).string();
  return exists(there) ? there : saved;
}

// A shared object or script runs its code. A checkpoint may come from anybody, so it loads only one that this
// user names or has trusted (saved_text: the job in the checkpoint).
void refuse_untrusted(const JobConfig& given, const std::string& pipeline, const std::string& saved_text,
                      const std::string& checkpoint) {
  if (pipeline_info(pipeline) || !exists(pipeline)) return;
  std::error_code none;
  const auto named = [&](const std::string& path) { return fs::equivalent(path, pipeline, none); };
  if ((given.origins.given("pipeline") && named(given.pipeline)) ||
      std::any_of(given.plugins.begin(), given.plugins.end(), named) || is_trusted(pipeline, saved_text))
    return;
  throw UsageError(
      "[checkpoint] {} names the pipeline {}, and would run its code. If it is yours, name it "
      "(pipeline={}) or trust it once (`redco trust {}`)",
      checkpoint, pipeline, pipeline, pipeline);
}

// `plugins` of the saved job that this user has trusted, for a job that names none.
void add_trusted_plugins(JobConfig& job, const JobConfig& given, const YamlText& saved_text,
                         SavedFacts& facts) {
  if (given.origins.given("plugins")) return;
  JobConfig saved;
  load_known_settings(settings_of(saved), saved_text);
  for (const std::string& path : saved.plugins) {
    const std::string there = facts.absolute(path).string();
    std::error_code none;
    const auto same = [&](const std::string& other) { return fs::equivalent(other, there, none); };
    if (exists(there) && std::none_of(job.plugins.begin(), job.plugins.end(), same) &&
        is_trusted(there, saved_text.text))
      job.plugins.push_back(there);
  }
}

// The job saved in the checkpoint that trained_job() chose; nullopt if there is none.
std::optional<JobConfig> saved_job(const JobConfig& job) {
  const auto& folder = job.predict.checkpoint;
  if (!folder || (job.model.path != folder && job.model.adapter != folder)) return std::nullopt;
  const std::string path = join_path(*folder, ckpt::kJobPath);
  if (!exists(path)) return std::nullopt;
  JobConfig saved;
  load_known_settings(settings_of(saved), {path, read_file(path, kMostBytes)});
  return saved;
}

// Relative paths of named models begin where the training began; trained ones are in the checkpoint. A path
// of an override does not change.
void find_named_models(JobConfig& job, const JobConfig& given, const std::string& folder, SavedFacts& facts) {
  for (const NamedModelSettings& m : named_models(job)) {
    if (!m.frozen) {
      set_named_path(job, m.name, join_path(folder, part_folder(m.name)));
    } else if (m.model.path && !given.origins.overridden("models." + m.name) &&
               !given.origins.overridden("models." + m.name + ".path")) {
      if (const std::string there = facts.absolute(*m.model.path).string(); exists(there))
        set_named_path(job, m.name, there);
    }
  }
}

// The given job with the settings that the checkpoint decides.
JobConfig saved_settings(const JobConfig& given, const std::string& folder) {
  const YamlText saved{join_path(folder, ckpt::kJobPath),
                       ckpt::read_verified(folder, ckpt::kJobPath, kSetting)};
  SavedFacts facts(folder);
  const bool may_move = ckpt::is_adapter(folder) && given.origins.overridden("model.path");
  CheckpointJob merged = merge_checkpoint_job(
      given, saved,
      {.same_files =
           [&](const std::string& key, const std::string& path, const std::optional<std::string>& other) {
             return (key == "model.path" && may_move) || facts.same_files(key, path, other);
           },
       .config = [&](const std::string& key) { return facts.config(key); }});
  refuse_contradicting_overrides(merged, folder);
  if (const std::string line = ignored_values(merged, folder); !line.empty()) warn("{}", line);
  if (!merged.unknown.empty())
    warn("[checkpoint] {} has settings that this version doesn't read: {}", saved.name,
         excerpt(fmt::format("{}", fmt::join(merged.unknown, ", ")), 200));
  JobConfig job = std::move(merged.job);
  job.pipeline = pipeline_of(given, job.pipeline, facts);
  refuse_untrusted(given, job.pipeline, saved.text, folder);
  add_trusted_plugins(job, given, saved, facts);
  job.model.tokenizer.reset();
  find_named_models(job, given, folder, facts);
  if (!job.origins.given("data.chat_template")) {
    job.data.chat_template.reset();
    if (ChatTemplate::load(folder)) job.data.chat_template = folder;
  }
  return job;
}

// The base of the adapter in `folder`: model.path of an override; model.path of the job file if the adapter's
// own base does not exist; nullopt means the adapter's own base.
std::optional<std::string> base_of(const JobConfig& given, const std::string& folder, bool has_job) {
  const auto& path = given.model.path;
  if (!path || ckpt::is_adapter(*path)) return std::nullopt;
  if (!has_job || given.origins.overridden("model.path")) return path;
  try {
    ckpt::base_folder(ckpt::read_adapter(folder), "");
    return std::nullopt;
  } catch (const UsageError&) {
    return path;
  }
}

// In a SLURM job array, the workdir that this task's training has used.
JobConfig with_workdir_of_task(JobConfig job) {
  if (!job.workdir) return job;
  const std::string own = trained_workdir_of_task(
      *job.workdir, current_environment(),
      [](const std::string& workdir) { return is_folder(join_path(workdir, workdir::kCheckpoints)); });
  if (own != *job.workdir) info("[predict] a task of a SLURM job array; its workdir is {}", own);
  job.workdir = own;
  return job;
}

}  // namespace

std::optional<std::string> trained_model_folder(const JobConfig& job) {
  const std::optional<JobConfig> saved = saved_job(job);
  if (!saved) return std::nullopt;
  if (!saved->model.path) return "";
  const std::string path = SavedFacts(*job.predict.checkpoint).absolute(*saved->model.path).string();
  if (!ckpt::is_adapter(path)) return path;
  try {
    return ckpt::base_folder(ckpt::read_adapter(path), "");
  } catch (const Error&) {  // the base has been removed
    return path;
  }
}

bool trained_without_model(const JobConfig& job) {
  const std::optional<JobConfig> saved = saved_job(job);
  return saved && !saved->model.path && !saved->model.preset && !saved->model.arch;
}

void use_trained_evaluation(JobConfig& job) {
  if (!job.data.files(true).empty() || job.origins.given("data.eval")) return;
  std::optional<JobConfig> saved = saved_job(job);
  if (!saved || saved->data.files(true).empty()) return;
  SavedFacts facts(*job.predict.checkpoint);
  saved->data.each_list(true, [&](const std::string&, std::vector<std::string>& files) {
    for (std::string& f : files)
      if (!f.starts_with("builtin:")) f = facts.absolute(f).string();
  });
  job.data.eval = saved->data.eval;
  job.data.eval_sets = saved->data.eval_sets;
  // The files are read as in the training.
  const auto take = [&](const char* key, auto member) {
    if (job.origins.given(key)) return;
    job.data.*member = saved->data.*member;
    job.origins.inherit(key, join_path(*job.predict.checkpoint, ckpt::kJobPath));
  };
  if (saved->data.images) saved->data.images = facts.absolute(*saved->data.images).string();
  take("data.format", &DataSettings::format);
  take("data.header", &DataSettings::header);
  take("data.images", &DataSettings::images);
  take("data.skip_bad", &DataSettings::skip_bad);
  for (const char* key : {"data.eval", "data.eval_sets"})
    job.origins.inherit(key, join_path(*job.predict.checkpoint, ckpt::kJobPath));
  info("[eval] the job names no evaluation data: {}, those of the training",
       excerpt(fmt::format("{}", fmt::join(job.data.files(true), ", ")), 200));
}

TrainedJob trained_job(const JobConfig& asked, Weights weights) {
  const JobConfig given = with_workdir_of_task(asked);
  TrainedJob out{given, nullptr};
  if (weights == Weights::optional && given.workdir &&
      is_pointer(given.predict.checkpoint.value_or("last")) &&
      !is_folder(join_path(*given.workdir, workdir::kCheckpoints)))
    return out;
  std::string folder;
  // A training that runs may remove the checkpoint between the choice and the lease.
  for (int tries = 0; tries < 3; ++tries) {
    folder = find_checkpoint(given);
    out.lease = ckpt::hold_checkpoint(folder);
    if (folder.empty() || is_folder(folder)) break;
  }
  if (folder.empty()) {
    if (weights == Weights::needed) check_weights(given);
    return out;
  }
  if (given.model.random && given.origins.overridden("model.random"))
    throw UsageError(
        "[checkpoint] model.random=true ({}) asks for random weights, and the job names the checkpoint {}. "
        "Remove one of the two (workdir=null)",
        given.origins.where("model.random"), folder);
  if (!is_folder(folder))
    throw UsageError(
        "[checkpoint] predict.checkpoint={} ({}): no such folder; give last, best-METRIC or the folder of a "
        "checkpoint",
        folder, given.origins.where(kSetting));
  const bool has_job = exists(join_path(folder, ckpt::kJobPath));
  if (has_job) out.job = saved_settings(given, folder);
  ModelSettings& model = out.job.model;
  model.random = false;
  model.path = folder;
  model.adapter.reset();
  if (ckpt::is_adapter(folder)) {
    if (const auto base = base_of(given, folder, has_job)) {
      model.path = base;
      model.adapter = folder;
    }
  }
  out.job.predict.checkpoint = folder;
  load_plugins(out.job);
  return out;
}

}  // namespace redco
