// redco check: which combinations it makes, what it concludes from their numbers, and its report.
#include "check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "check/record.h"
#include "ckpt/safetensors_write.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Verdict = CheckedRun::Verdict;

std::vector<std::string> named(const std::vector<Combination>& all) {
  std::vector<std::string> out;
  for (const Combination& c : all) out.push_back(fmt::format("{}:{}", c.mesh(), c.micro));
  return out;
}

TEST(Check, EveryMeshIsCombinedWithEverySize) {
  EXPECT_THAT(named(combinations({}, 8)), ElementsAre("1x1:1", "1x1:4", "2x1:1", "2x1:4", "1x2:1", "1x2:4"));
  // By default every replica has a full micro-batch.
  EXPECT_THAT(named(combinations({}, 6)), ElementsAre("1x1:1", "1x1:3", "2x1:1", "2x1:3", "1x2:1", "1x2:3"));
  EXPECT_THAT(named(combinations({}, 1)), ElementsAre("1x1:1", "2x1:1", "1x2:1"));
  EXPECT_THAT(named(combinations({.meshes = "2x2:8,1x1", .micro = "3,1"}, 8)),
              ElementsAre("2x2:8", "1x1:3", "1x1:1"));
  for (const char* bad :
       {"", "2", "2x", "x2", "0x1", "2x1x1", "2x1:", "2x1:0", "2x1:1:1", "-1x1", "1x1,", "2X1"})
    EXPECT_THAT(error_text<UsageError>([&] { combinations({.meshes = bad, .micro = {}}, 8); }),
                HasSubstr("is not a mesh; expected DPxMP"))
        << bad;
  for (const char* bad : {"", "0", "a", "1,", "99999999"})
    EXPECT_THAT(error_text<UsageError>([&] { combinations({.micro = bad}, 8); }),
                HasSubstr("is not a number of rows"))
        << bad;
  EXPECT_THAT(error_text<UsageError>([&] { combinations({.meshes = "1x1,1x1:4", .micro = "4"}, 8); }),
              HasSubstr("1x1 with 4 rows is given twice"));
}

TEST(Check, DivisionsThatLeaveAReplicaWithoutRowsAreImpossible) {
  EXPECT_EQ(impossible({.dp = 2, .mp = 4, .micro = 4}, 8), "");
  EXPECT_EQ(impossible({.dp = 3, .mp = 1, .micro = 3}, 8), "");  // 3 + 3 + 2
  EXPECT_THAT(impossible({.dp = 2, .mp = 1, .micro = 5}, 8), HasSubstr("a replica has at most 4 rows"));
  EXPECT_THAT(impossible({.dp = 9, .mp = 1, .micro = 1}, 8),
              HasSubstr("some of the 9 replicas would get none"));
}

TEST(Check, TheToleranceGrowsWithTheSum) {
  EXPECT_DOUBLE_EQ(check_tolerance(1, false), 5e-5);
  EXPECT_DOUBLE_EQ(check_tolerance(i64{1} << 20, false), std::exp2(4 + 10 - 24));
  EXPECT_DOUBLE_EQ(check_tolerance(1, true), 5e-5 + std::exp2(-6));
}

// A file with these gradients, each a vector.
std::string gradients(const TempDir& dir, const std::string& name,
                      const std::map<std::string, std::vector<float>>& values) {
  std::vector<ckpt::TensorPlan> plans;
  for (const auto& [tensor, v] : values)
    plans.push_back({tensor, ckpt::StoredType::f32, {static_cast<i64>(v.size())}});
  auto file = ckpt::SafetensorsWriter::create(dir.path(), ckpt::plan_file(name, plans));
  for (const auto& [tensor, v] : values) file.write(tensor, {{0, static_cast<i64>(v.size())}}, v.data());
  file.commit();
  return dir / name;
}

CheckNumbers numbers(double loss, double norm = 1, double weight = 8) {
  CheckNumbers n;
  n.terms = {{"loss", loss}};
  n.first_term = "loss";
  n.weights = {{"loss", weight}};
  n.grad_norm = norm;
  n.groups = {{"a", "one"}, {"b", "one"}, {"c", "two"}};
  return n;
}

TEST(Check, ValuesAreComparedOnTheirScale) {
  const TempDir dir;
  const std::string expected =
      gradients(dir, "expected", {{"a", {1, -2, 0}}, {"b", {1e-6F, 0}}, {"c", {1e-7F}}});
  const auto compared = [&](const CheckNumbers& mine,
                            const std::map<std::string, std::vector<float>>& values) {
    CheckedRun run{.numbers = mine};
    compare(run, numbers(2), 1e-4, gradients(dir, "mine", values), expected);
    return run;
  };
  CheckedRun run = compared(numbers(2), {{"a", {1, -2, 0}}, {"b", {1e-6F, 0}}, {"c", {1e-7F}}});
  EXPECT_EQ(run.verdict, Verdict::equal);
  EXPECT_EQ(run.largest.difference, 0);
  EXPECT_THAT(run.zero, IsEmpty());
  // The largest element of a parameter is its scale. That of b is at least 0.1 of the group's 2.
  run = compared(numbers(2.0001), {{"a", {1, -2, 1.5e-4F}}, {"b", {2.5e-6F, 0}}, {"c", {1e-7F}}});
  EXPECT_EQ(run.verdict, Verdict::equal);
  EXPECT_EQ(run.largest.what, "a");
  EXPECT_NEAR(run.largest.difference, 0.75e-4, 1e-9);
  run = compared(numbers(2), {{"a", {1, -2, 3e-4F}}, {"b", {2.6e-5F, 0}}, {"c", {1e-7F}}});
  ASSERT_EQ(run.differences.size(), 2u);
  EXPECT_EQ(run.verdict, Verdict::differs);
  EXPECT_EQ(run.differences[0].what, "a");
  EXPECT_EQ(run.differences[1].what, "b");
  // A small group has its own scale.
  run = compared(numbers(2), {{"a", {1, -2, 0}}, {"b", {1e-6F, 0}}, {"c", {2e-7F}}});
  ASSERT_EQ(run.differences.size(), 1u);
  EXPECT_EQ(run.differences[0].what, "c");
  // Numbers.
  const std::map<std::string, std::vector<float>> same = {
      {"a", {1, -2, 0}}, {"b", {1e-6F, 0}}, {"c", {1e-7F}}};
  for (const auto& [mine, what] :
       std::vector<std::pair<CheckNumbers, std::string>>{{numbers(2.001), "loss"},
                                                         {numbers(2, 1.001), "gradient norm"},
                                                         {numbers(2, 1, 8.00001), "weight of loss"},
                                                         {numbers(NAN), "loss"}}) {
    run = compared(mine, same);
    ASSERT_EQ(run.differences.size(), 1u) << what;
    EXPECT_EQ(run.differences[0].what, what);
  }
}

TEST(Check, WhatRoundingChangesIsToleratedSixteenTimes) {
  const TempDir dir;
  const std::string expected = gradients(dir, "expected", {{"a", {1, -2}}, {"b", {1, 0}}});
  CheckNumbers reference = numbers(2);
  reference.rounding = {.terms = {{"loss", 1e-4}}, .gradients = {{"a", 1e-4}}, .grad_norm = 1e-4};
  const auto differences = [&](double loss, double norm, float a, float b) {
    CheckedRun run{.numbers = numbers(loss, norm)};
    compare(run, reference, 1e-4, gradients(dir, "mine", {{"a", {a, -2}}, {"b", {b, 0}}}), expected);
    std::vector<std::string> what;
    for (const CheckDifference& d : run.differences) what.push_back(d.what);
    return what;
  };
  EXPECT_THAT(differences(2 + 15e-4, 1 + 15e-4, 1 + 15e-4F, 1), IsEmpty());
  EXPECT_THAT(differences(2 + 17e-4, 1 + 17e-4, 1 + 17e-4F, 1 + 15e-4F),
              ElementsAre("loss", "gradient norm", "b", "a"));
}

TEST(Check, ATermOrGradientOfOneRunOnlyIsADifference) {
  const TempDir dir;
  const std::string expected = gradients(dir, "expected", {{"a", {1}}, {"b", {0}}});
  CheckedRun run{.numbers = numbers(2)};
  run.numbers.terms["kl"] = 0;
  compare(run, numbers(2), 1e-4, gradients(dir, "mine", {{"b", {0}}, {"c", {1}}}), expected);
  EXPECT_EQ(run.verdict, Verdict::differs);
  std::vector<std::string> what;
  for (const CheckDifference& d : run.differences) what.push_back(d.what);
  EXPECT_THAT(what, ElementsAre("kl", "a (no gradient)", "c (no gradient in the reference)"));
  EXPECT_THAT(run.zero, ElementsAre("b"));
}

// Runs of the default meshes with 1 and 4 rows, of which those with true differ.
std::vector<CheckedRun> runs_of(const std::vector<bool>& differ) {
  std::vector<CheckedRun> out;
  const auto all = combinations({}, 8);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CheckedRun& r = out.emplace_back(CheckedRun{.combination = all[i], .numbers = numbers(2)});
    r.numbers.rows_of_micro_batch = all[i].dp * all[i].micro;
    r.verdict = i == 0 ? Verdict::reference : differ[i] ? Verdict::differs : Verdict::equal;
    if (differ[i]) r.differences = {{"loss", 1, 2, 0.5}};
  }
  return out;
}

TEST(Check, SmallDifferencesMayBeKinks) {
  auto runs = runs_of({false, false, false, false, true, true});
  EXPECT_EQ(likely_causes(runs, 5e-5).size(), 1u);
  for (std::size_t i : {4, 5}) runs[i].differences[0].difference = 1e-3;
  const auto causes = likely_causes(runs, 5e-5);
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_THAT(causes[0], HasSubstr("is near the tolerance: it may be rounding at a kink"));
}

TEST(Check, TheCauseFollowsFromTheCombinationsThatDiffer) {
  const auto cause = [](const std::vector<bool>& differ) {
    const auto all = likely_causes(runs_of(differ), 5e-5);
    return all.empty() ? "" : all[0];
  };
  EXPECT_EQ(cause({false, false, false, false, false, false}), "");
  EXPECT_THAT(cause({false, true, true, true, false, true}), HasSubstr("the rows of a micro-batch alone"));
  EXPECT_THAT(cause({false, true, false, true, false, true}),
              HasSubstr("the rows of a replica in a micro-batch alone"));
  EXPECT_THAT(cause({false, false, true, true, false, false}), HasSubstr("dp alone"));
  EXPECT_THAT(cause({false, false, false, false, true, true}), HasSubstr("mp alone"));
  EXPECT_THAT(cause({false, false, true, true, true, true}), HasSubstr("the number of ranks alone"));
  EXPECT_THAT(cause({false, true, true, false, true, false}), HasSubstr("several mistakes"));

  // With two combinations several causes fit.
  auto two = runs_of({false, false, true, true, false, false});
  two.erase(two.begin() + 3, two.end());
  two.erase(two.begin() + 1);
  const auto causes = likely_causes(two, 5e-5);
  ASSERT_EQ(causes.size(), 3u);
  EXPECT_THAT(causes[0], HasSubstr("depend on the rows of a micro-batch or dp; more values of --meshes"));

  // A failed run has its own message; a weight is named first.
  auto weights = runs_of({false, false, true, true, false, false});
  weights[2].verdict = Verdict::failed;
  weights[3].differences.insert(weights[3].differences.begin(), {"weight of loss", 16, 8, 1});
  EXPECT_THAT(likely_causes(weights, 5e-5)[0],
              HasSubstr("the weight of loss that collate() gives adds up to 16 instead"));
}

TEST(Check, TheExitCodeFollowsFromTheRuns) {
  CheckReport r{.pipeline = "lm", .runs = runs_of({false, false, false, false, false, false})};
  EXPECT_EQ(r.exit_code(), 0);
  r.runs[1].verdict = Verdict::impossible;
  r.runs[1].message = "too few rows";
  EXPECT_EQ(r.exit_code(), 0);
  EXPECT_THAT(to_text(r), HasSubstr("passed: 4 of 4 combinations equal the reference, 1 not possible"));
  EXPECT_THAT(to_text(r), HasSubstr("1x1 micro 4: not possible: too few rows"));
  for (const Verdict bad : {Verdict::differs, Verdict::failed}) {
    r.runs[2].verdict = bad;
    EXPECT_EQ(r.exit_code(), 1);
    EXPECT_THAT(to_text(r), HasSubstr("FAILED: 3 of 4 combinations"));
  }
  r.runs[2].code = 5;
  r.runs[0].verdict = Verdict::failed;
  r.runs[0].code = 6;
  EXPECT_EQ(r.exit_code(), 6);
  for (CheckedRun& run : r.runs) run.verdict = Verdict::impossible;
  EXPECT_EQ(r.exit_code(), 2);
}

// Not the first by the alphabet.
TEST(Check, TheReportShowsTheTermThatIsMinimized) {
  CheckReport r{.pipeline = "test", .bf16 = false, .tolerance = 1e-4};
  CheckNumbers n = numbers(2);
  n.terms = {{"accuracy", 0.5}, {"policy", -1.25}};
  n.first_term = "policy";
  r.runs = {{.combination = {}, .verdict = Verdict::reference, .numbers = n}};
  EXPECT_THAT(to_text(r),
              ::testing::AllOf(HasSubstr("        policy"), HasSubstr("-1.25"), Not(HasSubstr("accuracy"))));
}

TEST(Check, GradientsOfZeroAreNoted) {
  CheckReport r{.pipeline = "lm", .runs = runs_of({false, false, false, false, false, false})};
  EXPECT_EQ(r.note(), "");
  r.runs[1].zero = {"a", "b", "c", "d"};
  EXPECT_THAT(r.note(), HasSubstr("the gradient of 4 parameters is 0 in this step"));
  EXPECT_THAT(to_text(r), HasSubstr("a, b, c, ..."));
  r.runs[0].numbers.grad_norm = 0;
  EXPECT_THAT(to_text(r), HasSubstr("note: all gradients are 0"));
}

TEST(Check, InfiniteDifferencesAreNullInJson) {
  CheckReport r{.pipeline = "lm", .runs = runs_of({false, true, false, false, false, false})};
  r.runs[1].differences = {{"a (no gradient)", NAN, 1, INFINITY}};
  const auto j = nlohmann::json::parse(to_json(r));
  EXPECT_TRUE(j["runs"][1]["differences"][0]["difference"].is_null());
  EXPECT_EQ(j["runs"][1]["verdict"], "differs");
  EXPECT_FALSE(j["passed"].get<bool>());
}

Example example() {
  Example e;
  e.ordinal = 3;
  e.ids["input_ids"] = {1, 2};
  e.values["x"] = {0.1F, -2};
  e.text = "t\xc3\xa9";
  e.id = "\"a\"";
  return e;
}

TEST(Check, TheRecordGivesTheSameExamples) {
  const CheckRecord r =
      check_record_of(to_json(CheckRecord{R"({"epoch": 0})", {example(), example()}, {{2, 0}, {3, 1}}}));
  EXPECT_EQ(r.state, R"({"epoch": 0})");
  ASSERT_EQ(r.examples.size(), 2u);
  EXPECT_EQ(example_difference(r.examples[1], example()), "");
  EXPECT_EQ(r.examples[1].values.at("x"), example().values.at("x"));
  EXPECT_EQ(r.lengths[1], (std::pair<i64, i64>(3, 1)));
}

TEST(Check, EachPartOfAnExampleIsCompared) {
  const auto difference = [](const std::function<void(Example&)>& change) {
    Example e = example();
    change(e);
    return example_difference(e, example());
  };
  EXPECT_THAT(difference([](Example& e) { e.ordinal = 4; }), HasSubstr("its ordinal is 4 instead of 3"));
  EXPECT_THAT(difference([](Example& e) { e.text = "u"; }), HasSubstr("text"));
  EXPECT_THAT(difference([](Example& e) { e.id = ""; }), HasSubstr("id"));
  EXPECT_THAT(difference([](Example& e) { e.ids["input_ids"][1] = 5; }), HasSubstr("'input_ids' differs"));
  EXPECT_THAT(difference([](Example& e) { e.ids["labels"]; }),
              HasSubstr("its fields are input_ids, labels, x instead of input_ids, x"));
  EXPECT_THAT(difference([](Example& e) { e.values["x"].push_back(0); }), HasSubstr("3 values instead of 2"));
  EXPECT_THAT(difference([](Example& e) { e.values["x"][0] = 0.11F; }),
              HasSubstr("value 0 of its field 'x'"));
  EXPECT_EQ(difference([](Example& e) { e.values["x"][0] = 0.1001F; }), "") << "rounding";
}

}  // namespace
}  // namespace redco
