// A sum of squares of fp32 numbers that does not depend on the order of the numbers, nor on how they are
// distributed to blocks, tensors and ranks (after Demmel & Nguyen, "Parallel Reproducible Summation", 2015).
//
// Each square is split into multiples of fixed units, 2^40 apart: its parts in the bins. The parts of a
// number depend on that number only, and their sums are exact integers. The result uses the three highest
// bins, so its relative error is below n 2^-78.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "base/types.h"

namespace redco {

class SquareSum {
 public:
  // Bin b counts multiples of 2^(40 b - 298): bin 0 has the square of the smallest number, bin 13 that of the
  // largest one.
  static constexpr int kBins = 14, kWidth = 40, kLowest = -298;
  // A bin's integer as two doubles, hi 2^40 + lo with 0 <= lo < 2^40; and the number of blocks that have an
  // element that is not finite.
  static constexpr int kWords = 2 * kBins + 1;
  static constexpr double unit(int bin) { return kUnits[bin]; }

  // The words of the sum of two sums are the sums of their words, followed by normalize(). At most 8192 of
  // them may be added before.
  static void normalize(std::span<double> words) {
    for (int b = 0; b < kBins; ++b) {
      const double carry = std::floor(std::ldexp(words[2 * b + 1], -kWidth));
      words[2 * b] += carry;
      words[2 * b + 1] -= std::ldexp(carry, kWidth);
    }
  }
  // The sum; NaN if an element is not finite.
  static double value(std::span<const double> words) {
    if (words[2 * kBins] > 0) return std::numeric_limits<double>::quiet_NaN();
    int top = kBins - 1;
    while (top > 0 && words[2 * top] == 0 && words[2 * top + 1] == 0) --top;
    double sum = 0;
    for (int b = std::max(0, top - 2); b <= top; ++b)
      sum += std::ldexp(std::ldexp(words[2 * b], kWidth) + words[2 * b + 1], kLowest + kWidth * b);
    return sum;
  }

 private:
  static constexpr std::array<double, kBins> kUnits = [] {
    std::array<double, kBins> units{};
    double unit = 1;
    for (int i = 0; i > kLowest; --i) unit /= 2;
    for (double& u : units) {
      u = unit;
      for (int i = 0; i < kWidth; ++i) unit *= 2;
    }
    return units;
  }();
};

}  // namespace redco
