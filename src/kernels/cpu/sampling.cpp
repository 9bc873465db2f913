#include "kernels/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/isa/sampling.h"
#include "kernels/isa.h"

namespace redco::kernels {

template <class T>
ScoreRange<T> range_of_scores(const T* x, i64 n, T cut) {
  return REDCO_ISA_CALL(range_of_scores(x, n, cut));
}

template <class T>
i64 first_of_highest(const T* x, i64 n) {
  const T high = range_of_scores(x, n, std::numeric_limits<T>::lowest()).high;
  return std::isinf(high) && high < 0 ? -1 : std::find(x, x + n, high) - x;
}

template <class T>
void weigh(const T* x, i64 n, const ScoreWeights<T>& of, T* w) {
  REDCO_ISA_CALL(weigh(x, n, of, w));
}

template <class T>
double sum_of_weights(const T* x, i64 n, const ScoreWeights<T>& of) {
  return REDCO_ISA_CALL(sum_of_weights(x, n, of));
}

template <class T>
ScoreBuckets<T>::ScoreBuckets(T high, T low) {
  const T width = high / 4 - low / 4;
  unit = high == low                                  ? T(1)
         : width > std::numeric_limits<T>::max() / 16 ? T(0x1p-10)
         : width < T(0x1p-60)                         ? T(0x1p90)
                                                      : T(1);
  top = high * unit;
  const T range = top - low * unit;
  scale = range > 0 ? kScoreBuckets / range : 0;
}

template <class T>
int ScoreBuckets<T>::of(T x) const {
  constexpr T kLast = kScoreBuckets - 1;
  T at = (top - x * unit) * scale;
  at = at < kLast ? at : kLast;
  return static_cast<int>(at > 0 ? at : 0);
}

template <class T>
void add_to_buckets(const T* x, i64 n, const ScoreWeights<T>& of, const ScoreBuckets<T>& b, double* mass,
                    i32* count) {
  REDCO_ISA_CALL(add_to_buckets(x, n, of, b, mass, count));
}

#define INSTANTIATE(T)                                                   \
  template ScoreRange<T> range_of_scores(const T*, i64, T);              \
  template i64 first_of_highest(const T*, i64);                          \
  template void weigh(const T*, i64, const ScoreWeights<T>&, T*);        \
  template double sum_of_weights(const T*, i64, const ScoreWeights<T>&); \
  template struct ScoreBuckets<T>;                                       \
  template void add_to_buckets(const T*, i64, const ScoreWeights<T>&, const ScoreBuckets<T>&, double*, i32*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels
