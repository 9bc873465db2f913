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

PredictPlan plan_of_prediction(const Words& more) {
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
  const PredictPlan p = plan_of_prediction({});
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

TEST(PlanPredict, CaptionsAreGeneratedToo) {
  const PredictPlan p = plan_predict(
      job_of("", {"pipeline=captioning", "model.arch=vision-encoder-decoder", "model.tokenizer=bytes",
                  "model.encoder.image_size=32", "model.encoder.patch_size=8", "model.encoder.hidden_size=24",
                  "model.encoder.num_hidden_layers=1", "model.encoder.num_attention_heads=4",
                  "model.encoder.intermediate_size=32", "model.decoder.n_layer=1", "model.decoder.n_embd=32",
                  "model.decoder.n_head=4", "model.decoder.n_positions=64", "data.resize_images=true",
                  "predict={prompt: [drawn:shapes/1, drawn:shapes/2, drawn:shapes/3]}",
                  "predict.max_new_tokens=5", "predict.batch_size=2"}));
  EXPECT_EQ(p.n_prompts, 3);
  EXPECT_EQ(p.rows, 2);
  EXPECT_EQ(p.length, 6);
  // Keys and values of one layer: of the answer's tokens, and of 16 patches and the class token.
  EXPECT_EQ(p.cache, 4 * 2 * p.rows * (p.length + 17) * 32);
}

TEST(PlanPredict, RowsArePerReplica) {
  EXPECT_EQ(plan_of_prediction({"predict.batch_size=1"}).rows, 1);
  EXPECT_EQ(plan_of_prediction({"parallel.n_ranks=2"}).rows, 1);
  EXPECT_EQ(plan_of_prediction({"predict.num_beams=3"}).rows, 6);
  const PredictPlan drawn = plan_of_prediction({"predict.temperature=1", "predict.num_return_sequences=3"});
  EXPECT_EQ(drawn.rows, 6);
  EXPECT_EQ(drawn.answers, 3);
  EXPECT_EQ(plan_of_prediction({"predict.max_new_tokens=100"}).length,
            16);  // limited by the model's positions
}

TEST(PlanPredict, ShardsShareWeightsAndCache) {
  const PredictPlan one = plan_of_prediction({}), two = plan_of_prediction({"parallel.n_model_shards=2"});
  EXPECT_EQ(two.mp, 2);
  EXPECT_EQ(two.cache, one.cache / 2);
  EXPECT_LT(two.parameters, one.parameters);
  EXPECT_GT(two.parameters, one.parameters / 2);  // norms and positions are replicated
}

TEST(PlanPredict, ACacheInBf16HasHalfTheBytes) {
  EXPECT_EQ(plan_of_prediction({"predict.cache_dtype=bf16"}).cache, plan_of_prediction({}).cache / 2);
}

TEST(PlanPredict, TheTextSaysWhetherItFits) {
  PredictPlan p = plan_of_prediction({});
  p.limit = p.total();
  EXPECT_THAT(to_text(p), AllOf(HasSubstr("2 prompts, 1 answer each; dp 1 x mp 1, 2 rows"),
                                HasSubstr("longest prompt has 3 tokens"), HasSubstr("\n  fits ")));
  --p.limit;
  p.skipped = 3;
  EXPECT_THAT(to_text(p), AllOf(HasSubstr("DOES NOT FIT"), HasSubstr("(3 bad lines left out)")));
}

TEST(PlanPredict, APromptThatIsTooLongIsAnErrorAsInTheRun) {
  EXPECT_THAT(
      error_text<ContentsError>([] { plan_of_prediction({"predict.prompt=" + std::string(17, 'x')}); }),
      HasSubstr("predict.prompt: the prompt has 17 tokens, the model has 16 positions"));
}

}  // namespace
}  // namespace redco
