// Scores of predicted classes, equal to scikit-learn (zero_division 0), and correlations of values.
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
  // Over the classes in either list.
  double f1_macro = 0, f1_micro = 0, f1_weighted = 0, precision_macro = 0, recall_macro = 0;
  double f1_binary = 0;  // of the class 1
};

// REQUIRES: lists of equal length. Empty lists give zeros.
ClassScores class_scores(std::span<const i64> predictions, std::span<const i64> references);

// counts[{reference, prediction}].
std::map<std::pair<i64, i64>, i64> confusion(std::span<const i64> predictions,
                                             std::span<const i64> references);

// The same as a text table: one row per true class, one column per predicted class. names: of the classes 0,
// 1, ...; the table shows 12 bytes of each.
std::string confusion_table(std::span<const i64> predictions, std::span<const i64> references,
                            const std::vector<std::string>& names);

// Correlation of values (Pearson), and of their ranks, with the mean rank for ties (Spearman). NaN if either
// list is constant or shorter than 2.
double pearson(std::span<const double> x, std::span<const double> y);
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace redco
