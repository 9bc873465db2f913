#include "launch/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timing.h"
#include "support/error_text.h"

namespace redco {
namespace {

using testing::HasSubstr;

TEST(OutputOf, GivesStdoutOrSaysWhyNot) {
  EXPECT_EQ(output_of({"printf", "a b"}, 10), "a b");
  EXPECT_THAT(error_text<Error>([] {
                output_of({"bash", "-c", "echo no >&2; exit 3"}, 10);
              }),
              HasSubstr("bash ended with status 3: no"));
  EXPECT_THAT(error_text<Error>([] {
                output_of({"sleep", "30"}, 0.2);
              }),
              HasSubstr("sleep took longer than 0.2 s"));
  EXPECT_THAT(error_text<Error>([] { output_of({"yes"}, 20, 100000); }),
              HasSubstr("wrote more than 100000 bytes"));
  EXPECT_THAT(usage_error([] { output_of({"no-such-program"}, 1); }),
              HasSubstr("no-such-program is not in PATH"));
}

TEST(RunToEnd, GivesStatusBothOutputsAndItsEnvironment) {
  Environment environment = current_environment();
  environment["OF_THE_TEST"] = "x";
  Finished end = run_to_end({"bash", "-c", "echo $OF_THE_TEST; echo no >&2; exit 3"}, environment);
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.out, "x\n");
  EXPECT_EQ(end.err, "no\n");
  end = run_to_end({"bash", "-c", "kill -9 $$"}, environment);
  EXPECT_EQ(end.code, 128 + 9);
  EXPECT_NE(run_to_end({"yes"}, environment, 100000).code, 0);
}

TEST(RunAll, CommandsRunAtTheSameTimeWithADeadlineEach) {
  const double began = seconds();
  const auto all = run_all({{"bash", "-c", "echo a; exit 3"},
                            {"sleep", "20"},
                            {"no-such-program"},
                            {"bash", "-c", "sleep 0.3; echo b"}},
                           current_environment(), 1);
  EXPECT_LT(seconds() - began, 5);
  EXPECT_EQ(all[0].out, "a\n");
  EXPECT_EQ(all[0].problem, "ended with status 3");
  EXPECT_TRUE(all[1].late);
  EXPECT_EQ(all[1].problem, "took longer than 1 s");
  EXPECT_THAT(all[2].problem, HasSubstr("no-such-program is not in PATH"));
  EXPECT_EQ(all[3].out, "b\n");
  EXPECT_EQ(all[3].problem, "");
  EXPECT_GE(all[3].seconds, 0.3);
}

}  // namespace
}  // namespace redco
