// The report of `redco check`.
#pragma once

#include <string>
#include <vector>

#include "check/compare.h"

namespace redco {

struct CheckReport {
  std::string pipeline;
  bool bf16 = false;
  double tolerance = 0;
  std::vector<CheckedRun> runs;
  std::vector<std::string> causes;
  // "2x1 micro 1, 2x1 micro 4: failed: MESSAGE" for each message of runs that failed or are impossible.
  std::vector<std::string> messages() const;
  // What the comparison can't show: a sentence about gradients that are 0; "" if there are none.
  std::string note() const;
  // 0: all compared runs are equal and none failed; check_failed: one differs or failed. If there is nothing
  // to compare with, the code of the first run that failed; usage if no combination is possible.
  int exit_code() const;
};
std::string to_text(const CheckReport& r);
std::string to_json(const CheckReport& r);

// "2x1 with 4 rows of a replica in a micro-batch"
std::string title_of(const CheckedRun& r);

}  // namespace redco
