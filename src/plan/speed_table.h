// SpeedTable: a measured speed as a function of a few sizes.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace redco {

// Seconds per unit of work (a FLOP, a byte) on a grid of sizes. Between the points the logarithm is linear in
// the logarithms of the sizes; outside of the grid the nearest border counts.
struct SpeedTable {
  std::vector<std::vector<double>> axes;  // each ascending, > 0
  std::vector<double> values;             // > 0; the last axis varies fastest

  // REQUIRES: at has a size for each axis.
  double operator()(std::span<const double> at) const;
  // What is wrong with it; "" if nothing is.
  std::string problem() const;
};

}  // namespace redco
