#include "train/resume.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/words.h"
#include "ckpt/publish.h"
#include "ckpt/weights_hash.h"
#include "comm/group.h"
#include "pipeline/rollouts.h"
#include "train/eval_outputs.h"
#include "train/event_log.h"
#include "workdir/workdir_names.h"

namespace redco {

namespace {

template <class T>
void same(const std::string& checkpoint, const char* what, const T& was, const T& is) {
  if (was != is)
    throw UsageError(
        "[checkpoint] {} was made with {}={}, but this job has {}. A resumed run needs the same value. "
        "Restore it, or start a new run in another workdir or with checkpoint.resume=never",
        checkpoint, what, was, is);
}

using ckpt::CheckpointFolder;

std::string checkpoints_of(const std::string& workdir) { return join_path(workdir, workdir::kCheckpoints); }

bool holds_a_run(const std::string& workdir) {
  const std::string folder = checkpoints_of(workdir);
  const auto metrics = file_info(join_path(workdir, workdir::kMetrics));
  return (metrics && metrics->size > 0) || (is_folder(folder) && !list_dir(folder).empty());
}

// The id of the run whose files a new run moves aside.
std::string old_id(const std::string& workdir) {
  try {
    if (const auto record = read_run_record(workdir)) return record->run.id;
  } catch (const ContentsError&) {  // only names a folder
  }
  for (const auto& e : CheckpointFolder(checkpoints_of(workdir)).survey())
    if (e.manifest) return e.manifest->run.id;
  return "";
}

RunStart new_run(const std::string& workdir) {
  RunStart s;
  s.record = {{ckpt::new_run_id(), {}, 0, {}}, utc_now(), "", ""};
  s.begins = true;
  if (!holds_a_run(workdir)) return s;
  s.old_id = old_id(workdir);
  s.old = {workdir::names_of_run(), {}};
  return s;
}

// No checkpoint of the workdir's run exists.
RunStart resumed_from_none(const std::string& workdir, const std::optional<RunRecord>& record) {
  if (!record) return new_run(workdir);
  const std::string folder = checkpoints_of(workdir);
  if (const auto all = CheckpointFolder(folder).survey(); !all.empty())
    throw ContentsError(
        "[checkpoint] {} has checkpoints of other runs ({} is the newest) but none of the run of {}. "
        "checkpoint.resume={} continues the newest one, checkpoint.resume=never starts a new run",
        folder, all[0].name, join_path(workdir, workdir::kRecord), all[0].path);
  if (!record->run.lineage.empty())
    throw ContentsError(
        "[checkpoint] the run in {} continues step {} of another run and has no checkpoint yet. Continue the "
        "other run again with checkpoint.resume={}",
        workdir, record->run.lineage.back().step,
        record->resumed_from.empty() ? "PATH" : record->resumed_from);
  RunStart s;
  s.record = *record;
  return s;
}

RunStart resumed(const std::string& workdir) {
  const std::string folder = checkpoints_of(workdir);
  const auto record = read_run_record(workdir);
  const auto run = record ? std::optional(record->run) : std::nullopt;
  const auto found = CheckpointFolder(folder, run).find_newest("checkpoint.resume");
  for (const auto& s : found.skipped)
    warn("[checkpoint] skipping {}: {}", join_path(folder, s.name), s.reason);
  if (!found) return resumed_from_none(workdir, record);
  RunStart s;
  s.checkpoint = found.path;
  s.step = found.step;
  s.inside = true;
  s.begins = !record;
  // A checkpoint without a run id (an older format) is taken as this run's.
  const ckpt::RunIdentity& was = found.manifest.run;
  s.record = record ? *record : RunRecord{was.id.empty() ? was.child(found.step) : was, utc_now(), ""};
  return s;
}

RunStart resumed_from(const std::string& path, const std::string& workdir) {
  if (!exists(join_path(path, ckpt::kStatePath)))
    throw UsageError(
        "[checkpoint] checkpoint.resume={}: expected auto, never, or the folder of a checkpoint made by "
        "training",
        path);
  if (!exists(join_path(path, ckpt::kManifestPath)))
    throw ContentsError(
        "[checkpoint] checkpoint.resume={}: the checkpoint has no {}, so its save did not finish. Use "
        "another checkpoint",
        path, ckpt::kManifestPath);
  namespace fs = std::filesystem;
  const std::string folder = checkpoints_of(workdir);
  const ckpt::Manifest from = ckpt::read_manifest(path);
  std::error_code none;
  RunStart s = new_run(workdir);
  s.checkpoint = path;
  s.step = from.step;
  s.record.run = from.run.child(from.step);
  s.record.resumed_from = fs::absolute(path).lexically_normal().string();
  s.inside = is_folder(folder) && fs::equivalent(fs::canonical(path, none).parent_path(), folder, none);
  if (!s.inside) return s;
  // The new run continues the one in the workdir; the files of its later steps are moved aside.
  s.old = {};
  const CheckpointFolder checkpoints(folder);
  const auto pointers = checkpoints.pointers();
  for (const auto& e : checkpoints.survey()) {
    if (e.manifest && s.record.run.holds(e.manifest->run, e.step)) continue;
    s.old.moved.push_back(workdir::checkpoint(e.name));
    for (const auto& [pointer, step] : pointers)
      if (step == e.step) s.old.moved.push_back(workdir::checkpoint(pointer));
  }
  for (const std::string& name : outputs_after(workdir, from.step)) s.old.moved.push_back(name);
  // The new run cuts its metrics back to the checkpoint's step.
  if (has_metrics_after(workdir, from.step)) s.old.copied = {workdir::kMetrics, workdir::kBest};
  return s;
}

void check_versions(const std::string& checkpoint) {
  const ckpt::Manifest manifest = ckpt::read_manifest(checkpoint);
  for (const auto& [name, version] : algorithm_versions()) {
    const auto it = manifest.versions.find(name);
    if (it != manifest.versions.end() && it->second != version)
      throw ContentsError(
          "[checkpoint] {} was made with version {} of {}, this redco has version {}: an exact resume is not "
          "possible",
          checkpoint, it->second, name, version);
  }
}

}  // namespace

RunStart find_start(const std::string& resume, const std::string& workdir, const std::string& slurm_job) {
  RunStart s;
  Context::current().world().on_first([&] {
    s = resume == "never"  ? new_run(workdir)
        : resume == "auto" ? resumed(workdir)
                           : resumed_from(resume, workdir);
    if (s.begins) s.record.slurm_job = slurm_job;
    if (!s.checkpoint.empty()) check_versions(s.checkpoint);
  });
  s.checkpoint = Context::current().world().agree(s.checkpoint);
  s.step = Context::current().world().agree(s.step);
  return s;
}

ckpt::RunIdentity open_run(const std::string& workdir, const RunStart& start, i64 step) {
  const std::string to =
      start.begins ? begin_run(workdir, start.record, start.old_id, start.old) : std::string();
  if (!to.empty())
    info("[train] {} moved to {}",
         start.inside ? fmt::format("the files of the old run after {} are", start.checkpoint)
                      : "the old run's files are",
         join_path(workdir, to));
  return begin_start(workdir, step);
}

namespace {

// `what`: "models.teacher". Its weights are in no checkpoint.
void check_same_model(const std::string& checkpoint, const std::string& what, const FrozenModel& was,
                      const std::optional<FrozenModel>& now) {
  if (!now)
    throw UsageError(
        "[checkpoint] {} was made with {} ({}), but this job has none. Restore it, or start a new run in "
        "another workdir or with checkpoint.resume=never",
        checkpoint, what, was.from);
  // Older versions made fingerprints of the first and last bytes of each file.
  const auto comparable = [](const FrozenModel& m) {
    return m.fingerprint.find(ckpt::kWeightsHash) != std::string::npos ||
           m.fingerprint.find("/train.seed=") != std::string::npos;
  };
  const bool compared = comparable(was) && comparable(*now);
  if (compared && now->fingerprint != was.fingerprint)
    throw UsageError(
        "[checkpoint] {} was made with other weights of {}: they were those of {}, and the job has those of "
        "{}. Restore them, or start a new run in another workdir or with checkpoint.resume=never",
        checkpoint, what, was.from, now->from);
  Context::current().world().on_first([&] {
    if (!compared)
      info("[resume] {} is of an older version: whether {} has the same weights is not checked", checkpoint,
           what);
    if (now->from != was.from) info("[resume] {} has moved from {} to {}", what, was.from, now->from);
  });
}

void check_same_models(const std::string& checkpoint, const TrainState& saved, const TrainState& job) {
  if (saved.base) check_same_model(checkpoint, "model.path", *saved.base, job.base);
  for (const auto& [name, was] : saved.frozen_models) {
    const auto now = job.frozen_models.find(name);
    check_same_model(checkpoint, "models." + name, was,
                     now == job.frozen_models.end() ? std::nullopt : std::optional(now->second));
  }
}

// A shared object is found again by its file name, since it may have moved.
void note_changed_plugins(const std::string& checkpoint, const TrainState& saved, const TrainState& job) {
  for (const PluginRecord& was : saved.plugins) {
    const auto now = std::ranges::find(job.plugins, file_name(was.path),
                                       [](const PluginRecord& p) { return file_name(p.path); });
    if (now == job.plugins.end()) {
      info("[resume] {} was made with the plugin {}, which this job does not have", checkpoint, was.path);
    } else if (now->fingerprint != was.fingerprint) {
      info("[resume] the contents of {} have changed since {} was saved", now->path, checkpoint);
    }
  }
}

}  // namespace

void check_resumed_state(const std::string& path, const TrainState& saved, const TrainState& job) {
  same(path, "train.seed", saved.seed, job.seed);
  same(path, "train.global_batch_size", saved.global_batch_size, job.global_batch_size);
  same(path, "pipeline", saved.pipeline, job.pipeline);
  same(path, "train.optimizer", saved.optimizer, job.optimizer);
  same(path, "tokenizer", saved.tokenizer_fingerprint, job.tokenizer_fingerprint);
  check_same_models(path, saved, job);
  Context::current().world().on_first([&] {
    note_changed_plugins(path, saved, job);
    if (saved.threads_per_rank != job.threads_per_rank || saved.dp != job.dp || saved.mp != job.mp ||
        saved.isa != job.isa)
      warn(
          "[checkpoint] {} was made with dp {} x mp {}, {} per rank, {}: results are equal up to rounding, "
          "not bit for bit",
          path, saved.dp, saved.mp, counted(saved.threads_per_rank, "thread"), saved.isa);
  });
}

TrainState resume_state(const std::string& path, const TrainState& job) {
  const std::string state_path = join_path(path, ckpt::kStatePath);
  if (!exists(state_path))
    throw ContentsError("[checkpoint] {} is missing, so the save of this checkpoint did not finish",
                        state_path);
  const TrainState saved = parse_state(read_file(state_path, 1 << 26), state_path);
  check_resumed_state(path, saved, job);
  if (!job.stateless && !has_optimizer_state(path))
    throw UsageError(
        "[checkpoint] {} has no optimizer state (checkpoint.save_optimizer was false), so a run cannot "
        "resume from it. Use it as model.path in a new workdir",
        path);
  return saved;
}

void check_same_data(const std::string& checkpoint, const TrainState& saved, const TrainState& job,
                     bool begins_epoch) {
  const auto compared = [&](const std::string& fingerprint) {
    return begins_epoch ? without_epoch_digest(fingerprint) : fingerprint;
  };
  same(checkpoint, "number of training examples", saved.n_examples, job.n_examples);
  same(checkpoint, "training data", compared(saved.data_fingerprint), compared(job.data_fingerprint));
}

void set_workdir_back(const std::string& workdir, const RunStart& start, const TrainState& state) {
  remove_outputs_after(workdir, state.step);
  const std::string folder = checkpoints_of(workdir);
  if (!is_folder(folder)) return;
  CheckpointFolder checkpoints(folder);
  const std::vector<i64> steps = checkpoints.steps();
  const std::map<std::string, i64> now = checkpoints.pointers();
  const auto point = [&](const std::string& name, i64 step) {
    const auto it = now.find(name);
    if ((it == now.end() || it->second != step) && std::find(steps.begin(), steps.end(), step) != steps.end())
      checkpoints.point(name, step);
  };
  if (start.inside) point("last", state.step);
  for (const auto& [metric, step] : state.best_step) point("best-" + metric, step);
}

void check_examples(const Dataset* examples) {
  const std::string made =
      examples ? fmt::format("{} ({})", counted(examples->size(), "example"), examples->fingerprint())
               : "null";
  const std::vector<std::string> all = Context::current().world().gather(made);
  Context::current().world().together([&] {
    for (std::size_t r = 1; r < all.size(); ++r)
      if (all[r] != all[0])
        throw UsageError(
            "[pipeline] source() returned other data on rank {} than on rank 0: {}; {}. All ranks must make the "
            "same examples",
            r, excerpt(all[r], 200), excerpt(all[0], 200));
  });
  if (!examples) throw UsageError("[pipeline] source() returned null; expected a data set");
  if (examples->size() == 0) throw ContentsError("[data] the training data have no examples");
}

}  // namespace redco
