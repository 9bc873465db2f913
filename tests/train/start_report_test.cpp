// What training prints before its first step.
#include "train/start_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/spec_builder.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TrainingStart start() {
  return {.examples = 4000,
          .steps_per_epoch = 125,
          .global_batch_size = 32,
          .per_device_batch_size = 4,
          .dp = 2,
          .schedule = {.pieces = {{.from = 1e-3, .to = 0}}, .total_steps = 250},
          .workdir = "runs/a"};
}

void warm_up(TrainingStart& s, i64 steps) {
  s.schedule.pieces = {{.until_step = steps, .from = 0, .to = 1e-3}, {.from = 1e-3, .to = 0}};
}

TEST(StartReport, NamesExamplesStepsBatchAndFolder) {
  TrainingStart s = start();
  warm_up(s, 25);
  EXPECT_THAT(start_lines(s),
              ElementsAre("4000 examples, 125 steps per epoch; 250 steps in total, 25 of them warm-up; "
                          "step 1 has learning rate 0, because warm-up starts at 0",
                          "batch of 32 examples: dp 2 x 4 per micro-batch x 4 micro-batches",
                          "checkpoints: every 20 minutes, at the end", "output folder: runs/a"));
}

TEST(StartReport, SaysWhenCheckpointsAreSaved) {
  TrainingStart s = start();
  s.checkpoint.every_n_steps = 100;
  s.checkpoint.every_n_epochs = 1;
  EXPECT_EQ(start_lines(s)[2],
            "checkpoints: every 100 steps, every 1 epoch, every 20 minutes without one, at the end");
  s.checkpoint = {.every_minutes = std::nullopt};
  EXPECT_THAT(start_lines(s)[2], HasSubstr("only at the end: a run that is killed loses all steps"));
}

TEST(StartReport, RoundsTheNumberOfMicroBatchesUp) {
  TrainingStart s = start();
  s.global_batch_size = 33;
  EXPECT_THAT(start_lines(s)[1], HasSubstr("x 5 micro-batches"));
}

TEST(StartReport, WarnsOfNothingInAnOrdinaryRun) { EXPECT_THAT(start_warnings(start()), IsEmpty()); }

TEST(StartReport, WarnsOfABatchLargerThanTheData) {
  TrainingStart s = start();
  s.examples = 20;
  EXPECT_THAT(start_warnings(s), ElementsAre(HasSubstr("20 examples")));
}

TEST(StartReport, WarnsOfPiecesOfTheScheduleWithoutSteps) {
  TrainingStart s = start();
  s.schedule.pieces = {{.until_step = 100, .from = 1, .to = 2}, {.until_share = 0.3, .from = 2, .to = 1}, {}};
  EXPECT_THAT(start_warnings(s), ElementsAre("piece 2 of train.schedule has no steps: the run has 250 steps, "
                                             "and the pieces before it end at step 100"));
  s.schedule.pieces[1].until_share = 0.5;
  EXPECT_THAT(start_warnings(s), IsEmpty());
}

TEST(StartReport, WarnsOfFewerThanTenSteps) {
  TrainingStart s = start();
  s.schedule.total_steps = 9;
  EXPECT_THAT(start_warnings(s), ElementsAre(HasSubstr("only 9 steps")));
  s.schedule.total_steps = 10;
  EXPECT_THAT(start_warnings(s), IsEmpty());
}

TEST(StartReport, AResumedRunHasNoFirstStepAtLearningRateZero) {
  TrainingStart s = start();
  warm_up(s, 25);
  s.step = 5;
  EXPECT_THAT(start_lines(s)[0], Not(HasSubstr("learning rate 0")));
}

TEST(StartReport, WarnsOfARunThatEndsInItsWarmup) {
  TrainingStart s = start();
  warm_up(s, 249);
  EXPECT_THAT(start_warnings(s), IsEmpty());
  warm_up(s, 250);
  EXPECT_THAT(start_warnings(s), ElementsAre(HasSubstr("warm-up takes 250 steps and the run has 250 steps")));
}

TEST(StartReport, WarnsOfACheckpointBeyondTheEnd) {
  TrainingStart s = start();
  s.step = 300;
  EXPECT_THAT(start_warnings(s), ElementsAre(HasSubstr("the job ends at step 250: nothing is trained")));
  s.step = 250;
  EXPECT_THAT(start_warnings(s), ElementsAre(HasSubstr("all 250 steps: nothing is left to train")));
}

TEST(StartReport, NamesParametersWithoutGradient) {
  ModelParams params;
  SpecBuilder b(params);
  for (int i = 0; i < 12; ++i) b.linear(fmt::format("layer{}", i), 2, 2, false, 1);
  b.linear("key", 2, 2, true, 1, false, HeadsOf{0, 2, 2, 1});
  const ParamTree tree(params.specs, {});
  EXPECT_EQ(params.specs.back().kind, ParamKind::bias);
  EXPECT_EQ(unreached_line(tree, {params.specs.size() - 1}), "");
  EXPECT_EQ(unreached_line(tree, {1, 3}),
            "no loss term depends on 2 of 14 trained parameters (layer1.weight, layer3.weight); their "
            "gradients are 0");
  EXPECT_THAT(unreached_line(tree, {0, 1, 2, 3, 4, 5, 6, 7, 8}), HasSubstr("layer7.weight, ...)"));
}

}  // namespace
}  // namespace redco
