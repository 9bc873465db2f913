#include "launch/login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "support/error_text.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Logins : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name :
         {kLoginsVariable, "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_rsh_no_tree_spawn", "SLURM_JOB_ID"})
      unsetenv(name);
  }
  static std::string value(const char* name) {
    const char* v = std::getenv(name);
    return v ? v : "";
  }
};

TEST_F(Logins, OptionsOfTheHostPrecedeIt) {
  use_logins(parse_hosts({"n1 user=ann port=2222 identity=/k address=fd00::7", "n2 user=bo", "n3"}),
             "/opt/redco");
  EXPECT_EQ(value("OMPI_MCA_plm_rsh_agent"), "/opt/redco login");
  const std::string logins = value(kLoginsVariable);
  EXPECT_THAT(ssh_words(logins, {"-o", "BatchMode=yes", "n1", "orted", "n2"}),
              ElementsAre("ssh", "-o", "BatchMode=yes", "-l", "ann", "-p", "2222", "-i", "/k", "-o",
                          "HostName=fd00::7", "n1", "orted", "n2"));
  EXPECT_THAT(ssh_words(logins, {"n2", "x"}), ElementsAre("ssh", "-l", "bo", "n2", "x"));
  EXPECT_THAT(ssh_words(logins, {"n3", "x"}), ElementsAre("ssh", "n3", "x"));
  use_logins(parse_hosts({"n2 user=cy"}), "/opt/redco");  // the agent is redco's own, from a former call
  EXPECT_THAT(ssh_words(value(kLoginsVariable), {"n2"}), ElementsAre("ssh", "-l", "cy", "n2"));
  EXPECT_EQ(ssh_target(parse_hosts({"n1 user=ann port=2222 identity=/k"})[0]), "-p 2222 -i /k ann@n1");
  EXPECT_EQ(ssh_target({"n1", 4}), "n1");
  for (const char* bad : {"", "[]", "{\"n\":1}", "{\"n\":{\"user\":3}}"})
    EXPECT_THROW(ssh_words(bad, {"n"}), ContentsError) << bad;
}

TEST_F(Logins, HostsWithoutThemChangeNothing) {
  use_logins(parse_hosts({"n1:2", "n2"}), "/opt/redco");
  EXPECT_EQ(value("OMPI_MCA_plm_rsh_agent"), "");
  EXPECT_EQ(value(kLoginsVariable), "");
}

TEST_F(Logins, OtherStartersAreErrors) {
  const auto message = [] {
    return usage_error([] { use_logins(parse_hosts({"n1 user=ann"}), "/opt/redco"); });
  };
  setenv("OMPI_MCA_plm_rsh_agent", "rsh", 1);
  EXPECT_THAT(message(), HasSubstr("host n1 has user, port, identity or address, which are for ssh, but "
                                   "OMPI_MCA_plm_rsh_agent=rsh starts programs"));
  clear();
  setenv("SLURM_JOB_ID", "1", 1);
  EXPECT_THAT(message(), HasSubstr("SLURM starts the processes on the hosts of its job"));
}

}  // namespace
}  // namespace redco
