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

namespace {

using NamedScores = std::vector<std::pair<std::string, double>>;

// What a metric compares: references[i] belong to predictions[i].
struct ScoredPairs {
  const std::vector<std::string>& predictions;
  const std::vector<std::vector<std::string>>& references;
  const TextScoreOptions& options;
};

NamedScores rouge_scores(const ScoredPairs& p) {
  const double n = static_cast<double>(p.predictions.size());
  double sum[4] = {};
  std::size_t wordless = 0;
  for (std::size_t i = 0; i < p.predictions.size(); ++i) {
    wordless += !has_rouge_words(p.predictions[i]) && !p.predictions[i].empty();
    const Rouge r = rouge(p.predictions[i], p.references[i], p.options.use_stemmer);
    sum[0] += r.rouge1.f1, sum[1] += r.rouge2.f1, sum[2] += r.rougeL.f1, sum[3] += r.rougeLsum.f1;
  }
  if (wordless > 0)
    warn(
        "[metrics] {} of {} no Latin letter or digit and score 0: rouge compares words of a-z and 0-9, as "
        "rouge_score does. For other scripts use chrf or bleu",
        wordless,
        p.predictions.size() == 1 ? "1 prediction has"
                                  : fmt::format("{} predictions have", p.predictions.size()));
  return {{"rouge1", sum[0] / n}, {"rouge2", sum[1] / n}, {"rougeL", sum[2] / n}, {"rougeLsum", sum[3] / n}};
}

NamedScores bleu_score(const ScoredPairs& p) {
  return {{"bleu", bleu(p.predictions, p.references, {.lowercase = p.options.lowercase}).score}};
}

template <int word_order>
NamedScores chrf_score(const ScoredPairs& p) {
  return {{word_order == 0 ? "chrf" : "chrf++",
           chrf(p.predictions, p.references, {.word_order = word_order, .lowercase = p.options.lowercase})}};
}

NamedScores wer_score(const ScoredPairs& p) {
  return {{"wer", error_rates(p.predictions, p.references).wer()}};
}
NamedScores cer_score(const ScoredPairs& p) {
  return {{"cer", error_rates(p.predictions, p.references).cer()}};
}

NamedScores exact_match_score(const ScoredPairs& p) {
  double same = 0;
  for (std::size_t i = 0; i < p.predictions.size(); ++i)
    same += std::ranges::find(p.references[i], p.predictions[i]) != p.references[i].end();
  return {{"exact_match", same / static_cast<double>(p.predictions.size())}};
}

struct TextScore {
  const char* name;
  NamedScores (*of)(const ScoredPairs&);
};
constexpr TextScore kTextScores[] = {
    {"rouge", rouge_scores},
    {"bleu", bleu_score},
    {"chrf", chrf_score<0>},
    {"chrf++", chrf_score<2>},
    {"wer", wer_score},
    {"cer", cer_score},
    {"exact_match", exact_match_score},
};

}  // namespace

const std::vector<std::string>& text_score_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out;
    for (const TextScore& s : kTextScores) out.push_back(s.name);
    return out;
  }();
  return kNames;
}

std::vector<std::pair<std::string, double>> text_scores(
    const std::string& family, const std::vector<std::string>& predictions,
    const std::vector<std::vector<std::string>>& references, const TextScoreOptions& o) {
  const auto* const score =
      std::ranges::find_if(kTextScores, [&](const TextScore& s) { return family == s.name; });
  REDCO_CHECK(score != std::end(kTextScores), "{}", family);
  return score->of({predictions, references, o});
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
