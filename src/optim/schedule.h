// Learning rate schedules.
#pragma once

#include "base/types.h"

namespace redco {

// Warm-up from 0, then the given shape, down to 0 at total_steps (Hugging Face's get_*_schedule_with_warmup).
struct Schedule {
  enum class Kind : std::uint8_t { linear, cosine, constant } kind = Kind::linear;
  double peak = 0;
  i64 warmup_steps = 0, total_steps = 0;
  double at(i64 step) const;  // step counts from 0: the first update uses at(0)
};

}  // namespace redco
