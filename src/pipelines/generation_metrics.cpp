#include "pipelines/generation_metrics.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/rouge.h"
#include "metrics/word_errors.h"
#include "pipeline/scored_texts.h"

namespace redco {

std::vector<std::pair<std::string, double>> text_scores(
    const std::string& family, const std::vector<std::string>& predictions,
    const std::vector<std::vector<std::string>>& references, const TextScoreOptions& o) {
  const double n = static_cast<double>(predictions.size());
  if (family == "rouge") {
    double sum[4] = {};
    std::size_t wordless = 0;
    for (std::size_t i = 0; i < predictions.size(); ++i) {
      wordless += !has_rouge_words(predictions[i]) && !predictions[i].empty();
      const Rouge r = rouge(predictions[i], references[i], o.use_stemmer);
      sum[0] += r.rouge1.f1, sum[1] += r.rouge2.f1, sum[2] += r.rougeL.f1, sum[3] += r.rougeLsum.f1;
    }
    if (wordless > 0)
      warn(
          "[metrics] {} of {} no Latin letter or digit and score 0: rouge compares words of a-z and 0-9, as "
          "rouge_score does. For other scripts use chrf or bleu",
          wordless,
          predictions.size() == 1 ? "1 prediction has"
                                  : fmt::format("{} predictions have", predictions.size()));
    return {
        {"rouge1", sum[0] / n}, {"rouge2", sum[1] / n}, {"rougeL", sum[2] / n}, {"rougeLsum", sum[3] / n}};
  }
  if (family == "bleu") return {{family, bleu(predictions, references, {.lowercase = o.lowercase}).score}};
  if (family == "chrf" || family == "chrf++")
    return {{family, chrf(predictions, references,
                          {.word_order = family == "chrf" ? 0 : 2, .lowercase = o.lowercase})}};
  if (family == "wer" || family == "cer") {
    const ErrorRates rates = error_rates(predictions, references);
    return {{family, family == "wer" ? rates.wer() : rates.cer()}};
  }
  REDCO_CHECK(family == "exact_match", "{}", family);
  double same = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i)
    same += std::find(references[i].begin(), references[i].end(), predictions[i]) != references[i].end();
  return {{family, same / n}};
}

bool asks_generation_metrics(const std::vector<std::string>& families) {
  return families.empty() ||
         std::any_of(families.begin(), families.end(), [](const std::string& f) { return f != "loss"; });
}

std::map<std::string, double> generation_metrics(const std::vector<std::string>& families,
                                                 const std::vector<std::string>& outputs,
                                                 const MetricFamilies& known) {
  const ScoredTexts texts = scored_texts(outputs);
  std::map<std::string, double> out;
  for (const auto& [family, names] : known)
    if (families.empty() || std::find(families.begin(), families.end(), family) != families.end())
      for (const auto& [name, value] : text_scores(family, texts.predictions, texts.references))
        out[name] = value;
  return out;
}

}  // namespace redco
