// Range kernels of token sampling, declared once per instruction set (kernels/sampling.h). They run on the
// calling thread.
#pragma once

#include "kernels/sampling.h"

namespace redco::kernels {

#define REDCO_DECLARE(ISA)                                                                                  \
  namespace ISA {                                                                                           \
  template <class T>                                                                                        \
  ScoreRange<T> range_of_scores(const T* x, i64 n, T cut);                                                  \
  template <class T>                                                                                        \
  void weigh(const T* x, i64 n, const ScoreWeights<T>& of, T* w);                                           \
  template <class T>                                                                                        \
  double sum_of_weights(const T* x, i64 n, const ScoreWeights<T>& of);                                      \
  template <class T>                                                                                        \
  void add_to_buckets(const T* x, i64 n, const ScoreWeights<T>& of, const ScoreBuckets<T>& b, double* mass, \
                      i32* count);                                                                          \
  }
REDCO_DECLARE(baseline)
REDCO_DECLARE(avx2)
REDCO_DECLARE(avx512)
#undef REDCO_DECLARE

}  // namespace redco::kernels
