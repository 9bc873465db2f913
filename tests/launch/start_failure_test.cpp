// The texts are those of OpenSSH 9.2, bash, dash and Open MPI 4.1.4.
#include "launch/start_failure.h"

#include <gmock/gmock.h>

namespace redco {
namespace {

std::string explain_start_failure(const std::string& text) {
  return start_failure_message(find_start_failure(text));
}

using testing::AllOf;
using testing::HasSubstr;

const std::string kDaemons =
    "ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n";

TEST(StartFailure, NamesHostAndRemedy) {
  const auto explain = [](const std::string& ssh) {
    EXPECT_TRUE(is_start_failure_line(ssh)) << ssh;
    return explain_start_failure(ssh + "\n" + kDaemons);
  };
  EXPECT_THAT(explain("ssh: Could not resolve hostname node7: Name or service not known"),
              AllOf(HasSubstr("host node7: ssh does not know this name"), HasSubstr("`ssh node7 true`")));
  EXPECT_THAT(
      explain("ssh: connect to host node7 port 22: Connection refused"),
      AllOf(HasSubstr("host node7: ssh cannot connect: Connection refused"), HasSubstr("`ssh node7 true`")));
  EXPECT_THAT(explain("ssh: connect to host node7 port 22: Connection timed out\r"),
              HasSubstr("ssh cannot connect: Connection timed out. Check"));
  EXPECT_THAT(explain("Connection to 10.0.0.9 port 22 timed out"),
              HasSubstr("host 10.0.0.9: ssh cannot connect: Connection timed out"));
  EXPECT_THAT(explain("Connection timed out during banner exchange"),
              HasSubstr("host HOST: ssh cannot connect: Connection timed out"));
  for (
      const char* broken :
      {"Connection closed by 10.0.0.9 port 22",
       "kex_exchange_identification: read: Connection reset by peer\r\nConnection reset by 10.0.0.9 port 22\r"})
    EXPECT_THAT(explain(broken), HasSubstr("host 10.0.0.9: ssh cannot connect: the connection broke. Check"));
  EXPECT_THAT(explain("me@node7: Permission denied (publickey,password)."),
              AllOf(HasSubstr("host node7: ssh asks for a password"), HasSubstr("`ssh-copy-id node7`")));
  EXPECT_THAT(explain_start_failure("No ED25519 host key is known for node7 and you have requested strict "
                                    "checking.\nHost key verification failed.\n" +
                                    kDaemons),
              AllOf(HasSubstr("host node7: ssh does not know its key"), HasSubstr("`ssh node7 true`")));
  EXPECT_THAT(explain_start_failure(
                  "@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@\nHost key for "
                  "[node7]:2222 has changed and you have requested strict checking.\nHost key "
                  "verification failed.\n"),
              AllOf(HasSubstr("host node7: its key is not the one that ssh knows"),
                    HasSubstr("`ssh-keygen -R '[node7]:2222'`")));
  for (const char* shell :
       {"bash: line 1: orted: command not found", "sh: 1: orted: not found",
        "bash: line 1: /opt/bin/orted: No such file or directory", "sh: 1: prted: not found"})
    EXPECT_THAT(explain(shell), HasSubstr("apt-get install openmpi-bin")) << shell;
}

TEST(StartFailure, ExplainsMpirunsFrames) {
  EXPECT_THAT(explain_start_failure(
                  "The value of the MCA parameter \"plm_rsh_agent\" was set to a path\nthat could not "
                  "be found:\n\n  plm_rsh_agent: ssh : rsh\n"),
              HasSubstr("apt-get install openssh-client"));
  EXPECT_THAT(explain_start_failure("mpirun was unable to launch the specified application as it could not "
                                    "access\nor execute an executable:\n\nExecutable: /opt/redco\nNode: "
                                    "node7\n\nwhile attempting to start process rank 0.\n"),
              HasSubstr("host node7 cannot run /opt/redco."));
  EXPECT_THAT(
      explain_start_failure("mpirun was unable to find the specified executable file, and therefore\ndid "
                            "not launch the job.\n\nNode:       node7\nExecutable: redco\n"),
      HasSubstr("host node7 cannot run redco."));
  EXPECT_THAT(explain_start_failure("Working directory: /data/x\nNode: node7\n"),
              HasSubstr("host node7 has no folder /data/x"));
  EXPECT_THAT(explain_start_failure("There are not enough slots available in the system\n"),
              HasSubstr("parallel.n_ranks"));
  EXPECT_THAT(explain_start_failure(kDaemons),
              HasSubstr("Check for each host that `ssh HOST redco env` works"));
  EXPECT_THAT(explain_start_failure(""), HasSubstr("`ssh HOST redco env`"));
}

TEST(StartFailure, RanksTextIsNoFailureLine) {
  for (const char* line : {"step 3 loss 2.1", "error: [data] Permission denied: a.txt", "Connections: 4",
                           "warning: port 22 is in use"})
    EXPECT_FALSE(is_start_failure_line(line)) << line;
}

}  // namespace
}  // namespace redco
