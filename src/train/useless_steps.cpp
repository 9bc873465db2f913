#include "train/useless_steps.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/words.h"
#include "comm/group.h"
#include "tensor/transfer.h"

namespace redco {

namespace {

bool has_non_finite(const Tensor& t) {
  constexpr i64 kPiece = i64{1} << 18;
  if (t.is_meta() || !(t.dtype() == DType::f32 || t.dtype() == DType::bf16)) return false;
  std::vector<float> piece;
  for (i64 at = 0; at < t.local_numel(); at += kPiece) {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, t.local_numel() - at)));
    copy_to_host<float>(t, at, std::span(piece));
    if (!std::ranges::all_of(piece, [](float v) { return std::isfinite(v); })) return true;
  }
  return false;
}

bool is_first_rank() { return Context::current().world().rank() == 0; }

}  // namespace

std::string non_finite_parameter(const ParamTree& params) {
  std::size_t first = params.size();
  for (std::size_t i = 0; i < params.size() && first == params.size(); ++i)
    if (params.values()[i].defined() && has_non_finite(params.values()[i])) first = i;
  for (const std::string& of_rank : Context::current().world().gather(std::to_string(first)))
    first = std::min<std::size_t>(first, std::stoull(of_rank));
  return first == params.size() ? "" : params.specs()[first].name;
}

std::string UselessSteps::remedy(const ParamTree& params) const {
  if (updated()) return "Lower train.learning_rate";
  if (const std::string name = non_finite_parameter(params); !name.empty())
    return fmt::format(
        "The weights are the cause: {} has a value that is NaN or infinite. Check the weights that the run began "
        "with (model.path, models, checkpoint.resume)",
        name);
  return "The weights are finite and this run has not updated them, so train.learning_rate is not the cause. Check "
         "the data and the loss; train.debug=true names the op that makes the first such value";
}

void UselessSteps::add(const StepOutcome& o, i64 step, OnNonFinite on_non_finite, const ParamTree& params) {
  ++steps_;
  if (o.weight == 0) ++without_weight_;
  if (o.finite) return;
  ++skipped_;
  const std::string what =
      fmt::format("[train] step {}: the loss or gradient is not finite (loss {}, gradient norm {})", step,
                  o.loss, o.grad_norm);
  if (on_non_finite == OnNonFinite::stop)
    throw Error(ExitCode::non_finite,
                fmt::format("{}; the last checkpoint is not affected. {}{}", what, remedy(params),
                            updated() ? ", or set train.on_non_finite: skip to skip such steps" : ""));
  // Later steps have the same parameters.
  if (steps_ == 1 && !non_finite_parameter(params).empty())
    throw Error(ExitCode::non_finite, fmt::format("{}. {}", what, remedy(params)));
  if (is_first_rank()) warn("{}: the step is skipped", what);
}

void UselessSteps::finish(const ParamTree& params) const {
  if (steps_ == 0) return;
  if (!updated())
    throw Error(
        ExitCode::non_finite,
        fmt::format(
            "[train] the loss or gradient was not finite in {} of {} of this run, so no parameter was "
            "updated. {}",
            steps_ == 1 ? "the only step" : "each", counted(steps_, "step"), remedy(params)));
  if (without_weight_ == steps_)
    throw ContentsError(
        "[data] the weight of the loss is 0 in each of the {} of this run, so nothing was learned: no token or row "
        "counts. Check that the examples have targets, and that data.max_length does not cut them off",
        counted(steps_, "step"));
  if (skipped_ > 0 && is_first_rank())
    warn("[train] {} of {} of this run were skipped, because the loss or gradient was not finite", skipped_,
         counted(steps_, "step"));
}

}  // namespace redco
