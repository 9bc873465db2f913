#include "launch/supervisor.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace redco {
namespace {

using OutcomeKind = Outcome::Kind;

Outcome outcome(OutcomeKind kind, int signal = 0, bool ran = true) {
  Outcome o;
  o.kind = kind;
  o.signal = signal;
  o.ran = ran;
  o.code = kind == OutcomeKind::error ? 2 : code_of(kind);
  return o;
}

TEST(Supervisor, RestartsOnlyWhatAnotherStartCanMend) {
  for (const OutcomeKind kind :
       {OutcomeKind::lost_rank, OutcomeKind::silent, OutcomeKind::absent, OutcomeKind::stuck,
        OutcomeKind::gone, OutcomeKind::deadlock, OutcomeKind::lost_host, OutcomeKind::lost_mpirun})
    EXPECT_TRUE(can_mend(outcome(kind), Reached::ranks)) << name_of(kind);
  for (const OutcomeKind kind : {OutcomeKind::done, OutcomeKind::stopped, OutcomeKind::error,
                                 OutcomeKind::exited, OutcomeKind::memory})
    EXPECT_FALSE(can_mend(outcome(kind), Reached::ranks)) << name_of(kind);
  for (const int signal : {SIGKILL, SIGTERM, SIGBUS})
    EXPECT_TRUE(can_mend(outcome(OutcomeKind::killed, signal), Reached::ranks));
  for (const int signal : {SIGSEGV, SIGABRT, SIGILL, SIGFPE})
    EXPECT_FALSE(can_mend(outcome(OutcomeKind::killed, signal), Reached::ranks));
}

TEST(Supervisor, AHostThatNeverAnsweredIsAMistakeInTheJob) {
  Outcome o = outcome(OutcomeKind::no_start, 0, false);
  o.start.kind = StartFailure::Kind::no_connection;
  EXPECT_FALSE(can_mend(o, Reached::nothing));
  EXPECT_TRUE(can_mend(o, Reached::ranks));
  EXPECT_FALSE(can_mend(outcome(OutcomeKind::absent, 0, false), Reached::hosts));
  for (const auto kind : {StartFailure::Kind::denied, StartFailure::Kind::unknown_name,
                          StartFailure::Kind::slots, StartFailure::Kind::no_program}) {
    o.start.kind = kind;
    EXPECT_FALSE(can_mend(o, Reached::ranks));
  }
}

// The link was cut between the preflight and the start of Open MPI's daemons.
TEST(Supervisor, AHostThatAnsweredThePreflightMayAnswerLater) {
  Outcome o = outcome(OutcomeKind::no_start, 0, false);
  o.start = find_start_failure("Connection timed out during banner exchange\r\n");
  Supervisor s({.max_restarts = 3});
  EXPECT_FALSE(s.after(o, -1).restarts);
  s.hosts_answered();
  EXPECT_TRUE(s.after(o, -1).restarts);
  // An unknown text may be a mistake in the settings of Open MPI.
  o.start.kind = StartFailure::Kind::unknown;
  EXPECT_FALSE(s.after(o, -1).restarts);
}

TEST(Supervisor, ABudgetWithGrowingWaits) {
  Supervisor s({.max_restarts = 4});
  std::vector<double> waits;
  for (int i = 0; i < 4; ++i) {
    const Restart r = s.after(outcome(OutcomeKind::lost_host), 20);
    EXPECT_TRUE(r.restarts);
    EXPECT_EQ(r.number, i + 1);
    waits.push_back(r.wait);
  }
  EXPECT_EQ(waits, (std::vector<double>{1, 5, 30, 30}));
  const Restart last = s.after(outcome(OutcomeKind::lost_host), 20);
  EXPECT_FALSE(last.restarts);
  EXPECT_EQ(last.reason, "no further start: 4 restarts brought no newer checkpoint (fault.max_restarts)");
  // A newer checkpoint fills it up again.
  const Restart again = s.after(outcome(OutcomeKind::lost_host), 25);
  EXPECT_TRUE(again.restarts);
  EXPECT_EQ(again.number, 1);
  EXPECT_EQ(again.wait, 1);
}

TEST(Supervisor, NoRestartsWithoutABudget) {
  Supervisor s({.max_restarts = 0, .shrink_batch = true});
  EXPECT_FALSE(s.after(outcome(OutcomeKind::killed, SIGKILL), 20).restarts);
  EXPECT_FALSE(s.after(outcome(OutcomeKind::memory), 20).restarts);
}

TEST(Supervisor, ALackOfMemoryShrinksTheBatchOnce) {
  Supervisor never({.max_restarts = 3});
  EXPECT_FALSE(never.after(outcome(OutcomeKind::memory), 5).restarts);
  Supervisor s({.max_restarts = 3, .shrink_batch = true});
  const Restart r = s.after(outcome(OutcomeKind::memory), 5);
  EXPECT_TRUE(r.restarts);
  EXPECT_TRUE(r.shrinks_batch);
  EXPECT_FALSE(s.after(outcome(OutcomeKind::memory), 10).restarts);
  // The ranks' own report of a lack of memory counts too; their other errors do not.
  Supervisor own({.max_restarts = 3, .shrink_batch = true});
  Outcome o = outcome(OutcomeKind::error);
  EXPECT_FALSE(own.after(o, 5).restarts);
  o.code = 4;
  EXPECT_TRUE(own.after(o, 5).shrinks_batch);
}

TEST(Supervisor, LostSteps) {
  Outcome o = outcome(OutcomeKind::lost_host);
  EXPECT_EQ(lost_steps(o, 20), 0);
  o.step = 23;
  EXPECT_EQ(lost_steps(o, 20), 3);
  EXPECT_EQ(lost_steps(o, -1), 23);
  EXPECT_EQ(lost_steps(o, 25), 0);
}

}  // namespace
}  // namespace redco
