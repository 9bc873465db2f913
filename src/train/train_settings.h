// The `train:`, `eval:` and `checkpoint:` sections.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "generate/generation_settings.h"

namespace redco {

struct EarlyStoppingSettings {
  std::optional<std::string> metric, mode;
  i64 patience = 3;
  double min_delta = 0;

  void visit(SettingsVisitor& v) {
    v.field("metric", metric,
            "evaluation metric that must go on improving, e.g. loss; ~ never stops early. Named in "
            "checkpoint.save_best_by, too, its best checkpoint is kept");
    v.field("mode", mode, "which way is better; ~ is the metric's nature: a loss falls, an accuracy rises")
        .one_of({"max", "min"});
    v.field("patience", patience, "evaluations in a row without improvement after which training ends")
        .at_least(1);
    v.field("min_delta", min_delta, "an improvement is a change for the better by more than this")
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
            "rank of the adapters; the model's own weights then stay as they are. ~ trains the weights "
            "themselves")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::error);
    v.field("alpha", alpha, "the adapters' product is scaled by alpha / rank; ~ is the rank")
        .above(0)
        .on_resume(OnResume::error);
    v.field("dropout", dropout, "of what goes into the adapters, in training")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("target_modules", target_modules,
            "linear layers that get an adapter: ends of their names, as c_attn or mlp.c_proj; regular "
            "expressions that match whole names; all-linear is every one but the output head")
        .one_or_more()
        .on_resume(OnResume::error);
    v.field("use_rslora", use_rslora, "scale by alpha / sqrt(rank)").on_resume(OnResume::error);
    v.field("modules_to_save", modules_to_save,
            "modules that are trained whole and saved with the adapters: ends of their names")
        .on_resume(OnResume::error);
  }
};

struct TrainSettings {
  std::optional<i64> global_batch_size, per_device_batch_size;
  std::optional<i64> n_epochs, max_steps;
  double learning_rate = 3e-4;
  std::string schedule = "linear";
  double warmup_ratio = 0.1;
  std::optional<i64> warmup_steps;
  std::string optimizer = "adamw";
  double momentum = 0;
  double weight_decay = 0.01;
  bool decay_norms_and_biases = false;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
  std::optional<double> clip_grad_norm = 1.0;
  std::string compute_dtype = "fp32";
  double label_smoothing = 0;
  std::string recompute = "none";
  std::string on_non_finite = "stop";
  i64 seed = 42;
  i64 logging_steps = 10;
  EarlyStoppingSettings early_stopping;
  LoraSettings lora;

  void visit(SettingsVisitor& v) {
    const double most = 1 << 30;
    v.field("global_batch_size", global_batch_size,
            "rows of one optimizer step, all replicas together; ~ is per_device_batch_size on every replica")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::either);
    v.field("per_device_batch_size", per_device_batch_size,
            "rows a replica computes at once; gradients are accumulated up to global_batch_size; ~ is all at "
            "once")
        .at_least(1)
        .at_most(most)
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::either);
    v.field("n_epochs", n_epochs, "passes over the training data; ~ is 1, or as many as max_steps needs")
        .at_least(1)
        .on_resume(OnResume::note);
    v.field("max_steps", max_steps, "optimizer steps; with n_epochs, whichever ends first")
        .at_least(1)
        .on_resume(OnResume::note);
    v.field("learning_rate", learning_rate, "highest learning rate").at_least(0).on_resume(OnResume::note);
    v.field("schedule", schedule,
            "the learning rate after warm-up: falls to 0 linearly or as a cosine, or stays")
        .one_of({"linear", "cosine", "constant"})
        .on_resume(OnResume::note);
    v.field("warmup_ratio", warmup_ratio, "share of the steps in which the learning rate rises from 0")
        .at_least(0)
        .at_most(1)
        .on_resume(OnResume::note);
    v.field("warmup_steps", warmup_steps, "the same as a number of steps; goes before warmup_ratio")
        .at_least(0)
        .on_resume(OnResume::note);
    v.field("optimizer", optimizer, "how weights follow their gradients: AdamW, or SGD with momentum")
        .one_of({"adamw", "sgd"})
        .on_resume(OnResume::error);
    v.field("momentum", momentum, "of optimizer sgd: the share of the last update's direction that stays")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("weight_decay", weight_decay,
            "weight decay: AdamW's is decoupled, SGD's is added to the gradient")
        .at_least(0)
        .on_resume(OnResume::note);
    v.field("decay_norms_and_biases", decay_norms_and_biases, "decay the weights of norms, and biases, too")
        .on_resume(OnResume::note);
    v.field("adam_beta1", adam_beta1, "decay of the first moment")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("adam_beta2", adam_beta2, "decay of the second moment")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("adam_epsilon", adam_epsilon, "added to the root of the second moment")
        .above(0)
        .on_resume(OnResume::note);
    v.field("clip_grad_norm", clip_grad_norm, "largest norm of the whole gradient; ~ does not clip")
        .above(0)
        .on_resume(OnResume::note);
    v.field("compute_dtype", compute_dtype, "of activations and matrix products; weights stay fp32")
        .one_of({"fp32", "bf16"})
        .on_resume(OnResume::note)
        .decided_by(DecidedBy::either);
    v.field(
         "label_smoothing", label_smoothing,
         "share of a label's weight that is spread evenly over all classes, or the vocabulary; in training")
        .at_least(0)
        .below(1)
        .on_resume(OnResume::note);
    v.field("recompute", recompute,
            "block keeps a block's input alone and computes the rest again when going back")
        .one_of({"none", "block"})
        .on_resume(OnResume::note);
    v.field("on_non_finite", on_non_finite,
            "a step whose loss or gradient is not finite ends the run, or is skipped")
        .one_of({"stop", "skip"})
        .on_resume(OnResume::free);
    v.field("seed", seed, "of initial weights, shuffles and dropout")
        .at_least(0)
        .on_resume(OnResume::error)
        .decided_by(DecidedBy::either);
    v.field("logging_steps", logging_steps, "steps between two lines of metrics.jsonl")
        .at_least(1)
        .on_resume(OnResume::free);
    v.section("early_stopping", early_stopping, "Ends training when evaluations get no better")
        .on_resume(OnResume::note);
    v.section("lora", lora, "Trains low-rank adapters beside the model's linear layers (LoRA)");
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
    v.field("every_n_steps", every_n_steps, "evaluate after this many steps, and at the end").at_least(1);
    v.field("every_n_epochs", every_n_epochs, "evaluate after this many epochs, and at the end").at_least(1);
    v.field("per_device_batch_size", per_device_batch_size,
            "rows a replica evaluates at once; ~ is that of training")
        .at_least(1)
        .at_most(1 << 30);
    v.field("sanity_check", sanity_check, "evaluate one batch before the first step, to fail early");
    v.field("at_start", at_start,
            "evaluate the initial parameters before the first step; the result is logged as step 0");
    v.field("metrics", metrics, "what is reported beside the loss; [] is all that the pipeline has");
    v.field("n_outputs", n_outputs,
            "how many answers to evaluation examples are kept in workdir/eval_outputs; ~ is 16 where "
            "eval.generation is given, else none are asked for")
        .at_least(0);
    v.section("generation", generation, "How evaluations ask the model for answers; given, they do");
  }
};

struct SaveBestSettings {
  std::vector<std::string> max, min;

  void visit(SettingsVisitor& v) {
    v.field("max", max, "evaluation metrics of which the highest is best");
    v.field("min", min, "evaluation metrics of which the lowest is best, e.g. loss");
  }
};

struct CheckpointSettings {
  std::optional<i64> every_n_steps, every_n_epochs;
  i64 keep_last = 2;
  SaveBestSettings save_best_by;
  bool save_optimizer = true;
  std::string dtype = "fp32";
  std::string resume = "auto";

  void visit(SettingsVisitor& v) {
    v.field("every_n_steps", every_n_steps, "save after this many steps, and at the end").at_least(1);
    v.field("every_n_epochs", every_n_epochs, "save after this many epochs, and at the end").at_least(1);
    v.field("keep_last", keep_last, "how many of the newest checkpoints are kept, beside the best ones")
        .at_least(1);
    v.section("save_best_by", save_best_by, "Metrics whose best checkpoint is kept as `best-METRIC`");
    v.field("save_optimizer", save_optimizer, "save what resuming needs beside the weights");
    v.field("dtype", dtype, "of the saved weights; bf16 ones are for inference").one_of({"fp32", "bf16"});
    v.field("resume", resume,
            "auto resumes the run of workdir, if any; never starts a new run and moves the old one aside; a "
            "path continues that checkpoint")
        .looks_like("auto, never or a path");
  }
};

}  // namespace redco
