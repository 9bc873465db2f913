// Learning rate schedules: pieces, one after another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// A piece goes from the end of the one before (of the first one: step 0) to a step, or to a share of all
// steps; without both to the end. Steps count from 0; a share of steps is rounded up.
struct SchedulePiece {
  enum class Shape : std::uint8_t { constant, linear, cosine, exponential } shape = Shape::linear;
  std::optional<i64> until_step{};
  std::optional<double> until_share{};
  double from = 0, to = 0;  // learning rates: of its first step, and of the step after its last
};

struct Schedule {
  std::vector<SchedulePiece> pieces;
  i64 total_steps = 0;
  // The learning rate of a step. Steps after the last piece have the rate at which it ends.
  double at(i64 step) const;
  // The first step after piece i: at least that of the piece before.
  i64 end_of(std::size_t i) const;
  i64 warmup_steps() const;  // steps of the first piece if it rises, else 0
  double peak() const;       // the highest learning rate
  // "0 to 0.0003 in the first 10 % of steps (linear), 0 at the end (cosine)"; independent of total_steps.
  std::string words() const;
};

}  // namespace redco
