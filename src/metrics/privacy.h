// Differential privacy of the sampled Gaussian mechanism: each step takes every record with probability
// `sample_rate` (Poisson sampling), adds up vectors of norm at most C, one a record, and Gaussian noise of
// standard deviation noise_multiplier x C to the sum: DP-SGD (Abadi et al. 2016).
//
// By Renyi differential privacy: its moments of each order by Mironov, Talwar & Zhang 2019 (arXiv 1908.10530,
// section 3.3), added up over steps, and converted by Balle et al. 2020 (arXiv 1905.09982, theorem 21), the
// smallest epsilon over the orders 1.1, 1.2, ..., 10.9, 12, 13, ..., 63. The numbers of Opacus'
// RDPAccountant.
#pragma once

#include "base/types.h"

namespace redco {

struct SampledGaussian {
  double sample_rate = 0;       // 0 to 1
  double noise_multiplier = 0;  // >= 0; 0 has no privacy
};

// What a step of the mechanism costs at an order > 1; infinite where there is no privacy.
double renyi_divergence(const SampledGaussian& m, double order);

// The smallest epsilon for which `steps` steps are (epsilon, delta) private: infinite without noise, 0
// without a step. UsageError: a rate, noise, delta or number of steps outside its range.
double privacy_epsilon(const SampledGaussian& m, i64 steps, double delta);

// The least noise, to 1e-4, with which `steps` steps spend at most `epsilon`. UsageError: none up to 1e4
// does.
double noise_for_epsilon(double sample_rate, i64 steps, double epsilon, double delta);

}  // namespace redco
