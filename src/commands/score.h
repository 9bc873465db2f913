// The command score: scores of a file of predictions against references.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pipelines/generation_metrics.h"

namespace redco {

// text_score_names(), then accuracy, f1, matthews, pearson, spearman.
const std::vector<std::string>& score_names();

struct ScoreOptions {
  std::vector<std::string> metrics = {"rouge", "bleu", "chrf"};
  TextScoreOptions text;
};

// Each line of `path` (plain, .gz, .zst, or - for standard input) is an object with "prediction", and
// "reference" or a list "references". rouge* is the mean F score from 0 to 1, bleu and chrf are from 0 to
// 100, f1 is macro, micro and weighted, and also binary if the classes are 0 and 1. Values are numbers for
// the correlations, texts, numbers or booleans for accuracy, f1 and matthews, of any type for exact_match,
// and texts for the others. Returns "n", then name and value in the order of o.metrics. UsageError: unknown
// metric. ContentsError with file and line: a bad line.
std::vector<std::pair<std::string, double>> score_file(const std::string& path, const ScoreOptions& o);

}  // namespace redco
