// Time limits of tests that guard against quadratic work.
#pragma once

namespace redco::test {

// The sanitizers make the tests several times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kTimeFactor = 10;
#else
inline constexpr int kTimeFactor = 1;
#endif

}  // namespace redco::test
