// BLEU (Papineni et al. 2002), equal to sacrebleu (Post 2018): 13a tokenizer, exponential smoothing.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct Bleu {
  double score = 0;  // 0 to 100
  double brevity_penalty = 0;
  i64 prediction_length = 0, reference_length = 0;  // in tokens
  std::array<i64, 4> counts{}, totals{};            // matches and n-grams, n = 1 to 4
  std::array<double, 4> precisions{};               // 0 to 100
};

struct BleuOptions {
  bool lowercase = false;
  // For single sentences: average only over the orders for which the prediction is long enough.
  bool effective_order = false;
};

// mteval-v13a's tokens, joined by blanks.
std::string tokenize_13a(const std::string& text);

// BLEU of a corpus; references[i]: the references of predictions[i], at least one.
Bleu bleu(const std::vector<std::string>& predictions,
          const std::vector<std::vector<std::string>>& references, const BleuOptions& o = {});

}  // namespace redco
