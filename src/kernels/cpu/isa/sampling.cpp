// Weights of the tokens of a row, and their sums in buckets of scores.
#include "kernels/cpu/isa/sampling.h"

#include "kernels/cpu/isa/math.h"

namespace redco::kernels::REDCO_ISA {
namespace {

constexpr i64 kTogether = 256;  // tokens

template <class T>
REDCO_INLINE T weight(T x, const ScoreWeights<T>& of) {
  T w = exp_((x - of.top) * of.inverse_temperature);
  w = x == of.top ? T(1) : w;
  return x >= of.cut && w >= of.least ? w : T(0);
}

}  // namespace

template <class T>
ScoreRange<T> range_of_scores(const T* x, i64 n, T cut) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  T high = -kInf, low = kInf;
#pragma omp simd reduction(max : high) reduction(min : low)
  for (i64 i = 0; i < n; ++i) {
    const T h = x[i] >= cut ? x[i] : -kInf, l = x[i] >= cut ? x[i] : kInf;
    high = h > high ? h : high;
    low = l < low ? l : low;
  }
  // The parts of a reduction may begin with finite limits (see max_of).
  if (high < cut) high = -kInf;
  if (high == -kInf) low = kInf;
  return {high, low};
}

template <class T>
void weigh(const T* x, i64 n, const ScoreWeights<T>& of, T* w) {
  const ScoreWeights<T> o = of;
#pragma omp simd
  for (i64 i = 0; i < n; ++i) w[i] = weight(x[i], o);
}

template <class T>
double sum_of_weights(const T* x, i64 n, const ScoreWeights<T>& of) {
  const ScoreWeights<T> o = of;
  double total = 0;
  for (i64 begin = 0; begin < n; begin += kTogether) {
    const i64 end = begin + kTogether < n ? begin + kTogether : n;
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 i = begin; i < end; ++i) s += weight(x[i], o);
    total += static_cast<double>(s);
  }
  return total;
}

template <class T>
void add_to_buckets(const T* x, i64 n, const ScoreWeights<T>& of, const ScoreBuckets<T>& b, double* mass,
                    i32* count) {
  const ScoreWeights<T> o = of;
  constexpr T kLast = kScoreBuckets - 1;
  const T unit = b.unit, top = b.top, scale = b.scale;
  // Neighbours add to different copies, so that equal buckets don't wait for each other.
  double masses[2][kScoreBuckets] = {};
  i32 counts[2][kScoreBuckets] = {};
  T w[kTogether];
  i32 place[kTogether], one[kTogether];
  for (i64 begin = 0; begin < n; begin += kTogether) {
    const i64 m = begin + kTogether < n ? kTogether : n - begin;
    const T* const p = x + begin;
#pragma omp simd
    for (i64 i = 0; i < m; ++i) {
      T at = (top - p[i] * unit) * scale;
      at = at < kLast ? at : kLast;  // also NaN
      at = at > 0 ? at : 0;
      place[i] = static_cast<i32>(at);
      one[i] = p[i] >= o.cut ? 1 : 0;
    }
    if (!mass) {
      for (i64 i = 0; i < m; ++i) counts[i & 1][place[i]] += one[i];
      continue;
    }
#pragma omp simd
    for (i64 i = 0; i < m; ++i) w[i] = weight(p[i], o);
    for (i64 i = 0; i < m; ++i) {
      masses[i & 1][place[i]] += static_cast<double>(w[i]);
      counts[i & 1][place[i]] += one[i];
    }
  }
  for (int k = 0; k < kScoreBuckets; ++k) {
    if (mass) mass[k] += masses[0][k] + masses[1][k];
    count[k] += counts[0][k] + counts[1][k];
  }
}

#define INSTANTIATE(T)                                                   \
  template ScoreRange<T> range_of_scores(const T*, i64, T);              \
  template void weigh(const T*, i64, const ScoreWeights<T>&, T*);        \
  template double sum_of_weights(const T*, i64, const ScoreWeights<T>&); \
  template void add_to_buckets(const T*, i64, const ScoreWeights<T>&, const ScoreBuckets<T>&, double*, i32*);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace redco::kernels::REDCO_ISA
