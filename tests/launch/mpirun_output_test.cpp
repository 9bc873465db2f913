#include "launch/mpirun_output.h"

#include <gmock/gmock.h>

#include "launch/job_end.h"

namespace redco {
namespace {

using Kind = MpirunOutput::Failure::Kind;
const std::string kDash(74, '-');

std::string frame(const std::string& text) { return kDash + "\n" + text + kDash + "\n"; }

const std::string kPrimary = frame(
    "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the "
    "job has "
    "been aborted.\n");
const std::string kExit = frame(
    "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be "
    "terminated. The "
    "first process to do so was:\n\n  Process name: [[8762,1],3]\n  Exit code:    4\n");
const std::string kKilled =
    frame("mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).\n");
const std::string kAbort = frame(
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\nwith errorcode 5.\n\nNOTE: invoking "
    "MPI_ABORT causes "
    "Open MPI to kill all MPI processes.\n");

// The user's line about the failure that mpirun reported with this status; "" without one.
std::string message_of(const MpirunOutput& o, int status = 255) {
  return o.failure() ? outcome_message(job_outcome(status << 8, o, {})) : "";
}

TEST(MpirunOutput, TextOfRanksPassesUnchanged) {
  MpirunOutput o;
  EXPECT_EQ(o.feed("step 1\nstep"), "step 1\nstep");
  EXPECT_FALSE(o.holding());
  EXPECT_EQ(o.feed(" 2\r"), " 2\r");
  EXPECT_EQ(o.feed("\xff\n---\n"), "\xff\n---\n");
  EXPECT_EQ(o.flush(), "");
  EXPECT_EQ(message_of(o), "");
}

TEST(MpirunOutput, FramesAboutARankThatPrintedItsErrorAreDropped) {
  MpirunOutput o;
  EXPECT_EQ(o.feed("redco: disk full\n" + kPrimary + kExit), "redco: disk full\n");
  ASSERT_TRUE(o.failure());
  EXPECT_EQ(o.failure()->kind, Kind::exit_code);
  EXPECT_EQ(o.failure()->rank, 3);
  EXPECT_EQ(o.failure()->number, 4);
  EXPECT_EQ(message_of(o, 4), "");
  MpirunOutput a;
  EXPECT_EQ(a.feed(kAbort + "[vm:1] 1 more process has sent help message help-mpi-api.txt / mpi-abort\n"),
            "");
  EXPECT_EQ(a.failure()->rank, 1);
  EXPECT_EQ(a.failure()->number, 5);
}

// Version 5 ends a frame with a zero byte, breaks its lines elsewhere and reports the ranks that it kills
// itself.
TEST(MpirunOutput, FramesOfOpenMpi5) {
  MpirunOutput o;
  EXPECT_EQ(o.feed("[vm][[9739,1],1][../btl_tcp_proc.c:266:mca_btl_tcp_proc_create] Unable to find reachable "
                   "pairing between local and remote interfaces\n"),
            "");
  MpirunOutput other;
  EXPECT_EQ(
      other.feed("[vm][[9739,1],1][../btl_tcp_frag.c:1:f] recv error: Connection reset by peer (104)\n"),
      "redco: Open MPI reports: recv error\n");
  const std::string abort = frame(
      "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\n  Proc: [[64405,1],0]\n  Errorcode: 3\n\nNOTE: "
      "invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n");
  const std::string signal =
      frame("prterun noticed that process rank 1 with PID 19607 on node vm exited on\nsignal 9 (Killed).\n");
  EXPECT_EQ(o.feed(abort + std::string(1, '\0') + "the next line\n" + signal), "the next line\n");
  EXPECT_EQ(o.failure()->kind, Kind::exit_code);
  EXPECT_EQ(o.failure()->rank, 0);
  EXPECT_EQ(o.failure()->number, 3);
  MpirunOutput killed;
  EXPECT_EQ(killed.feed(signal), "");
  EXPECT_EQ(killed.failure()->kind, Kind::signal);
  EXPECT_EQ(killed.failure()->number, 9);
  EXPECT_EQ(killed.failure()->host, "vm");
  MpirunOutput exited;
  EXPECT_EQ(exited.feed(frame(
                "prterun detected that one or more processes exited with non-zero status,\nthus causing the "
                "job to be terminated. The first process to do so was:\n\n   Process name: "
                "[prterun-vm-19568@1,1]\n   Exit code:    4\n")),
            "");
  EXPECT_EQ(exited.failure()->rank, 1);
  EXPECT_EQ(exited.failure()->number, 4);
}

TEST(MpirunOutput, AKilledRankIsOneLine) {
  MpirunOutput o;
  std::string out;
  for (char c : kExit + "last words\n" + kPrimary + kKilled)
    out += o.feed(std::string(1, c));  // byte by byte
  EXPECT_EQ(out, "last words\n");
  EXPECT_EQ(o.failure()->kind, Kind::signal);
  EXPECT_EQ(message_of(o),
            "rank 1 on vm was killed by signal 9 (Killed); all ranks have ended (if nobody killed it, the "
            "machine was "
            "out of memory: see `dmesg`)");
}

TEST(MpirunOutput, ALostHostIsNamed) {
  MpirunOutput o;
  EXPECT_EQ(o.feed(frame(
                "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[35637,0],0] on node "
                "redco-a\n  Remote daemon: [[35637,0],1] on node redco-b\n\nThis is usually due to\n")),
            "");
  EXPECT_EQ(message_of(o), "the connection to host redco-b was lost; all ranks have ended");
}

TEST(MpirunOutput, SshsLineStaysWhenAHostCannotBeReached) {
  MpirunOutput o;
  EXPECT_EQ(
      o.feed("ssh: Could not resolve hostname x\n" +
             frame("ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n")),
      "ssh: Could not resolve hostname x\n");
  EXPECT_THAT(message_of(o), testing::HasSubstr("host x: ssh does not know this name"));
}

TEST(MpirunOutput, FramesAboutConsequencesAreDropped) {
  MpirunOutput o;
  EXPECT_EQ(
      o.feed(frame(
          "An MPI communication peer process has unexpectedly disconnected.  This\nusually indicates\n")),
      "");
  EXPECT_FALSE(o.failure());
}

TEST(MpirunOutput, AFailedStartIsOneLine) {
  MpirunOutput o;
  EXPECT_EQ(o.feed(frame("There are not enough slots available in the system to satisfy the 5\nslots\n")),
            "");
  EXPECT_EQ(o.failure()->kind, Kind::no_start);
  EXPECT_THAT(message_of(o), testing::HasSubstr("more ranks than mpirun counts slots"));
  EXPECT_FALSE(o.has_unknown_text());
}

TEST(MpirunOutput, UnknownTextIsOneLineAndKept) {
  MpirunOutput o("/tmp/text");
  EXPECT_EQ(o.feed(frame("Something\nnew happened. And more of it.\n\nHost: a\n")),
            "redco: Open MPI reports: Something new happened. (its whole text: /tmp/text)\n");
  EXPECT_TRUE(o.has_unknown_text());
  EXPECT_EQ(o.feed(frame("A second one\n") + "[vm:1234] *** Process received signal ***\n" +
                   "[vm:1234] [ 0] /lib/libc.so.6(+0x3c050)\n"),
            "");
  EXPECT_THAT(o.own_text(), testing::HasSubstr("And more of it."));
  EXPECT_THAT(o.own_text(), testing::HasSubstr("A second one\n[vm:1234] *** Process received signal ***\n"));
  EXPECT_FALSE(o.failure());
  for (int i = 0; i < 100; i++) o.feed(frame(std::string(8000, 'x') + "\n"));
  EXPECT_EQ(o.own_text().size(), 65536u);
}

TEST(MpirunOutput, RanksTextInBracketsPasses) {
  MpirunOutput o;
  for (const std::string text : {"[data] a:1 is bad\n", "[a b]\n", "[host:12a] x\n", "[]: x\n", "[:1] x\n"})
    EXPECT_EQ(o.feed(text), text);
}

TEST(MpirunOutput, NoiseIsDropped) {
  MpirunOutput o;
  EXPECT_EQ(o.feed("[hwloc/linux] failed to find sysfs cpu topology directory, aborting linux discovery.\n"
                   "2 total processes killed (some possibly by mpirun during cleanup)\n"),
            "");
  EXPECT_FALSE(o.has_unknown_text());
}

TEST(MpirunOutput, AnUnfinishedFrameIsNotLost) {
  MpirunOutput o;
  EXPECT_EQ(o.feed(kDash + "\nhalf a ban"), "");
  EXPECT_TRUE(o.holding());
  EXPECT_EQ(o.flush(), kDash + "\nhalf a ban");
  EXPECT_FALSE(o.holding());
  EXPECT_EQ(o.feed("ner\n"), "ner\n");
}

TEST(MpirunOutput, EndlessFramesAreBounded) {
  MpirunOutput o;
  std::string in = kDash + "\n", out = o.feed(in);
  for (int i = 0; i < 1000; i++) {
    in += "a rank that prints dashes\n";
    out += o.feed("a rank that prints dashes\n");
  }
  EXPECT_EQ(out + o.flush(), in);
}

}  // namespace
}  // namespace redco
