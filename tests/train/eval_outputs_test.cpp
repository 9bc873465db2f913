// Answers to evaluation examples: which examples are asked, what is saved and measured, on every mesh.
#include "train/eval_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Answers with the example's index; measures the number of answers.
class Counting : public Pipeline {
 public:
  Batch collate(std::span<const Example>, const BatchShape&) const override { return {}; }
  LossTerms loss(const ParamTree&, const Batch&, const StepContext&) const override { return {}; }
  std::vector<std::string> predict(const ParamTree&, std::span<const Example> examples,
                                   const StepContext&) const override {
    std::vector<std::string> out;
    for (const Example& e : examples)
      out.push_back(answer.empty() ? "{\"n\": " + std::to_string(e.ordinal) + "}" : answer);
    return out;
  }
  bool measures_outputs() const override { return measures; }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    EXPECT_EQ(examples.size(), outputs.size());
    double sum = 0;
    for (const std::string& o : outputs) sum += nlohmann::json::parse(o)["n"].get<double>();
    return {{"count", static_cast<double>(outputs.size())},
            {"third", sum / 3},
            {"none", NAN},
            {"most", std::numeric_limits<double>::infinity()}};
  }
  bool measures = false;
  std::string answer;
};

ExampleList seven() {
  std::vector<Example> all(7);
  all[2].id = "\"two\"";
  return {all, "seven"};
}

TEST(EvalOutputs, TheFirstFewOrAll) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{3, 1}, Mesh{2, 2}})
    redco::testing::on_mesh(mesh, [](Context& c) {
      Counting p;
      EvalOutputs o = make_outputs(p, {}, seven(), 2, 3);
      EXPECT_TRUE(o.metrics.empty());
      if (c.world().rank() == 0)
        EXPECT_THAT(o.lines, ElementsAre(R"({"id":0,"n":0})", R"({"id":1,"n":1})", R"({"id":"two","n":2})"));
      // Measured outputs include all examples, and every rank has the exact metrics.
      p.measures = true;
      o = make_outputs(p, {}, seven(), 2, 3);
      EXPECT_EQ(o.metrics.at("count"), 7);
      EXPECT_EQ(o.metrics.at("third"), 21.0 / 3);
      EXPECT_TRUE(std::isnan(o.metrics.at("none")));
      EXPECT_TRUE(std::isinf(o.metrics.at("most")));
      EXPECT_EQ(make_outputs(p, {}, seven(), 2, 3, 1).metrics.at("count"), 1);
    });
}

TEST(EvalOutputs, AnOutputThatIsNotAnObjectIsAnError) {
  redco::testing::on_mesh({1, 1}, [](Context&) {
    Counting p;
    p.answer = "plain \xff text";
    EXPECT_EQ(nlohmann::json::parse(make_outputs(p, {}, seven(), 2, 1).lines.at(0))["prediction"],
              "plain \xEF\xBF\xBD text");
  });
}

TEST(EvalOutputs, FilesOfLaterStepsAreRemoved) {
  TempDir dir(TempDir::in_memory);
  const EvalOutputs o{{"{\"a\":1}", "{\"a\":2}"}, {}, "{\"n\":2}"};
  for (const i64 step : {5, 10, 20}) save_outputs(dir.path(), step, o, 1);
  test::spill(dir / "eval_outputs/notes.txt", "mine");
  EXPECT_EQ(test::slurp(outputs_path(dir.path(), {.step = 10})), "{\"a\":1}\n");
  remove_outputs_after(dir.path(), 10);
  EXPECT_TRUE(std::filesystem::exists(outputs_path(dir.path(), {.step = 10})));
  EXPECT_FALSE(std::filesystem::exists(outputs_path(dir.path(), {.step = 20})));
  EXPECT_EQ(test::slurp(outputs_path(dir.path(), {.step = 10, .details = true})), "{\"n\":2}\n");
  EXPECT_FALSE(std::filesystem::exists(outputs_path(dir.path(), {.step = 20, .details = true})));
  EXPECT_TRUE(std::filesystem::exists(dir / "eval_outputs/notes.txt"));
}

// Details are saved also if no outputs are.
TEST(EvalOutputs, DetailsAreSavedAlone) {
  TempDir dir(TempDir::in_memory);
  save_outputs(dir.path(), 5, {{"{}"}, {}, "{\"n\":2}"}, 0);
  EXPECT_FALSE(std::filesystem::exists(outputs_path(dir.path(), {.step = 5})));
  EXPECT_EQ(test::slurp(outputs_path(dir.path(), {.step = 5, .details = true})), "{\"n\":2}\n");
}

TEST(EvalOutputs, FilesOfSets) {
  using ckpt::EvalFile;
  for (const EvalFile& f :
       {EvalFile{.step = 7}, EvalFile{.step = 7, .details = true}, EvalFile{.step = 7, .set = "a-b"},
        EvalFile{.step = 7, .set = "a-b", .details = true}})
    EXPECT_EQ(ckpt::parse_eval_file(ckpt::file_name_of(f)), f) << ckpt::file_name_of(f);
  EXPECT_EQ(ckpt::file_name_of({.step = 7, .set = "code"}), "step-00000007.code.jsonl");
  for (const char* other : {"notes.jsonl", "step-00000007.txt", "step-7x.jsonl", ".jsonl", ".details.json"})
    EXPECT_EQ(ckpt::parse_eval_file(other), std::nullopt) << other;
  TempDir dir(TempDir::in_memory);
  EvalOutputs o{{"{}"}, {}, "{\"n\":2}"};
  o.set = "code";
  save_outputs(dir.path(), 5, o, 1);
  EXPECT_EQ(test::slurp(dir / "eval_outputs/step-00000005.code.jsonl"), "{}\n");
  remove_outputs_after(dir.path(), 4);
  EXPECT_TRUE(std::filesystem::is_empty(dir / "eval_outputs"));
}

TEST(EvalOutputs, OutputsAsATableOfTexts) {
  const EvalOutputs o{
      {R"({"id":0,"prompt":"a","ids":[1],"prediction":"b"})", R"({"prompt":"c","extra":"d"})", "{}"}, {}, ""};
  EXPECT_THAT(outputs_table(o, 2), ElementsAre(ElementsAre("prompt", "prediction", "extra"),
                                               ElementsAre("a", "b", ""), ElementsAre("c", "", "d")));
  EXPECT_TRUE(outputs_table({{"{\"n\":1}"}, {}, ""}, 4).empty());
  const EvalOutputs lengthy{{"{\"x\":\"" + std::string(3999, 'a') + "\xc3\xa9" + "\"}"}, {}, ""};
  EXPECT_EQ(outputs_table(lengthy, 1)[1][0], std::string(3999, 'a') + "...");
}

}  // namespace
}  // namespace redco
