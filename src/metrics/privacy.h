// Differential privacy of the sampled Gaussian mechanism, DP-SGD (Abadi et al. 2016): each step samples every
// record with probability `sample_rate` (Poisson sampling), sums one vector of norm at most C per record, and
// adds Gaussian noise of standard deviation noise_multiplier x C.
//
// Uses Renyi differential privacy: the moments of each order (Mironov, Talwar & Zhang 2019, arXiv 1908.10530,
// section 3.3) are summed over the steps and converted (Balle et al. 2020, arXiv 1905.09982, theorem 21); the
// smallest epsilon over the orders 1.1, 1.2, ..., 10.9, 12, 13, ..., 63 counts. Equal to Opacus'
// RDPAccountant.
#pragma once

#include "base/types.h"

namespace redco {

struct SampledGaussian {
  double sample_rate = 0;       // 0 to 1
  double noise_multiplier = 0;  // >= 0; 0: no privacy
};

// The privacy cost of a step at an order > 1; infinite without noise.
double renyi_divergence(const SampledGaussian& m, double order);

// The smallest epsilon for which `steps` steps are (epsilon, delta) private: infinite without noise, 0 for no
// steps. UsageError: a rate, noise, delta or number of steps out of range.
double privacy_epsilon(const SampledGaussian& m, i64 steps, double delta);

// The lowest noise multiplier, to 1e-4, for which `steps` steps cost at most `epsilon`. UsageError if more
// than 1e4 is needed.
double noise_for_epsilon(double sample_rate, i64 steps, double epsilon, double delta);

}  // namespace redco
