// Metrics of generated texts, for the evaluations of text-generating pipelines and for `redco score`.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "metrics/text_metrics.h"

namespace redco {

struct TextScoreOptions {
  bool use_stemmer = true;  // for rouge
  bool lowercase = false;   // for bleu and chrf
};

// The names that text_scores() knows: the families of built_in_text_metrics() and speech_metrics(), and
// "chrf++".
const std::vector<std::string>& text_score_names();

// The scores of one of these families as names and values:
// rouge (mean F, 0 to 1), bleu and chrf (of the whole corpus, 0 to 100), exact_match (share of equal texts),
// wer and cer (errors per word and character). references[i] belong to predictions[i], at least one each.
// BugError for another name.
std::vector<std::pair<std::string, double>> text_scores(
    const std::string& family, const std::vector<std::string>& predictions,
    const std::vector<std::vector<std::string>>& references, const TextScoreOptions& o = {});

// Metrics of an evaluation's outputs (scored_texts()). `families`: eval.metrics; empty: all; "loss" and
// metrics of plugins are ignored. known: those of the pipeline.
std::map<std::string, double> generation_metrics(const std::vector<std::string>& families,
                                                 const std::vector<std::string>& outputs,
                                                 const MetricFamilies& known = built_in_text_metrics());
// Whether eval.metrics has any of them.
bool asks_generation_metrics(const std::vector<std::string>& families);

}  // namespace redco
