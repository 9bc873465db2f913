#include "launch/job_end.h"

#include <gmock/gmock.h>

#include <csignal>

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
    const Outcome e = job_outcome(exited(code), nothing, {true, false});
    EXPECT_EQ(e.code, code);
    EXPECT_EQ(outcome_message(e), "");
  }
}

TEST(JobEnd, CodeOneNeedsARankThatReportedIt) {
  const MpirunOutput nothing;
  EXPECT_EQ(job_outcome(exited(1), nothing, {true, true}).code, 1);
  const Outcome e = job_outcome(exited(1), nothing, {true, false});
  EXPECT_EQ(e.code, 5);
  EXPECT_THAT(outcome_message(e), HasSubstr("mpirun ended before its ranks"));
}

TEST(JobEnd, KilledRanksAndMpirunAreRankFailed) {
  const MpirunOutput nothing;
  const Outcome mpirun = job_outcome(killed(9), nothing, {});
  EXPECT_EQ(mpirun.code, 5);
  EXPECT_EQ(outcome_message(mpirun), "mpirun was killed by signal 9 (Killed); all ranks have ended");
  const Outcome silent = job_outcome(exited(128 + 11), nothing, {});
  EXPECT_EQ(silent.code, 5);
  EXPECT_EQ(outcome_message(silent),
            "a rank was killed by signal 11 (Segmentation fault); all ranks have ended");
  EXPECT_EQ(job_outcome(exited(205), nothing, {}).code, 5);
  EXPECT_EQ(job_outcome(exited(205), nothing, {}).kind, Outcome::Kind::lost_host);
}

// The errors of Open MPI 5 are negative numbers, so they look like signals.
TEST(JobEnd, MpirunsErrorsDoNotCountAsSignals) {
  const MpirunOutput nothing;
  const Outcome own = job_outcome(exited(256 - 43), nothing, {});
  EXPECT_EQ(own.kind, Outcome::Kind::lost_mpirun);
  EXPECT_EQ(own.code, 5);
  EXPECT_EQ(outcome_message(own),
            "mpirun ended with its own error 213, which its text names; all ranks have ended");
  EXPECT_EQ(job_outcome(exited(128 + SIGRTMAX), nothing, {}).kind, Outcome::Kind::killed);
}

TEST(JobEnd, ForeignExitCodesAreRankFailed) {
  const MpirunOutput o = with_frame(
      "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be "
      "terminated.\n\n  Process name: [[8762,1],3]\n  Exit code:    77\n");
  const Outcome e = job_outcome(exited(77), o, {true, false});
  EXPECT_EQ(e.code, 5);
  EXPECT_EQ(outcome_message(e), "rank 3 ended with code 77 without a message; all ranks have ended");
}

TEST(JobEnd, AFailedStartAfterAllRanksReportedIsALostConnection) {
  const MpirunOutput o = with_frame("ORTE was unable to reliably start one or more daemons.\n");
  EXPECT_EQ(outcome_message(job_outcome(exited(255), o, {true, false})),
            "the connection to a host was lost; all ranks have ended");
  EXPECT_THAT(outcome_message(job_outcome(exited(255), o, {false, false})),
              HasSubstr("`ssh HOST redco env`"));
}

TEST(JobEnd, TheKindNamesTheEnd) {
  using Kind = Outcome::Kind;
  const MpirunOutput nothing;
  const auto kind = [&](int status, const RankEnds& ranks, const MpirunOutput& o) {
    return job_outcome(status, o, ranks).kind;
  };
  EXPECT_EQ(kind(exited(0), {true}, nothing), Kind::done);
  EXPECT_EQ(kind(exited(8), {true}, nothing), Kind::stopped);
  EXPECT_EQ(kind(exited(7), {true}, nothing), Kind::error);
  EXPECT_EQ(kind(exited(5), {true, false, true}, nothing), Kind::error);  // the ranks agreed
  EXPECT_EQ(kind(exited(5), {true, false, false}, nothing), Kind::lost_rank);
  const Outcome killed_rank = job_outcome(
      exited(137),
      with_frame("mpirun noticed that process rank 1 with PID 0 on node b exited on signal 9.\n"), {true});
  EXPECT_EQ(killed_rank.kind, Kind::killed);
  EXPECT_EQ(killed_rank.signal, 9);
  ASSERT_EQ(killed_rank.places.size(), 1u);
  EXPECT_EQ(killed_rank.places[0].rank, 1);
  EXPECT_EQ(killed_rank.places[0].host, "b");
  const Outcome lost = job_outcome(
      exited(205),
      with_frame(
          "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[35637,0],0] on node "
          "a\n  Remote daemon: [[35637,0],1] on node b\n\nThis is usually due to\n"),
      {true});
  EXPECT_EQ(lost.kind, Kind::lost_host);
  EXPECT_EQ(lost.hosts, std::vector<std::string>{"b"});
  const MpirunOutput unreachable = [] {
    MpirunOutput o;
    o.feed("ssh: connect to host c port 22: No route to host\n");
    return o;
  }();
  const Outcome none = job_outcome(exited(255), unreachable, {});
  EXPECT_EQ(none.kind, Kind::no_start);
  EXPECT_EQ(none.hosts, std::vector<std::string>{"c"});
  EXPECT_EQ(none.start.kind, StartFailure::Kind::no_connection);
}

}  // namespace
}  // namespace redco
