// Time limits of tests that guard against quadratic work.
#pragma once

#include "base/sanitized.h"

namespace redco::test {

// The sanitizers make the tests several times slower.
#if REDCO_SANITIZED
inline constexpr int kTimeFactor = 10;
#else
inline constexpr int kTimeFactor = 1;
#endif

}  // namespace redco::test
