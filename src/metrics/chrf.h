// chrF and chrF++ (Popović 2015, 2017) as sacrebleu computes them: F of character and word n-grams.
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

// 0 to 100, of a whole corpus: references[i] are those of predictions[i], at least one each; the one of the
// best score counts.
double chrf(const std::vector<std::string>& predictions,
            const std::vector<std::vector<std::string>>& references, const ChrfOptions& o = {});

}  // namespace redco
