#include "train/start_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"

namespace redco {

namespace {

constexpr i64 kFewSteps = 10;

// "checkpoints: every 100 steps, every 20 minutes, at the end"
std::string checkpoint_line(const CheckpointSettings& c) {
  std::string text = "checkpoints:";
  if (c.every_n_steps) text += fmt::format(" every {},", counted(*c.every_n_steps, "step"));
  if (c.every_n_epochs) text += fmt::format(" every {},", counted(*c.every_n_epochs, "epoch"));
  if (c.every_minutes)
    text += fmt::format(" every {:g} minutes{},", *c.every_minutes,
                        c.every_n_steps || c.every_n_epochs ? " without one" : "");
  const bool only_end = !c.every_n_steps && !c.every_n_epochs && !c.every_minutes;
  return text + (only_end ? " only at the end: a run that is killed loses all steps. Set "
                            "checkpoint.every_minutes"
                          : " at the end");
}

}  // namespace

std::vector<std::string> start_lines(const TrainingStart& s) {
  const i64 rows = s.dp * s.per_device_batch_size;
  const bool from_zero = s.step == 0 && s.schedule.peak() > 0 && s.schedule.at(0) == 0;
  return {
      fmt::format("{}, {} per epoch; {} in total, {} of them warm-up{}", counted(s.examples, "example"),
                  counted(s.steps_per_epoch, "step"), counted(s.schedule.total_steps, "step"),
                  std::min(s.schedule.warmup_steps(), s.schedule.total_steps),
                  from_zero ? "; step 1 has learning rate 0, because warm-up starts at 0" : ""),
      fmt::format("batch of {}: dp {} x {} per micro-batch x {}", counted(s.global_batch_size, "example"),
                  s.dp, s.per_device_batch_size, counted(ceil_div(s.global_batch_size, rows), "micro-batch")),
      checkpoint_line(s.checkpoint), fmt::format("output folder: {}", s.workdir)};
}

std::vector<std::string> start_warnings(const TrainingStart& s) {
  std::vector<std::string> out;
  const i64 total = s.schedule.total_steps;
  if (s.step >= total && s.step > 0) {
    out.push_back(s.step > total
                      ? fmt::format("the checkpoint has {}, and the job ends at step {}: nothing is trained. "
                                    "Raise train.max_steps or train.n_epochs to train further",
                                    counted(s.step, "step"), total)
                      : fmt::format("the checkpoint has all {}: nothing is left to train. Raise "
                                    "train.max_steps or train.n_epochs to train further",
                                    counted(total, "step")));
    return out;
  }
  if (s.global_batch_size > s.examples)
    out.push_back(
        fmt::format("the batch of {} is larger than the training data ({}): each step uses all of them. "
                    "Lower train.global_batch_size to make more steps per epoch",
                    counted(s.global_batch_size, "example"), counted(s.examples, "example")));
  if (total < kFewSteps)
    out.push_back(
        fmt::format("the run has only {}: {} per epoch. Raise train.n_epochs or train.max_steps, or lower "
                    "train.global_batch_size",
                    counted(total, "step"), counted(s.steps_per_epoch, "step")));
  const i64 warmup = s.schedule.warmup_steps();
  if (warmup >= total && warmup > 0) {
    out.push_back(fmt::format(
        "warm-up takes {} and the run has {}: the learning rate never reaches train.learning_rate. Lower "
        "train.warmup_steps or train.warmup_ratio, or the end of the first piece of train.schedule",
        counted(warmup, "step"), counted(total, "step")));
    return out;
  }
  for (std::size_t i = 0; i < s.schedule.pieces.size(); ++i) {
    const i64 begin = i == 0 ? 0 : s.schedule.end_of(i - 1);
    if (total > 0 && (begin >= total || begin == s.schedule.end_of(i)))
      out.push_back(fmt::format(
          "piece {} of train.schedule has no steps: the run has {}, and the pieces before it end at step {}",
          i + 1, counted(total, "step"), begin));
  }
  return out;
}

std::string unreached_line(const ParamTree& params, const std::vector<size_t>& unreached) {
  constexpr int kNamed = 8;
  i64 n = 0;
  std::string names;
  for (const size_t i : unreached) {
    const ParamSpec& s = params.specs()[i];
    if (s.kind == ParamKind::bias && s.heads.dim >= 0) continue;
    if (++n <= kNamed) names += (n > 1 ? ", " : "") + s.name;
  }
  if (n == 0) return "";
  return fmt::format("no loss term depends on {} of {} trained parameters ({}{}); their gradients are 0", n,
                     std::ranges::count_if(params.specs(), &ParamSpec::trained), names,
                     n > kNamed ? ", ..." : "");
}

std::string router_loss_line(const Model* model, const std::map<std::string, double>& terms) {
  if (!model || !model->router_loss() || terms.contains(kRouterLossTerm)) return "";
  return fmt::format(
      "the model's config has output_router_logits: true, but this pipeline has no loss term {}: the experts "
      "are trained without load-balancing loss",
      kRouterLossTerm);
}

std::string repeated_key_line(const std::string& repeated) {
  if (repeated.empty()) return "";
  return fmt::format(
      "loss() draws the same random numbers twice: {}. If it passes a batch through the model "
      "several times, both passes have the same dropout. Give each pass its own with ctx.scope(\"pass\", k), "
      "or other sites",
      repeated);
}

}  // namespace redco
