#include "launch/job_end.h"

#include <gmock/gmock.h>

namespace redco {
namespace {

using testing::HasSubstr;

int exited(int code) { return code << 8; }  // as waitpid() gives it
int killed(int signal) { return signal; }

MpirunOutput with_frame(const std::string& text) {
  MpirunOutput o;
  const std::string dash(74, '-');
  EXPECT_EQ(o.feed(dash + "\n" + text + dash + "\n"), "");
  return o;
}

TEST(JobEnd, RanksCodesPass) {
  const MpirunOutput nothing;
  for (const int code : {0, 2, 3, 4, 6, 7, 8}) {
    const JobEnd e = job_end(exited(code), nothing, {true, false});
    EXPECT_EQ(e.code, code);
    EXPECT_EQ(e.message, "");
  }
}

TEST(JobEnd, CodeOneNeedsARankThatReportedIt) {
  const MpirunOutput nothing;
  EXPECT_EQ(job_end(exited(1), nothing, {true, true}).code, 1);
  const JobEnd e = job_end(exited(1), nothing, {true, false});
  EXPECT_EQ(e.code, 5);
  EXPECT_THAT(e.message, HasSubstr("mpirun ended before its ranks"));
}

TEST(JobEnd, KilledRanksAndMpirunAreRankFailed) {
  const MpirunOutput nothing;
  const JobEnd mpirun = job_end(killed(9), nothing, {});
  EXPECT_EQ(mpirun.code, 5);
  EXPECT_EQ(mpirun.message, "mpirun was killed by signal 9 (Killed); all ranks have ended");
  const JobEnd silent = job_end(exited(128 + 11), nothing, {});
  EXPECT_EQ(silent.code, 5);
  EXPECT_EQ(silent.message, "a rank was killed by signal 11 (Segmentation fault); all ranks have ended");
  EXPECT_EQ(job_end(exited(205), nothing, {}).code, 5);
}

TEST(JobEnd, ForeignExitCodesAreRankFailed) {
  const MpirunOutput o = with_frame(
      "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be "
      "terminated.\n\n  Process name: [[8762,1],3]\n  Exit code:    77\n");
  const JobEnd e = job_end(exited(77), o, {true, false});
  EXPECT_EQ(e.code, 5);
  EXPECT_EQ(e.message, "rank 3 ended with code 77 without a message; all ranks have ended");
}

TEST(JobEnd, AFailedStartAfterAllRanksReportedIsALostConnection) {
  const MpirunOutput o = with_frame("ORTE was unable to reliably start one or more daemons.\n");
  EXPECT_EQ(job_end(exited(255), o, {true, false}).message,
            "the connection to a host was lost; all ranks have ended");
  EXPECT_THAT(job_end(exited(255), o, {false, false}).message, HasSubstr("`ssh HOST redco env`"));
}

}  // namespace
}  // namespace redco
