// Scores of a file of predictions against references: what the command `score` does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipelines/generation_metrics.h"

namespace redco {

// rouge, bleu, chrf, chrf++, exact_match, accuracy, f1, matthews, pearson, spearman.
const std::vector<std::string>& score_names();

struct ScoreOptions {
  std::vector<std::string> metrics = {"rouge", "bleu", "chrf"};
  TextScoreOptions text;
};

// Each line of `path` (plain, .gz, or - for standard input) is an object with "prediction" and "reference",
// or "references", a list. rouge* are mean F from 0 to 1, bleu and chrf from 0 to 100, f1 comes as macro,
// micro and weighted, and as binary where the classes are 0 and 1. Texts for the first five; texts, numbers
// or booleans for accuracy, f1 and matthews; numbers for the correlations. -> name and value, in the order
// asked for, behind "n". UsageError: unknown metric; ContentsError with file and line otherwise.
std::vector<std::pair<std::string, double>> score_file(const std::string& path, const ScoreOptions& o);

}  // namespace redco
