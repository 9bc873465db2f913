// What `redco check` concludes from its runs: differences from the reference run, tolerance, likely cause.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// A mesh and the rows of a replica in a micro-batch.
struct Combination {
  i64 dp = 1, mp = 1, micro = 1;
  std::string mesh() const;  // "2x1"
  bool operator==(const Combination&) const = default;
};

// The numbers of one run (check/step.h); its gradients are in a file.
struct CheckNumbers {
  std::map<std::string, double> terms, weights;  // mean of each loss term, and global weight
  std::string first_term;                        // the one that the first parameter group minimizes
  double grad_norm = 0;
  i64 rows = 0, length = 0;     // of the step; tokens of its longest row
  i64 rows_of_micro_batch = 0;  // over all replicas
  i64 longest_sum = 0;          // the most terms that a sum of the step has: tokens, or a dim of a parameter
  std::string examples;         // how source() differed from the recorded examples; "": it did not
  std::map<std::string, std::string> groups;  // parameter group of each gradient
  // Of the reference: how much each number changes if all parameters change by a unit of their last place.
  // Where sums cancel, rounding changes them by more than the tolerance.
  struct Rounding {
    std::map<std::string, double> terms, gradients;
    double grad_norm = 0;
  } rounding;
};
CheckNumbers check_numbers(const std::string& json);

// One value over its tolerance, or the largest difference of the gradients. `difference` is relative to the
// value's scale, as the tolerance is.
struct CheckDifference {
  std::string what;  // "loss", "weight of loss", "gradient norm", or the name of a parameter
  double value = 0, expected = 0, difference = 0;
};

struct CheckedRun {
  enum class Verdict : std::uint8_t { reference, equal, differs, failed, impossible };
  Combination combination;
  Verdict verdict = Verdict::equal;
  CheckNumbers numbers;
  CheckDifference largest;                   // of all gradients; what is "" for the reference
  std::vector<std::string> zero;             // parameters whose gradient is 0 in the reference
  std::vector<CheckDifference> differences;  // over the tolerance, the largest of each kind first
  std::string message;                       // of a failed or impossible one
  int code = 0;                              // of a failed one: its exit code
  bool compared() const { return verdict == Verdict::equal || verdict == Verdict::differs; }
};
const char* name_of(CheckedRun::Verdict v);

// The tolerance for sums in another order, relative to a value's scale. A sum of n fp32 numbers changes by
// about sqrt(n) x 2^-24 of its size; factor 16 is for ops that follow each other. At least 5e-5, because sums
// of few rows may cancel: ten times the largest difference of redco's own jobs. bf16 (activations of
// train.compute_dtype, not stored weights, which every mesh rounds alike): an op rounds to 2^-8 of a value,
// and the errors of rows average out, so 4 x 2^-8 more for a chain of ops.
double check_tolerance(i64 longest_sum, bool bf16);

// Compares a run with the reference. `gradients`, `expected`: their safetensors files. Scales:
//   gradient        largest element of the parameter's gradient, at least 0.1 of the largest of its group
//                   (what is smaller is rounding: sums that cancel, such as the two answers of a preference)
//   terms           the value, at least 1e-2
//   gradient norm   the value
// A scale is larger where rounding (of the reference) asks for it: 16 times the rounding is tolerated.
// Weights are sums of counts: their tolerance is 1e-9. Sets verdict, largest, zero and differences.
void compare(CheckedRun& run, const CheckNumbers& reference, double tolerance, const std::string& gradients,
             const std::string& expected);

// Sentences about the likely cause, one each; empty if all runs are equal. tolerance: that of compare().
// `runs`: with their verdicts.
std::vector<std::string> likely_causes(const std::vector<CheckedRun>& runs, double tolerance);

}  // namespace redco
