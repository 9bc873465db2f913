#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace redco {

double Schedule::at(i64 step) const {
  if (step < warmup_steps)
    return peak * static_cast<double>(step) / static_cast<double>(std::max<i64>(1, warmup_steps));
  if (kind == Kind::constant) return peak;
  const double progress = static_cast<double>(step - warmup_steps) /
                          static_cast<double>(std::max<i64>(1, total_steps - warmup_steps));
  if (kind == Kind::cosine) return peak * std::max(0.0, 0.5 * (1 + std::cos(M_PI * progress)));
  return peak * std::max(0.0, 1 - progress);
}

}  // namespace redco
