#include "train/learning_rate.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

namespace {

using PieceShape = SchedulePiece::Shape;

// Warm-up, and what follows it.
std::vector<SchedulePiece> named(const TrainSettings& t) {
  const double peak = t.learning_rate, end = t.end_ratio * peak;
  std::vector<SchedulePiece> out;
  if (t.warmup_steps.value_or(1) > 0 && (t.warmup_steps || t.warmup_ratio > 0)) {
    SchedulePiece& up = out.emplace_back(SchedulePiece{.from = 0, .to = peak});
    if (t.warmup_steps)
      up.until_step = t.warmup_steps;
    else
      up.until_share = t.warmup_ratio;
  }
  if (t.schedule == "constant") {
    out.push_back({.shape = PieceShape::constant, .from = peak, .to = peak});
    return out;
  }
  if (t.schedule == "wsd")
    out.push_back(
        {.shape = PieceShape::constant, .until_share = 1 - t.decay_ratio, .from = peak, .to = peak});
  out.push_back(
      {.shape = t.schedule == "cosine" ? PieceShape::cosine : PieceShape::linear, .from = peak, .to = end});
  return out;
}

PieceShape shape_of(const std::string& name) {
  if (name == "constant") return PieceShape::constant;
  if (name == "cosine") return PieceShape::cosine;
  return name == "linear" ? PieceShape::linear : PieceShape::exponential;
}

std::vector<SchedulePiece> given(const TrainSettings& t) {
  std::vector<SchedulePiece> out;
  i64 step = 0;
  double share = 0, rate = 0;
  for (std::size_t i = 0; i < t.schedule_pieces.size(); ++i) {
    const SchedulePieceSettings& p = t.schedule_pieces[i];
    const auto problem = [&](const std::string& why) {
      throw UsageError("[train] train.schedule[{}] {}", i, why);
    };
    const PieceShape shape = shape_of(p.shape);
    const bool constant = shape == PieceShape::constant;
    if (p.until_step && p.until_share) problem("has both until_step and until_share. Remove one of them");
    if (!p.until_step && !p.until_share && i + 1 < t.schedule_pieces.size())
      problem("has neither until_step nor until_share, which only the last piece may lack. Add one of them");
    if (p.until_step && *p.until_step <= step)
      problem(
          fmt::format("has until_step={}, but step {} belongs to a piece before it", *p.until_step, step));
    if (p.until_share && *p.until_share <= share)
      problem(fmt::format("has until_share={}, but a piece before it ends at {}", *p.until_share, share));
    if (constant && p.to) problem("is constant and has `to`. Give its learning rate as `from`");
    if (!constant && !p.to) problem("has no `to`: the multiple of train.learning_rate at which it ends");
    const double from = p.from ? *p.from * t.learning_rate : i > 0 ? rate : constant ? t.learning_rate : 0;
    const double to = constant ? from : *p.to * t.learning_rate;
    if (shape == PieceShape::exponential && !(from > 0 && to > 0))
      problem("is exponential and goes from or to 0. Use values above 0, or another shape");
    out.push_back(
        {.shape = shape, .until_step = p.until_step, .until_share = p.until_share, .from = from, .to = to});
    step = p.until_step.value_or(step);
    share = p.until_share.value_or(share);
    rate = to;
  }
  return out;
}

}  // namespace

Schedule schedule_of(const TrainSettings& t, i64 total_steps) {
  return {.pieces = t.schedule_pieces.empty() ? named(t) : given(t), .total_steps = total_steps};
}

}  // namespace redco
