// From a given job to the job of a command that uses a trained model: predict, evaluate, chat, merge, data.
//
// The checkpoint is the one that predict.checkpoint names, else the workdir's `last`. What it decides comes
// from the job saved in it (job/checkpoint_job.h). Its files are used, not the paths of its job:
//
//   model.path, model.adapter   the checkpoint's folder, and an adapter's base
//   model.tokenizer             null: the tokenizer in the checkpoint
//   data.chat_template          the checkpoint's folder, if it has a template
//   pipeline                    a built-in name; a shared object's relative path begins where training began.
//                               The given job must name it, or the user must trust it (assembly/trust.h)
//   plugins                     if the given job names none: those of the saved job that the user trusts
//   predict.checkpoint          the checkpoint's folder
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/lease.h"
#include "job/job_config.h"

namespace redco {

struct TrainedJob {
  JobConfig job;
  std::shared_ptr<Lease> lease;  // on the checkpoint; null: there is none, or it can't be leased
};

// Of a job from trained_job(): model.path of the job that the checkpoint was trained with, as an absolute
// path
// ("" if it named none); nullopt if the job uses no checkpoint with a saved job.
std::optional<std::string> trained_model_folder(const JobConfig& job);
// Of the same: whether the pipeline of that job made its own model (no model.path, preset and arch).
bool trained_without_model(const JobConfig& job);

// Of the same: the evaluation data of that job, if this one names none. One line of the log names them.
void use_trained_evaluation(JobConfig& job);

// `optional`: the command works without weights, so a job without checkpoint is not changed.
enum class Weights : std::uint8_t { needed, optional };

// The launcher calls it once, before ranks start. In a SLURM job array the workdir is that of the task, if it
// trained there. A folder without a saved job (Hugging Face's, an old
// checkpoint) supplies its weights alone; the given job keeps its settings. Warns, in one line each: `last`
// is not the newest whole checkpoint, an incomplete checkpoint is skipped, the job file contradicts the
// checkpoint.
// UsageError: an override contradicts the checkpoint; weights are needed and neither workdir nor
// predict.checkpoint nor model.path gives them, unless model.random is true. IoError or ContentsError: the
// checkpoint is bad.
TrainedJob trained_job(const JobConfig& asked, Weights weights);

}  // namespace redco
