// Loops over the scores of one row's tokens, for sampling. T is float or double. Tokens count if their score
// is at least `cut`, a finite number; so NaN and -inf never count. On the calling thread.
#pragma once

#include "base/types.h"

namespace redco::kernels {

template <class T>
struct ScoreRange {
  T high, low;  // -inf and inf if no token counts
};
template <class T>
ScoreRange<T> range_of_scores(const T* x, i64 n, T cut);

// The index of the first of the highest scores above -inf; -1 if there is none.
template <class T>
i64 first_of_highest(const T* x, i64 n);

// The weight of a token: exp((x - top) inverse_temperature), and 1 of `top`; 0 if it is below `least`, or if
// the token does not count.
template <class T>
struct ScoreWeights {
  T top, inverse_temperature, cut, least;
};
template <class T>
void weigh(const T* x, i64 n, const ScoreWeights<T>& of, T* w);
template <class T>
double sum_of_weights(const T* x, i64 n, const ScoreWeights<T>& of);

// Buckets of equal width between two scores: the first begins at `high`, the last holds all that is lower.
constexpr int kScoreBuckets = 256;
template <class T>
struct ScoreBuckets {
  // REQUIRES: high >= low, finite.
  ScoreBuckets(T high, T low);
  // The bucket of a score, rising as scores fall.
  int of(T x) const;

  T unit, top, scale;  // bucket (top - x unit) scale; unit is a power of two that avoids overflow
};
// Adds the weights (null: not computed) and the numbers of the tokens in each bucket.
template <class T>
void add_to_buckets(const T* x, i64 n, const ScoreWeights<T>& of, const ScoreBuckets<T>& b, double* mass,
                    i32* count);

}  // namespace redco::kernels
