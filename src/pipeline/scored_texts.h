// The texts of outputs, as metrics on texts compare them.
#pragma once

#include <string>
#include <vector>

namespace redco {

// The texts that metrics compare. Outputs have "prediction" (if it is a list, its first entry counts) and
// "reference", or "references", a list. UsageError: an output has no such texts.
struct ScoredTexts {
  std::vector<std::string> predictions;
  std::vector<std::vector<std::string>> references;
};
ScoredTexts scored_texts(const std::vector<std::string>& outputs);

}  // namespace redco
