// All cases of the fixtures against rouge_score, sacrebleu and scikit-learn. The formulas are the same in
// double precision; 1e-9 of values up to 100 allows another order of additions.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/classification.h"
#include "metrics/porter.h"
#include "metrics/rouge.h"
#include "unicode/python_text.h"

namespace redco {
namespace {

using nlohmann::json;
constexpr double kTolerance = 1e-9;

std::vector<json> cases(const std::string& metric) {
  std::vector<json> out;
  std::ifstream in(REDCO_FIXTURES "/metrics/cases.jsonl");
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    json j = json::parse(line);
    if (j["metric"] == metric) out.push_back(std::move(j));
  }
  EXPECT_FALSE(out.empty()) << metric;
  return out;
}

void expect_part(const json& expected, const PrecisionRecall& got, const std::string& what) {
  EXPECT_NEAR(got.precision, expected[0].get<double>(), kTolerance) << what;
  EXPECT_NEAR(got.recall, expected[1].get<double>(), kTolerance) << what;
  EXPECT_NEAR(got.f1, expected[2].get<double>(), kTolerance) << what;
}

TEST(Rouge, EqualsRougeScore) {
  for (const json& c : cases("rouge")) {
    const Rouge r =
        rouge(c["prediction"].get<std::string>(), c["reference"].get<std::string>(), c["use_stemmer"]);
    expect_part(c["expected"]["rouge1"], r.rouge1, c.dump());
    expect_part(c["expected"]["rouge2"], r.rouge2, c.dump());
    expect_part(c["expected"]["rougeL"], r.rougeL, c.dump());
    expect_part(c["expected"]["rougeLsum"], r.rougeLsum, c.dump());
  }
}

TEST(Rouge, MeansOfLists) {
  for (const json& c : cases("rouge_mean_f")) {
    double sum[4] = {};
    const auto predictions = c["predictions"].get<std::vector<std::string>>();
    const auto references = c["references"].get<std::vector<std::string>>();
    for (size_t i = 0; i < predictions.size(); ++i) {
      const Rouge r = rouge(predictions[i], references[i], c["use_stemmer"]);
      sum[0] += r.rouge1.f1, sum[1] += r.rouge2.f1, sum[2] += r.rougeL.f1, sum[3] += r.rougeLsum.f1;
    }
    const char* names[] = {"rouge1", "rouge2", "rougeL", "rougeLsum"};
    for (int k = 0; k < 4; ++k)
      EXPECT_NEAR(sum[k] / static_cast<double>(predictions.size()), c["expected"][names[k]].get<double>(),
                  kTolerance);
  }
}

TEST(Rouge, TheBestReferenceCounts) {
  const Rouge one = rouge("a cat sat", "a cat sat", false);
  const Rouge two = rouge("a cat sat", std::vector<std::string>{"no such words", "a cat sat"}, false);
  EXPECT_EQ(two.rouge1.f1, one.rouge1.f1);
  EXPECT_EQ(two.rougeLsum.f1, 1);
}

TEST(Porter, EqualsNltkForAllWords) {
  std::ifstream in(REDCO_FIXTURES "/metrics/porter.tsv");
  int n = 0;
  for (std::string word, stem; std::getline(in, word, '\t') && std::getline(in, stem); ++n)
    EXPECT_EQ(porter_stem(word), stem) << word;
  EXPECT_GT(n, 500);
}

// A list of reference streams to the references of each prediction.
std::vector<std::vector<std::string>> by_prediction(const json& streams, size_t n) {
  std::vector<std::vector<std::string>> out(n);
  for (const json& stream : streams)
    for (size_t i = 0; i < n; ++i) out[i].push_back(stream[i]);
  return out;
}

TEST(BleuScore, EqualsSacrebleuForCorpora) {
  for (const json& c : cases("bleu")) {
    const auto predictions = c["predictions"].get<std::vector<std::string>>();
    const json& e = c["expected"];
    const Bleu b = bleu(predictions, by_prediction(c["references"], predictions.size()),
                        {.lowercase = c.value("lowercase", false)});
    EXPECT_NEAR(b.score, e["score"].get<double>(), kTolerance);
    EXPECT_NEAR(b.brevity_penalty, e["bp"].get<double>(), kTolerance);
    EXPECT_EQ(b.prediction_length, e["sys_len"].get<i64>());
    EXPECT_EQ(b.reference_length, e["ref_len"].get<i64>());
    for (int n = 0; n < 4; ++n) {
      EXPECT_EQ(b.counts[n], e["counts"][n].get<i64>());
      EXPECT_EQ(b.totals[n], e["totals"][n].get<i64>());
      EXPECT_NEAR(b.precisions[n], e["precisions"][n].get<double>(), kTolerance);
    }
  }
}

TEST(BleuScore, EqualsSacrebleuForSentences) {
  for (const json& c : cases("sentence_bleu"))
    EXPECT_NEAR(bleu({c["prediction"]}, {c["references"].get<std::vector<std::string>>()},
                     {.effective_order = c["effective_order"]})
                    .score,
                c["expected"]["score"].get<double>(), kTolerance)
        << c.dump();
}

TEST(BleuScore, TokenizesLike13a) {
  EXPECT_EQ(tokenize_13a("It's 3.5%, isn't it? U.S.-made 10-20"),
            "It's 3.5 % , isn't it ? U . S . -made 10 - 20");
  EXPECT_EQ(tokenize_13a("a&amp;b <skipped>x-\ny \n"), "a & b xy");
  EXPECT_EQ(tokenize_13a(""), "");
}

TEST(Chrf, EqualsSacrebleu) {
  for (const json& c : cases("chrf")) {
    const auto predictions = c["predictions"].get<std::vector<std::string>>();
    EXPECT_NEAR(chrf(predictions, by_prediction(c["references"], predictions.size()),
                     {.char_order = c["char_order"], .word_order = c["word_order"], .beta = c["beta"]}),
                c["expected"]["score"].get<double>(), kTolerance);
  }
  for (const json& c : cases("sentence_chrf"))
    EXPECT_NEAR(chrf({c["prediction"]}, {c["references"].get<std::vector<std::string>>()},
                     {.char_order = c["char_order"], .word_order = c["word_order"], .beta = c["beta"]}),
                c["expected"]["score"].get<double>(), kTolerance)
        << c.dump();
}

TEST(ClassScore, EqualsScikitLearn) {
  for (const json& c : cases("classification")) {
    const auto predictions = c["predictions"].get<std::vector<i64>>(),
               references = c["references"].get<std::vector<i64>>();
    const ClassScores s = class_scores(predictions, references);
    const std::map<std::string, double> got = {
        {"accuracy", s.accuracy},         {"matthews", s.matthews},
        {"f1_macro", s.f1_macro},         {"f1_micro", s.f1_micro},
        {"f1_weighted", s.f1_weighted},   {"precision_macro", s.precision_macro},
        {"recall_macro", s.recall_macro}, {"f1_binary", s.f1_binary}};
    for (const auto& [name, value] : c["expected"].items())
      EXPECT_NEAR(got.at(name), value.get<double>(), kTolerance) << name << " " << c.dump();
  }
}

TEST(ClassScore, ConfusionTableAndEmptyLists) {
  const std::vector<i64> p = {0, 1, 1}, r = {0, 0, 1};
  const auto m = confusion(p, r);
  EXPECT_EQ(m.at({0, 0}), 1);
  EXPECT_EQ(m.at({0, 1}), 1);
  EXPECT_EQ(class_scores({}, {}).accuracy, 0);
}

// Computed by hand: x and y = x^2 for 1, 2, 3 (r = 0.98974...), and ranks with a tie.
TEST(Correlation, OfValuesAndRanks) {
  const std::vector<double> x = {1, 2, 3}, y = {1, 4, 9}, t = {1, 1, 2}, c = {5, 5, 5};
  EXPECT_NEAR(pearson(x, y), 8 / std::sqrt(2 * (98.0 - 196.0 / 3)), 1e-12);
  EXPECT_NEAR(spearman(x, y), 1, 1e-12);
  EXPECT_NEAR(spearman(x, t), 1.5 / std::sqrt(2 * 1.5), 1e-12);
  EXPECT_TRUE(std::isnan(pearson(x, c)));
}

TEST(PythonText, LowerAndSplit) {
  EXPECT_EQ(python_lower("ÀÉΣΑΣ Kİ"), "àéσας ki̇");
  EXPECT_EQ(python_split("\u3000a\u00a0b\x1c c "), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(characters("a\xff").size(), 2u);
}

}  // namespace
}  // namespace redco
