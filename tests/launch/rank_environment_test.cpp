#include "launch/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace redco {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(ParseEnvironment, ReadsStringsAndIntegers) {
  EXPECT_THAT(parse_environment({{"A_1", "\"x y\\n=;\""}, {"B", "4"}, {"C", "\"\""}}),
              ElementsAre(Pair("A_1", "x y\n=;"), Pair("B", "4"), Pair("C", "")));
}

// Files of a run have the names alone: a job made from them takes the values from where it is started.
TEST(ParseEnvironment, NullIsTheVariableOfThisProcess) {
  EXPECT_THAT(parse_environment({{"A", "null"}, {"B", "null"}}, {{"A", "here"}, {"C", "other"}}),
              ElementsAre(Pair("A", "here")));
}

TEST(ParseEnvironment, RefusesBadNamesAndValues) {
  for (const char* name : {"A=B", "", "1A", "A-B", "A B", "\u00e4"})
    EXPECT_THAT(usage_error([&] {
                  parse_environment({{name, "\"x\""}});
                }),
                HasSubstr("is not the name of an environment variable"))
        << name;
  for (const char* value : {"true", "1.5", "[1]", "{}"})
    EXPECT_THAT(usage_error([&] {
                  parse_environment({{"A", value}});
                }),
                HasSubstr("environment.A: expected a string, an integer or ~, got"))
        << value;
  EXPECT_THAT(usage_error([] { parse_environment({{"A", "\"x\\u0000y\""}}); }), HasSubstr("zero byte"));
  EXPECT_THAT(usage_error([] {
                parse_environment({{"OMP_NUM_THREADS", "4"}});
              }),
              HasSubstr("use parallel.threads_per_rank"));
}

TEST(InheritedNames, AreChosenByPrefix) {
  const Environment e{{"REDCO_ISA", "avx2"}, {"HF_HOME", ""},   {"GOMP_SPINCOUNT", "0"}, {"HOME", "/root"},
                      {"PATH", "/bin"},      {"REDCO_A=", "x"}, {"REDCO_STARTED", "1"}};
  EXPECT_THAT(inherited_names(e, false), ElementsAre("GOMP_SPINCOUNT", "HF_HOME", "REDCO_ISA"));
  EXPECT_THAT(inherited_names(e, true), ElementsAre("GOMP_SPINCOUNT", "HF_HOME", "PATH", "REDCO_ISA"));
}

}  // namespace
}  // namespace redco
