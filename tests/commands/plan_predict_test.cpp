// Memory of a predict job, compared with numbers counted by hand.
#include "commands/plan_predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"
#include "support/jobs.h"

namespace redco {
namespace {

using test::job_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

PredictPlan plan(const Words& more) {
  Words all = {"model.arch=gpt2",
               "model.tokenizer=bytes",
               "model.n_layer=2",
               "model.n_embd=8",
               "model.n_head=2",
               "model.n_positions=16",
               "predict={prompt: [abc, de]}",
               "predict.max_new_tokens=4"};
  all.insert(all.end(), more.begin(), more.end());
  return plan_predict(job_of("", all));
}

TEST(PlanPredict, WeightsAreCountedOnceAndTheCacheForAllRows) {
  const PredictPlan p = plan({});
  EXPECT_EQ(p.n_prompts, 2);
  EXPECT_EQ(p.longest_prompt, 3);
  EXPECT_EQ(p.rows, 2);  // at most the number of prompts
  EXPECT_EQ(p.length, 7);
  // wte, wpe, two blocks of 12 x 8^2 + 13 x 8, and the last norm.
  EXPECT_EQ(p.parameters, 4 * (257 * 8 + 16 * 8 + 2 * (12 * 64 + 13 * 8) + 2 * 8));
  EXPECT_EQ(p.cache, 4 * 2 * 2 * p.rows * p.length * 8);  // 2 layers, keys and values
  EXPECT_GT(p.prefill_flops, p.step_flops);
  EXPECT_GT(p.step_flops, 0);
  EXPECT_TRUE(p.fits());
}

TEST(PlanPredict, RowsArePerReplica) {
  EXPECT_EQ(plan({"predict.batch_size=1"}).rows, 1);
  EXPECT_EQ(plan({"parallel.n_ranks=2"}).rows, 1);
  EXPECT_EQ(plan({"predict.num_beams=3"}).rows, 6);
  const PredictPlan drawn = plan({"predict.temperature=1", "predict.num_return_sequences=3"});
  EXPECT_EQ(drawn.rows, 6);
  EXPECT_EQ(drawn.answers, 3);
  EXPECT_EQ(plan({"predict.max_new_tokens=100"}).length, 16);  // limited by the model's positions
}

TEST(PlanPredict, ShardsShareWeightsAndCache) {
  const PredictPlan one = plan({}), two = plan({"parallel.n_model_shards=2"});
  EXPECT_EQ(two.mp, 2);
  EXPECT_EQ(two.cache, one.cache / 2);
  EXPECT_LT(two.parameters, one.parameters);
  EXPECT_GT(two.parameters, one.parameters / 2);  // norms and positions are replicated
}

TEST(PlanPredict, TheTextSaysWhetherItFits) {
  PredictPlan p = plan({});
  p.limit = p.total();
  EXPECT_THAT(to_text(p), AllOf(HasSubstr("2 prompts, 1 answer each; dp 1 x mp 1, 2 rows"),
                                HasSubstr("longest prompt has 3 tokens"), HasSubstr("\n  fits ")));
  --p.limit;
  p.skipped = 3;
  EXPECT_THAT(to_text(p), AllOf(HasSubstr("DOES NOT FIT"), HasSubstr("(3 bad lines left out)")));
}

TEST(PlanPredict, APromptThatIsTooLongIsAnErrorAsInTheRun) {
  EXPECT_THAT(error_text<ContentsError>([] { plan({"predict.prompt=" + std::string(17, 'x')}); }),
              HasSubstr("predict.prompt: the prompt has 17 tokens, the model has 16 positions"));
}

}  // namespace
}  // namespace redco
