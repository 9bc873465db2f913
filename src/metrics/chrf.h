// chrF and chrF++ (Popović 2015, 2017), equal to sacrebleu: F score of character and word n-grams.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct ChrfOptions {
  int char_order = 6;
  int word_order = 0;  // 2: chrF++
  double beta = 2;     // recall counts beta times as much as precision
  bool lowercase = false;
};

// chrF of a corpus, 0 to 100. references[i]: the references of predictions[i], at least one; the reference
// with the best score counts.
double chrf(const std::vector<std::string>& predictions,
            const std::vector<std::vector<std::string>>& references, const ChrfOptions& o = {});

}  // namespace redco
