#include "launch/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/error_text.h"
#include "support/temp_dir.h"

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

// A script in place of mpirun that cannot reach a host.
TEST(OutputUnderMpirun, ExplainsWhyAHostDidNotStart) {
  test::TempDir dir;
  Mpirun m;
  m.path = dir / "mpirun";
  const auto script = [&](const std::string& text) {
    std::ofstream(m.path) << "#!/bin/bash\n" << text;
    std::filesystem::permissions(m.path, std::filesystem::perms::owner_all);
    return error_text<Error>([&] { output_under_mpirun(m, 10); });
  };
  const std::string dash(74, '-');
  EXPECT_EQ(
      script("printf '%s\\n' 'ssh: Could not resolve hostname n7: Name or service not known' " + dash +
             " 'ORTE was unable to reliably start one or more daemons.' " + dash + " >&2; exit 255"),
      "host n7: ssh does not know this name. Correct it in parallel.hosts, or add it to DNS or /etc/hosts; "
      "then check `ssh n7 true`");
  EXPECT_THAT(script("echo no luck >&2; exit 3"), HasSubstr("mpirun ended with status 3: no luck"));
  EXPECT_THAT(script("exit 3"), HasSubstr("mpirun ended with status 3: no message"));
}

}  // namespace
}  // namespace redco
