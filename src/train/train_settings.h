// The `train:`, `eval:` and `checkpoint:` sections.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "generate/generation_settings.h"
#include "tensor/compute_dtype.h"

namespace redco {

struct EarlyStoppingSettings {
  std::optional<std::string> metric, mode;
  i64 patience = 3;
  double min_delta = 0;

  void visit(SettingsVisitor& v) {
    v.field("metric", metric,
            "evaluation metric that must keep improving, e.g. loss; ~: training never stops early. Also list "
            "the metric in checkpoint.save_best_by to keep its best checkpoint");
    v.field("mode", mode,
            "direction of improvement; ~: known from the metric (min for a loss, max for an accuracy)")
        .one_of({"max", "min"});
    v.field("patience", patience, "evaluations in a row without improvement after which training stops")
        .at_least(1);
    v.field("min_delta", min_delta, "minimum improvement; a change of at most this much does not count")
        .at_least(0);
  }
};

// Low-rank adapters (nn/lora.h).
struct LoraSettings {
  std::optional<i64> rank;
  std::optional<double> alpha;
  double dropout = 0;
  std::vector<std::string> target_modules = {"all-linear"};
  bool use_rslora = false;
  std::vector<std::string> modules_to_save;

  void visit(SettingsVisitor& v) {
    v.field("rank", rank,
            "rank of the LoRA adapters; the model's own weights are then frozen; ~: no LoRA, all weights are "
            "trained")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::error);
    v.field("alpha", alpha, "LoRA scaling: the adapter output is multiplied by alpha / rank; ~: alpha = rank")
        .above(0)
        .on_resume(OnResume::error);
    v.field("dropout", dropout, "dropout probability on the adapter inputs during training")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("target_modules", target_modules,
            "linear layers that get an adapter: suffixes of their names (c_attn, mlp.c_proj) or regular "
            "expressions that match whole names; all-linear: every linear layer except the output head")
        .one_or_more()
        .on_resume(OnResume::error);
    v.field("use_rslora", use_rslora, "rank-stabilized LoRA: scaling by alpha / sqrt(rank)")
        .on_resume(OnResume::error);
    v.field("modules_to_save", modules_to_save,
            "modules that are fully trained and saved with the adapters: suffixes of their names")
        .on_resume(OnResume::error);
  }
};

// Profile of some steps (train/step_profile.h).
struct ProfileSettings {
  std::optional<i64> start;
  i64 steps = 3;

  void visit(SettingsVisitor& v) {
    v.field(
         "start", start,
         "first step of the profile; the folder profile/ of the workdir gets a Chrome trace of each rank and "
         "a summary that `redco report` shows; ~: no profile")
        .at_least(1);
    v.field("steps", steps, "number of steps in the profile").at_least(1).at_most(1000);
  }
};

// optim/muon.h
struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  i64 iterations = 5;
  std::string scale = "adamw";

  void visit(SettingsVisitor& v) {
    v.field("momentum", momentum, "decay rate of the momentum").at_least(0).below(1);
    v.field("nesterov", nesterov, "Nesterov momentum");
    v.field("iterations", iterations, "Newton-Schulz iterations that make a matrix nearly orthogonal")
        .at_least(1)
        .at_most(100);
    v.field("scale", scale,
            "factor of the learning rate of a matrix (out, in). adamw: 0.2 sqrt(max(out, in)), so that its "
            "updates are as large as AdamW's; original: sqrt(max(1, out / in)); spectral: sqrt(out / in)")
        .one_of({"adamw", "original", "spectral"});
  }
};

// optim/adafactor.h
struct AdafactorOptions {
  double decay_rate = -0.8, epsilon1 = 1e-30, epsilon2 = 1e-3, clip_threshold = 1;
  bool scale_parameter = false;

  void visit(SettingsVisitor& v) {
    v.field("decay_rate", decay_rate,
            "exponent d: in update t the mean squares of gradients keep 1 - t^d of their value")
        .at_least(-10)
        .below(0);
    v.field("epsilon1", epsilon1, "added to the squares of gradients").at_least(1e-36);
    v.field("clip_threshold", clip_threshold,
            "largest root mean square of an update, before the learning rate")
        .above(0);
    v.field("scale_parameter", scale_parameter,
            "the learning rate of a parameter is multiplied by the root mean square of its values");
    v.field("epsilon2", epsilon2, "smallest of these root mean squares").above(0);
  }
};

// A piece of the learning rate schedule (train/learning_rate.h). Rates are multiples of train.learning_rate.
struct SchedulePieceSettings {
  std::string shape = "linear";
  std::optional<i64> until_step{};
  std::optional<double> until_share{}, from{}, to{};

  void visit(SettingsVisitor& v) {
    v.field("shape", shape, "curve of the learning rate between `from` and `to`")
        .one_of({"linear", "cosine", "exponential", "constant"});
    v.field("until_step", until_step,
            "step at which the piece ends; ~: until_share decides, or the end of training in the last piece")
        .at_least(1);
    v.field("until_share", until_share,
            "end of the piece as a share of all steps; ~: until_step decides, or the end of training in the "
            "last piece")
        .above(0)
        .at_most(1);
    v.field("from", from,
            "learning rate at the first step, as a multiple of train.learning_rate; ~: that at which the "
            "piece before ends; in the first piece 0, or 1 if it is constant")
        .at_least(0);
    v.field("to", to,
            "learning rate at the end, as a multiple of train.learning_rate; a constant piece has none")
        .at_least(0);
  }
};

// Settings of an optimizer of a plugin, with its own names.
struct OptimizerOwnSettings {
  std::map<std::string, std::string> values;  // key -> JSON text

  void visit(SettingsVisitor& v) {
    v.rest(values, "setting of an optimizer of a plugin; the optimizer checks the value");
  }
};

enum class Recompute : std::uint8_t { none, block };
enum class OnNonFinite : std::uint8_t { stop, skip };

struct TrainSettings {
  std::optional<i64> global_batch_size, per_device_batch_size;
  std::optional<i64> n_epochs, max_steps;
  double learning_rate = 3e-4;
  std::string schedule = "linear";
  std::vector<SchedulePieceSettings> schedule_pieces;  // in place of a name
  double warmup_ratio = 0.1, decay_ratio = 0.1, end_ratio = 0;
  std::optional<i64> warmup_steps;
  std::string optimizer = "adamw";
  OptimizerOwnSettings optimizer_settings;
  MuonOptions muon;
  AdafactorOptions adafactor;
  double momentum = 0;
  double weight_decay = 0.01;
  bool decay_norms_and_biases = false;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
  std::optional<double> clip_grad_norm = 1.0;
  ComputeDType compute_dtype = ComputeDType::fp32;
  double label_smoothing = 0;
  Recompute recompute = Recompute::none;
  OnNonFinite on_non_finite = OnNonFinite::stop;
  i64 seed = 42;
  bool debug = false;
  i64 logging_steps = 10;
  EarlyStoppingSettings early_stopping;
  LoraSettings lora;
  ProfileSettings profile;

  void visit(SettingsVisitor& v) {
    const double most = 1 << 30;
    v.field("global_batch_size", global_batch_size,
            "rows per optimizer step, over all replicas; ~: per_device_batch_size times the number of "
            "replicas")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::either);
    v.field("per_device_batch_size", per_device_batch_size,
            "rows per replica in one micro-batch; gradients are accumulated over micro-batches until "
            "global_batch_size; ~: one micro-batch per step")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::either);
    v.field("n_epochs", n_epochs, "passes through the training data; ~: 1, or as many as max_steps needs")
        .at_least(1)
        .on_resume(OnResume::note);
    v.field("max_steps", max_steps,
            "maximum number of optimizer steps; training ends at max_steps or n_epochs, whichever comes "
            "first; ~: no maximum")
        .at_least(1)
        .on_resume(OnResume::note);
    v.field("learning_rate", learning_rate, "peak learning rate").at_least(0).on_resume(OnResume::note);
    const std::vector<std::string> schedules = {"linear", "cosine", "constant", "wsd"};
    v.items_or_word(
         "schedule", schedule_pieces, schedule, schedules,
         "learning rate schedule after warm-up: linear or cosine decay to end_ratio, constant, or wsd "
         "(warm-up, stable, decay: constant, then linear decay over the last decay_ratio of the steps); or "
         "a list of pieces, which begins at step 0 and replaces warm-up and decay")
        .on_resume(OnResume::note);
    v.field("warmup_ratio", warmup_ratio,
            "warm-up length as a fraction of all steps; the learning rate rises linearly from 0")
        .at_least(0)
        .at_most(1)
        .on_resume(OnResume::note)
        .only_with("train.schedule", schedules);
    v.field("warmup_steps", warmup_steps, "warm-up length in steps; ~: warmup_ratio decides")
        .at_least(0)
        .on_resume(OnResume::note)
        .only_with("train.schedule", schedules);
    v.field("decay_ratio", decay_ratio, "length of the decay of schedule wsd as a fraction of all steps")
        .above(0)
        .at_most(1)
        .on_resume(OnResume::note)
        .only_with("train.schedule", {"wsd"});
    v.field("end_ratio", end_ratio,
            "learning rate at the end of the decay, as a multiple of train.learning_rate")
        .at_least(0)
        .on_resume(OnResume::note)
        .only_with("train.schedule", {"linear", "cosine", "wsd"});
    v.field("optimizer", optimizer,
            "optimizer: adamw, sgd (with momentum), muon (hidden matrices; AdamW for all other parameters), "
            "adafactor, one of a plugin (REDCO_OPTIMIZER), or a Python file with a class derived from "
            "redco.Optimizer")
        .looks_like("adamw, sgd, muon, adafactor, the name of a plugin's optimizer or a Python file")
        .on_resume(OnResume::error);
    v.section("optimizer_settings", optimizer_settings, "Settings of an optimizer of a plugin")
        .on_resume(OnResume::note);
    v.section("muon", muon, "Muon: momentum with singular values near 1, for matrices of hidden layers")
        .on_resume(OnResume::note)
        .only_with("train.optimizer", {"muon"});
    v.section("adafactor", adafactor, "Adafactor: mean squares of gradients by rows and by columns")
        .on_resume(OnResume::note)
        .only_with("train.optimizer", {"adafactor"});
    v.field("momentum", momentum, "momentum of SGD; 0: no momentum")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note)
        .only_with("train.optimizer", {"sgd"});
    v.field(
         "weight_decay", weight_decay,
         "weight decay coefficient: decoupled in AdamW, Muon and Adafactor, added to the gradient in SGD; optimizers "
         "of plugins decide")
        .at_least(0)
        .on_resume(OnResume::note);
    v.field("decay_norms_and_biases", decay_norms_and_biases,
            "weight decay of norm weights and biases too; false: only of the other weights")
        .on_resume(OnResume::note);
    v.field("adam_beta1", adam_beta1, "AdamW beta1: decay rate of the first moment")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("adam_beta2", adam_beta2, "AdamW beta2: decay rate of the second moment")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("adam_epsilon", adam_epsilon, "AdamW epsilon: added to the square root of the second moment")
        .above(0)
        .on_resume(OnResume::note);
    v.field("clip_grad_norm", clip_grad_norm,
            "maximum global gradient norm; a larger gradient is scaled down to it; ~: no clipping")
        .above(0)
        .on_resume(OnResume::note);
    v.choice(
         "compute_dtype", compute_dtype, {{"fp32", ComputeDType::fp32}, {"bf16", ComputeDType::bf16}},
         "data type of activations and matrix products. bf16 halves the memory of most activations, and is "
         "faster on CPUs with AMX or AVX512-BF16. Sums, the residual stream, statistics, gradients of weights and the "
         "weights stay fp32; on other CPUs, products widen bf16 to fp32")
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::either);
    v.field("label_smoothing", label_smoothing,
            "label smoothing in training: share of a label's probability that is spread evenly over all "
            "classes or the vocabulary")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note)
        .only_with("pipeline", {"lm", "seq2seq", "captioning", "transcription", "classification"});
    v.choice("recompute", recompute, {{"none", Recompute::none}, {"block", Recompute::block}},
             "activation recomputation: block stores only the input of each transformer block and recomputes "
             "the rest in the backward pass, which needs less memory and more time; none stores all "
             "activations")
        .on_resume(OnResume::note);
    v.choice("on_non_finite", on_non_finite, {{"stop", OnNonFinite::stop}, {"skip", OnNonFinite::skip}},
             "action when a loss or gradient is NaN or infinite: stop ends the run, skip skips the step")
        .on_resume(OnResume::free);
    v.field(
         "debug", debug,
         "check of the results of each op: the run ends at the first one that is not finite, and names it. Slow")
        .on_resume(OnResume::free);
    v.field("seed", seed, "random seed of initial weights, shuffling and dropout")
        .at_least(0)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::either);
    v.field("logging_steps", logging_steps, "logging interval: steps between two lines of metrics.jsonl")
        .at_least(1)
        .on_resume(OnResume::free);
    v.section("early_stopping", early_stopping,
              "Early stopping: end of training when a metric stops improving")
        .on_resume(OnResume::note);
    v.section("lora", lora, "LoRA: training of low-rank adapters on the model's linear layers");
    v.section("profile", profile, "Profile: times of ops and communication in some steps")
        .on_resume(OnResume::free);
  }
};

struct EvalSettings {
  std::optional<i64> every_n_steps, every_n_epochs;
  std::optional<i64> per_device_batch_size;
  bool sanity_check = true, at_start = false;
  std::vector<std::string> metrics;
  std::optional<i64> n_outputs;
  GenerationSettings generation;

  void visit(SettingsVisitor& v) {
    v.field("every_n_steps", every_n_steps,
            "evaluation interval in steps; the end of training is always evaluated")
        .at_least(1);
    v.field("every_n_epochs", every_n_epochs,
            "evaluation interval in epochs; the end of training is always evaluated")
        .at_least(1);
    v.field("per_device_batch_size", per_device_batch_size,
            "rows per replica in one evaluation batch; ~: the value of train.per_device_batch_size")
        .at_least(1)
        .at_most(1 << 30);
    v.field("sanity_check", sanity_check,
            "evaluation of one batch before the first step, so that errors in evaluation appear early");
    v.field("at_start", at_start,
            "evaluation of the initial parameters before the first step, logged as step 0");
    v.field("metrics", metrics,
            "metrics to report in addition to the loss; empty: all metrics of the pipeline");
    v.field("n_outputs", n_outputs,
            "number of generated answers per evaluation that are saved in workdir/eval_outputs; 0: "
            "evaluations generate nothing; ~: 16 if eval.generation is set, else 0")
        .at_least(0);
    v.section("generation", generation,
              "Generation settings for evaluation. Setting this section enables generation");
  }
};

struct SaveBestSettings {
  std::vector<std::string> max, min;

  void visit(SettingsVisitor& v) {
    v.field("max", max, "evaluation metrics whose highest value is the best");
    v.field("min", min, "evaluation metrics whose lowest value is the best, e.g. loss");
  }
};

struct CheckpointSettings {
  std::optional<i64> every_n_steps, every_n_epochs;
  std::optional<double> every_minutes = 20;
  i64 keep_last = 2;
  SaveBestSettings save_best_by;
  bool save_optimizer = true;
  std::string dtype = "fp32";
  bool async_save = false;
  std::optional<i64> async_buffer_mib;
  std::string resume = "auto";

  void visit(SettingsVisitor& v) {
    v.field("every_n_steps", every_n_steps, "save interval in steps; the end of training is always saved")
        .at_least(1);
    v.field("every_n_epochs", every_n_epochs, "save interval in epochs; the end of training is always saved")
        .at_least(1);
    v.field(
         "every_minutes", every_minutes,
         "save interval in minutes since the last save, so that a run that is killed loses no more; ~: none")
        .above(0);
    v.field("keep_last", keep_last, "number of newest checkpoints to keep, in addition to the best ones")
        .at_least(1);
    v.section("save_best_by", save_best_by,
              "Metrics by which the best checkpoint is kept, as `best-METRIC` in workdir");
    v.field("save_optimizer", save_optimizer,
            "optimizer state in checkpoints; without it a run cannot resume");
    v.field(
         "dtype", dtype,
         "data type of saved weights; bf16 with save_optimizer: the fp32 weights are saved with the optimizer's "
         "state, so that a run resumes from what it had")
        .one_of({"fp32", "bf16"});
    v.field("async_save", async_save,
            "checkpoints in the background: a step waits only for a copy of the state in memory, and threads "
            "write it during the next steps");
    v.field(
         "async_buffer_mib", async_buffer_mib,
         "memory limit of a rank for that copy, in MiB; default: the size of all files that the rank writes. "
         "A larger save waits until the disk has taken the rest")
        .at_least(32);
    v.field("resume", resume,
            "resume mode: auto resumes the run in workdir, if there is one; never starts a new run and moves "
            "the old one to workdir/previous; a path resumes from that checkpoint")
        .looks_like("auto, never or a path")
        .path();
  }
};

}  // namespace redco
