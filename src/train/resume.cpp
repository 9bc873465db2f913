#include "train/resume.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "ckpt/publish.h"
#include "train/eval_outputs.h"

namespace redco {

namespace {

template <class T>
void same(const std::string& checkpoint, const char* what, const T& was, const T& is) {
  if (was != is)
    throw UsageError(
        "[checkpoint] {} was made with {}={}, this job has {}: the run could not go on as if never stopped; "
        "restore it, or start anew in another workdir or with checkpoint.resume=never",
        checkpoint, what, was, is);
}

std::string newest_whole(const std::string& folder) {
  const auto found = ckpt::CheckpointFolder(folder).find_newest("checkpoint.resume");
  for (const auto& s : found.skipped)
    warn("[checkpoint] skipping {}: {}", join_path(folder, s.name), s.reason);
  return found.path;
}

void check_versions(const std::string& checkpoint) {
  const ckpt::Manifest manifest = ckpt::read_manifest(checkpoint);
  for (const auto& [name, version] : algorithm_versions()) {
    const auto it = manifest.versions.find(name);
    if (it != manifest.versions.end() && it->second != version)
      throw ContentsError(
          "[checkpoint] {}: made with version {} of {}, this redco has {}: it can't be resumed exactly",
          checkpoint, it->second, name, version);
  }
}

}  // namespace

std::string find_checkpoint(const std::string& resume, const std::string& folder) {
  if (resume == "never") return "";
  std::string path;
  Context::current().world().on_first([&] {
    if (resume == "auto") {
      path = newest_whole(folder);
    } else if (exists(join_path(resume, "training/state.json"))) {
      if (!exists(join_path(resume, ckpt::kManifestPath)))
        throw ContentsError("[checkpoint] checkpoint.resume={}: it has no {}: its save was not finished",
                            resume, ckpt::kManifestPath);
      path = resume;
    } else {
      throw UsageError(
          "[checkpoint] checkpoint.resume={}: expected auto, never, or the folder of a checkpoint made by "
          "training",
          resume);
    }
    if (!path.empty()) check_versions(path);
  });
  return Context::current().world().agree(path);
}

TrainState resume_state(const std::string& path, const TrainState& job) {
  const std::string state_path = join_path(path, "training/state.json");
  if (!exists(state_path)) throw ContentsError("[checkpoint] {} is missing", state_path);
  const TrainState saved = parse_state(read_file(state_path, 1 << 26), state_path);
  same(path, "train.seed", saved.seed, job.seed);
  same(path, "train.global_batch_size", saved.global_batch_size, job.global_batch_size);
  same(path, "pipeline", saved.pipeline, job.pipeline);
  same(path, "train.optimizer", saved.optimizer, job.optimizer);
  same(path, "tokenizer", saved.tokenizer_fingerprint, job.tokenizer_fingerprint);
  Context::current().world().on_first([&] {
    if (saved.threads_per_rank != job.threads_per_rank || saved.dp != job.dp || saved.mp != job.mp ||
        saved.isa != job.isa)
      warn(
          "[checkpoint] {} was made on dp {} x mp {}, {} threads, {}: results agree up to rounding, not bit "
          "by bit",
          path, saved.dp, saved.mp, saved.threads_per_rank, saved.isa);
  });
  if (!job.stateless && !exists(join_path(path, "training/optimizer.safetensors")) &&
      !exists(join_path(path, "training/optimizer.safetensors.index.json")))
    throw UsageError(
        "[checkpoint] {} holds no optimizer state (checkpoint.save_optimizer was false): it can't be "
        "resumed; use it as model.path in a new workdir",
        path);
  return saved;
}

void check_same_data(const std::string& checkpoint, const TrainState& saved, const TrainState& job) {
  same(checkpoint, "number of training examples", saved.n_examples, job.n_examples);
  same(checkpoint, "training data", saved.data_fingerprint, job.data_fingerprint);
}

void set_workdir_back(const std::string& workdir, const std::string& checkpoint, const TrainState& state) {
  remove_outputs_after(workdir, state.step);
  const std::string folder = join_path(workdir, "checkpoints");
  if (!is_folder(folder)) return;
  ckpt::CheckpointFolder checkpoints(folder);
  const std::vector<i64> steps = checkpoints.steps();
  const std::map<std::string, i64> now = checkpoints.pointers();
  const auto point = [&](const std::string& name, i64 step) {
    const auto it = now.find(name);
    if ((it == now.end() || it->second != step) && std::find(steps.begin(), steps.end(), step) != steps.end())
      checkpoints.point(name, step);
  };
  if (checkpoint == join_path(folder, ckpt::step_name(state.step))) point("last", state.step);
  for (const auto& [metric, step] : state.best_step) point("best-" + metric, step);
}

}  // namespace redco
