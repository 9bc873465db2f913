// Metrics of generated texts: what pipelines that write text report of an evaluation, and `redco score`.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace redco {

// What eval.metrics may name, each with the metrics it stands for: rouge (rouge1, rouge2, rougeL, rougeLsum:
// mean F, 0 to 1), bleu and chrf (of the whole corpus, 0 to 100), exact_match (share of equal texts).
const std::vector<std::pair<std::string, std::vector<std::string>>>& generation_metric_families();

struct TextScoreOptions {
  bool use_stemmer = true;  // of rouge
  bool lowercase = false;   // of bleu and chrf
};

// One of these families, or "chrf++", as name and value. references[i] are those of predictions[i], at least
// one each. BugError for another name.
std::vector<std::pair<std::string, double>> text_scores(
    const std::string& family, const std::vector<std::string>& predictions,
    const std::vector<std::vector<std::string>>& references, const TextScoreOptions& o = {});

// Of the outputs of an evaluation: JSON objects with "prediction" (of several, the first counts) and
// "reference", or "references", a list. `families`: eval.metrics; none are all, "loss" is none of them.
std::map<std::string, double> generation_metrics(const std::vector<std::string>& families,
                                                 const std::vector<std::string>& outputs);
// Whether these ask for any of them.
bool asks_generation_metrics(const std::vector<std::string>& families);

}  // namespace redco
