// Scores of predictions: values by hand, and bad lines.
#include "commands/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Score : public ::testing::Test {
 protected:
  std::vector<std::pair<std::string, double>> scores(const std::string& lines,
                                                     const std::vector<std::string>& metrics) {
    test::spill(dir / "p.jsonl", lines);
    ScoreOptions o;
    o.metrics = metrics;
    return score_file(dir / "p.jsonl", o);
  }
  std::vector<std::string> names(const std::string& lines, const std::vector<std::string>& metrics) {
    std::vector<std::string> out;
    for (const auto& [name, value] : scores(lines, metrics)) out.push_back(name);
    return out;
  }
  // The score `name` of the metric `metric`.
  double value(const std::string& lines, const std::string& metric, const std::string& name = "") {
    for (const auto& [n, v] : scores(lines, {metric}))
      if (n == (name.empty() ? metric : name)) return v;
    ADD_FAILURE() << metric << " gives no " << name;
    return 0;
  }
  std::string refused(const std::string& lines, const std::string& metric) {
    return error_text<ContentsError>([&] { scores(lines, {metric}); });
  }
  test::TempDir dir;
};

std::string line(const std::string& prediction, const std::string& reference) {
  return "{\"prediction\": " + prediction + ", \"reference\": " + reference + "}\n";
}

TEST_F(Score, MetricsKeepTheirOrderAfterTheCount) {
  const std::string texts = line("\"a b\"", "\"a b\"") + "\n" + line("\"c\"", "\"d\"");
  EXPECT_THAT(names(texts, {"exact_match", "bleu"}), ElementsAre("n", "exact_match", "bleu"));
  EXPECT_EQ(scores(texts, {"exact_match"})[0].second, 2);
  EXPECT_EQ(value(texts, "exact_match"), 0.5);
}

TEST_F(Score, AnyOfSeveralReferencesMatches) {
  const std::string lines = "{\"prediction\": \"b\", \"references\": [\"a\", \"b\"]}\n";
  EXPECT_EQ(value(lines, "exact_match"), 1);
  EXPECT_THAT(refused(lines, "accuracy"), HasSubstr("p.jsonl:1: accuracy takes one reference, got 2"));
  EXPECT_THAT(refused("{\"prediction\": \"b\", \"references\": []}\n", "exact_match"),
              HasSubstr("no \"reference\""));
}

TEST_F(Score, ClassesAreTextsNumbersOrBooleans) {
  // Confusion by hand: 2 true positives, 1 false positive, 1 true negative.
  const std::string numbers = line("1", "1") + line("1", "1") + line("1", "0") + line("0", "0");
  const std::string booleans =
      line("true", "true") + line("true", "true") + line("true", "false") + line("false", "false");
  for (const std::string& lines : {numbers, booleans}) {
    EXPECT_EQ(value(lines, "accuracy"), 0.75);
    EXPECT_NEAR(value(lines, "f1", "f1_binary"), 0.8, 1e-12);
    EXPECT_NEAR(value(lines, "f1", "f1_macro"), (0.8 + 2.0 / 3) / 2, 1e-12);
    EXPECT_NEAR(value(lines, "matthews"), (2 * 1 - 1 * 0) / std::sqrt(3 * 2 * 2 * 1.0), 1e-12);
  }
  // Named classes have no positive class.
  const std::string words = line("\"x\"", "\"x\"") + line("\"y\"", "\"x\"");
  EXPECT_EQ(value(words, "accuracy"), 0.5);
  EXPECT_THAT(names(words, {"f1"}), ::testing::Not(::testing::Contains("f1_binary")));
  EXPECT_THAT(refused(line("[1]", "1"), "accuracy"), HasSubstr("compares classes, got [1]"));
}

TEST_F(Score, CorrelationsCompareNumbers) {
  const std::string lines = line("1", "1") + line("2", "8") + line("3", "27.0");
  EXPECT_NEAR(value(lines, "spearman"), 1, 1e-12);
  EXPECT_LT(value(lines, "pearson"), 0.99);
  EXPECT_THAT(refused(line("\"1\"", "1"), "pearson"), HasSubstr("compares numbers, got \"1\""));
}

TEST_F(Score, AnErrorNamesTheBadLine) {
  EXPECT_THAT(refused(line("1", "1") + "[]\n", "accuracy"), HasSubstr("p.jsonl:2: not a JSON object: []"));
  EXPECT_THAT(refused("{\"reference\": 1}\n", "accuracy"),
              HasSubstr("p.jsonl:1: the line has no key prediction"));
  EXPECT_THAT(refused("\n", "accuracy"), HasSubstr("holds no prediction"));
  EXPECT_THAT(usage_error([&] { scores(line("1", "1"), {"acuracy"}); }), HasSubstr("did you mean accuracy?"));
}

}  // namespace
}  // namespace redco
