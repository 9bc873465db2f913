#include "train/begin_state.h"

#include <filesystem>

#include "base/log.h"
#include "ckpt/verify_checkpoint.h"

namespace redco {

TrainState state_of_job(const TrainJob& job, const TrainStep& step) {
  const Mesh& mesh = Context::current().mesh();
  return {.seed = job.train.seed,
          .global_batch_size = job.global_batch_size,
          .optimizer = step.optimizer_name(),
          .stateless = step.state().empty(),
          .tokenizer_fingerprint = job.pipeline->tokenizer ? job.pipeline->tokenizer->fingerprint() : "",
          .pipeline = job.pipeline_name,
          .started_in = std::filesystem::current_path().string(),
          .threads_per_rank = job.threads_per_rank,
          .dp = mesh.dp(),
          .mp = mesh.mp(),
          .compute_dtype = name_of(job.train.compute_dtype),
          .isa = job.isa,
          .base = job.base,
          .frozen_models = job.frozen_models,
          .plugins = job.plugins};
}

TrainState begin_from_checkpoint(const TrainJob& job, const RunStart& start, const TrainState& now,
                                 CheckpointContents what) {
  Group& world = Context::current().world();
  const bool holds = world.rank() == 0 && !start.inside;
  const auto lease = holds ? ckpt::hold_checkpoint(start.checkpoint) : nullptr;
  ckpt::verify_checkpoint(start.checkpoint, ckpt::Part::training, "checkpoint.resume");
  world.on_first([&] {
    if (job.on_resume) job.on_resume(start.checkpoint);
  });
  TrainState saved = resume_state(start.checkpoint, now);
  load_checkpoint_tensors(start.checkpoint, what);
  return saved;
}

std::optional<TrainState> begin_from_copy(const TrainJob& job, const RunStart& start, const TrainState& now,
                                          BuddyCopies& copies) {
  if (job.checkpoint.resume != "auto") return std::nullopt;
  auto saved = copies.find(start.record.run, start.step);
  if (!saved) return std::nullopt;
  check_resumed_state(fmt::format("the buddy checkpoint of step {}", saved->step), *saved, now);
  copies.load();
  Context::current().world().on_first([&] {
    info("[fault] continuing from the buddy checkpoint of step {}; {}", saved->step,
         start.step < 0 ? "there is no checkpoint yet"
                        : fmt::format("the newest checkpoint is of step {}", start.step));
  });
  return saved;
}

}  // namespace redco
