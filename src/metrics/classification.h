// Scores of predicted classes, as scikit-learn computes them (zero_division 0), and correlations of values.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace redco {

struct ClassScores {
  double accuracy = 0;
  double matthews = 0;  // Matthews correlation (Gorodkin 2004 for several classes)
  // Over the classes that occur in either list.
  double f1_macro = 0, f1_micro = 0, f1_weighted = 0, precision_macro = 0, recall_macro = 0;
  double f1_binary = 0;  // of the class 1
};

// The lists are equally long; empty ones give zeros.
ClassScores class_scores(std::span<const i64> predictions, std::span<const i64> references);

// counts[{reference, prediction}].
std::map<std::pair<i64, i64>, i64> confusion(std::span<const i64> predictions,
                                             std::span<const i64> references);

// The same for people: a row for each true class, a column for each predicted one. names: of the classes 0,
// 1, ..., of which 12 bytes are shown.
std::string confusion_table(std::span<const i64> predictions, std::span<const i64> references,
                            const std::vector<std::string>& names);

// Correlation of values (Pearson), and of their ranks, ties sharing the mean rank (Spearman). NaN where
// either list is constant or shorter than 2.
double pearson(std::span<const double> x, std::span<const double> y);
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace redco
