#include "train/useless_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/spec_builder.h"
#include "support/error_text.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using redco::testing::on_one_rank;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ParamTree useless_params(float value) {
  ModelParams declared;
  SpecBuilder s(declared);
  s.linear("fine", 2, 3, false, 1);
  s.linear("other", 2, 3, false, 1);
  ParamTree params =
      make_params(declared, shard_specs(declared.specs, Context::current().mesh().mp()).layouts, {});
  initialize(params, 5);
  const std::vector<float> values = {1, 2, 3, 4, 5, value};  // the last row is on the last of two shards
  params.set("other.weight", from_values({2, 3}, values, params["other.weight"].layout()));
  return params;
}
StepOutcome useless_outcome(bool finite, double weight = 8) {
  return {.loss = finite ? 1.0 : NAN, .weight = weight, .finite = finite};
}

TEST(UselessSteps, WeightsThatAreNotFiniteAreNamedOnEveryRank) {
  for (const Mesh& mesh : {Mesh{1, 1}, Mesh{1, 2}, Mesh{2, 1}})
    on_mesh(mesh, [](Context&) {
      EXPECT_EQ(non_finite_parameter(useless_params(6)), "");
      EXPECT_EQ(non_finite_parameter(useless_params(INFINITY)), "other.weight");
      EXPECT_EQ(non_finite_parameter(useless_params(NAN)), "other.weight");
    });
}

TEST(UselessSteps, TheFirstStepNamesItsCause) {
  on_one_rank([](Context&) {
    const auto first = [](OnNonFinite on, float value) {
      UselessSteps steps;
      return error_text<Error>([&] { steps.add(useless_outcome(false), 1, on, useless_params(value)); });
    };
    for (const OnNonFinite on : {OnNonFinite::stop, OnNonFinite::skip})
      EXPECT_THAT(first(on, NAN), AllOf(HasSubstr("step 1"), HasSubstr("other.weight"),
                                        HasSubstr("Check the weights"), Not(HasSubstr("Lower"))));
    EXPECT_THAT(first(OnNonFinite::stop, 6), AllOf(HasSubstr("Check the data"), Not(HasSubstr("Lower"))));
    UselessSteps later;
    later.add(useless_outcome(true), 1, OnNonFinite::stop, useless_params(6));
    EXPECT_THAT(error_text<Error>(
                    [&] { later.add(useless_outcome(false), 2, OnNonFinite::stop, useless_params(NAN)); }),
                AllOf(HasSubstr("step 2"), HasSubstr("Lower train.learning_rate")));
  });
}

TEST(UselessSteps, ARunOfThemEndsWithAnError) {
  on_one_rank([](Context&) {
    const auto end = [](const std::vector<StepOutcome>& outcomes) {
      const ParamTree params = useless_params(6);
      UselessSteps steps;
      for (std::size_t i = 0; i < outcomes.size(); ++i)
        steps.add(outcomes[i], static_cast<i64>(i) + 1, OnNonFinite::skip, params);
      steps.finish(params);
    };
    const std::vector<StepOutcome> skipped(3, useless_outcome(false)), empty(3, useless_outcome(true, 0));
    EXPECT_THAT(error_text<Error>([&] { end(skipped); }), HasSubstr("not finite in each of 3 steps"));
    EXPECT_THAT(error_text<ContentsError>([&] { end(empty); }),
                HasSubstr("the weight of the loss is 0 in each of the 3 steps"));
    EXPECT_NO_THROW(end({useless_outcome(false), useless_outcome(true), useless_outcome(false)}));
    EXPECT_NO_THROW(end({useless_outcome(true, 0), useless_outcome(true), useless_outcome(true, 0)}));
    EXPECT_NO_THROW(end({}));
  });
}

}  // namespace
}  // namespace redco
