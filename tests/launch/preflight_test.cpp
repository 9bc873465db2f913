#include "launch/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/process.h"
#include "launch/child_process.h"
#include "launch/host_networks.h"
#include "launch/slurm.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

HostReport host_report(const std::string& name) {
  HostReport r;
  r.facts = {name, 8, "avx2", "CPU", true, true};
  r.program = "1111";
  r.library = "2222";
  r.mpi = "Open MPI v4.1.4";
  r.daemon = "/usr/bin/orted";
  r.memory_total = i64{64} << 30;
  r.memory_available = i64{32} << 30;
  r.open_files = 1 << 20;
  r.networks = {{"eth0", "10.0.0." + std::to_string(name[0] - 'a' + 1), 24}};
  return r;
}
HostAnswer answer(const std::string& name) {
  HostAnswer a;
  a.host = name;
  a.way = "ssh";
  a.report = host_report(name);
  return a;
}
PreflightNeeds needs() {
  PreflightNeeds n;
  n.hosts = {{"a", 4}, {"b", 4}};
  n.n_ranks = 8;
  n.threads_per_rank = 2;
  n.workdir = "/work";
  n.program = "1111";
  n.library = "2222";
  n.mpi = "Open MPI v4.1.4";
  return n;
}
// The findings about b after a change of its answer.
std::vector<HostFinding> about(const std::function<void(HostAnswer&)>& change,
                               const PreflightNeeds& n = needs()) {
  std::vector<HostAnswer> all = {answer("a"), answer("b")};
  change(all[1]);
  return findings(n, all);
}
std::string text_of(const std::vector<HostFinding>& all) {
  std::string text;
  for (const HostFinding& f : all) text += (f.fails ? "fails " : "notes ") + f.host + ": " + f.text + "\n";
  return text;
}

TEST(Preflight, GoodHostsHaveNoFindings) {
  EXPECT_EQ(text_of(about([](HostAnswer&) {})), "");
}

TEST(Preflight, FindsTheDaemonsOfOpenMpi4And5) {
  for (const char* daemon : {"command -v orted", "command -v prted"})
    EXPECT_THAT(command_on_host({}, "localhost", "redco", {}), testing::Contains(HasSubstr(daemon)));
}

// The agent's process on the host is named as sshd's, and ends with the connection.
TEST(Preflight, AStoppedProcessEndsWithItsConnection) {
  const test::TempDir dir;
  const std::string agent = dir / "sshd-agent", program = dir / "program";
  test::spill(agent, "#!/bin/sh\nfor command; do :; done\nsetsid sh -c \"$command\" &\nwait\n");
  test::spill(program, "#!/bin/sh\necho $$ >" + (dir / "pid") + "\nkill -STOP $$\n");
  for (const std::string& file : {agent, program})
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  LaunchRequest r;
  r.environment = current_environment();
  r.environment["OMPI_MCA_plm_rsh_agent"] = agent;
  PreflightNeeds n = needs();
  n.workdir.clear();
  n.hosts = {{"b", 1}};
  EXPECT_THAT(ask_hosts(r, n, program, 3)[0].problem, HasSubstr("host b")) << "it answers nothing";
  std::istringstream pid(test::slurp(dir / "pid"));
  int number = 0;
  ASSERT_TRUE(pid >> number);
  const auto lives = [&] {  // in a container without init, nobody waits for it when it has ended
    std::ifstream status("/proc/" + std::to_string(number) + "/status");
    std::stringstream text;
    text << status.rdbuf();
    return !text.str().empty() && text.str().find("State:\tZ") == std::string::npos;
  };
  for (int i = 0; i < 200 && lives(); ++i) ::usleep(100000);
  EXPECT_FALSE(lives());
}

TEST(Preflight, EachFailureNamesHostValueAndRemedy) {
  EXPECT_THAT(text_of(about([](HostAnswer& a) { a.report->library = "3333"; })),
              AllOf(HasSubstr("fails b: its redco is another build"), HasSubstr("3333"), HasSubstr("2222"),
                    HasSubstr("Install the same redco")));
  EXPECT_THAT(text_of(about([](HostAnswer& a) { a.report->mpi = "Open MPI v5.0.1"; })),
              HasSubstr("fails b: Open MPI v5.0.1 there, Open MPI v4.1.4 here"));
  EXPECT_THAT(text_of(about([](HostAnswer& a) { a.report->daemon = ""; })),
              HasSubstr("fails b: Open MPI's program orted"));
  EXPECT_THAT(
      text_of(about([](HostAnswer& a) { a.report->workdir = "does not see it"; })),
      HasSubstr("fails b: /work: does not see it. Put workdir on a file system that all hosts share"));
  EXPECT_THAT(
      text_of(about([](HostAnswer& a) { a.report->open_files = 100; })),
      HasSubstr("fails b: a process may open 100 files (ulimit -Hn), and 8 ranks on 2 hosts need 266"));
  EXPECT_THAT(text_of(about([](HostAnswer& a) {
                a.report->files = {{"/models/x", "No such file"}};
              })),
              HasSubstr("fails b: it cannot read /models/x: No such file. Put"));
  EXPECT_THAT(text_of(about([](HostAnswer& a) {
                a.report->files = {{"/models/x", "No such file"}, {"/models/y", "No such file"}};
              })),
              HasSubstr("fails b: it cannot read /models/x: No such file, and 1 more file. Put the files"));
  PreflightNeeds n = needs();
  n.memory_per_rank = i64{9} << 30;
  EXPECT_THAT(text_of(about([](HostAnswer&) {}, n)),
              HasSubstr("fails b: 4 ranks need 36.0 GiB by the plan, and 32.0 GiB"));
  EXPECT_THAT(text_of(about([](HostAnswer& a) {
                a.report.reset();
                a.problem = "host b: ssh cannot connect";
              })),
              HasSubstr("fails b: host b: ssh cannot connect"));
}

TEST(Preflight, WhatOnlySlowsAJobIsANote) {
  EXPECT_THAT(text_of(about([](HostAnswer& a) { a.clock = -600; })),
              HasSubstr("notes b: its clock is 600 s behind"));
  EXPECT_THAT(text_of(about([](HostAnswer& a) { a.report->facts.cores = 4; })),
              HasSubstr("notes b: 4 ranks with 2 threads each share 4 cores"));
  EXPECT_THAT(text_of(about([](HostAnswer& a) { a.report->others = {"process 17 in /x"}; })),
              HasSubstr("notes b: another redco trains there (process 17 in /x)"));
  EXPECT_THAT(text_of(about([](HostAnswer& a) {
                a.report->networks = {{"eth0", "192.168.0.2", 16}};
              })),
              HasSubstr("notes : the hosts have no network in common"));
  // Only the first host reads the data.
  PreflightNeeds n = needs();
  n.data = {"/data/x"};
  EXPECT_THAT(text_of(about(
                  [](HostAnswer& a) {
                    a.report->files = {{"/data/x", "No such file"}};
                  },
                  n)),
              HasSubstr("notes b: it cannot read /data/x"));
}

TEST(Preflight, NetworksThatOnlySomeHostsHaveAreLeftOut) {
  std::vector<HostAnswer> all = {answer("a"), answer("b")};
  EXPECT_THAT(networks_to_choose(all), ElementsAre());
  // Each host's own bridge has the same address.
  for (HostAnswer& a : all) a.report->networks.push_back({"docker0", "172.17.0.1", 16});
  EXPECT_THAT(networks_to_choose(all), ElementsAre("10.0.0.0/24"));
  for (HostAnswer& a : all) a.report->networks.pop_back();
  EXPECT_TRUE(is_in({{"eth0", "10.0.0.77", 24}}, {"10.0.0.0/24"}));
  EXPECT_FALSE(is_in({{"eth0", "192.168.0.1", 24}}, {"10.0.0.0/24"}));
  all[1].report->networks.push_back({"eth1", "10.9.0.2", 16});
  EXPECT_THAT(networks_to_choose(all), ElementsAre("10.0.0.0/24"));
}

// Machines of a cloud: each has an own network, and Docker's bridge with the same address.
TEST(Preflight, NetworksWithTheSameAddressOnAllHostsAreLeftOut) {
  std::vector<HostAnswer> all = {answer("a"), answer("b")};
  for (HostAnswer& a : all) a.report->networks[0].prefix = 32;
  EXPECT_THAT(networks_to_leave_out(all), ElementsAre());
  for (HostAnswer& a : all) a.report->networks.push_back({"docker0", "172.17.0.1", 16});
  EXPECT_THAT(networks_to_choose(all), ElementsAre());
  EXPECT_THAT(networks_to_leave_out(all), ElementsAre("172.17.0.0/16"));
  EXPECT_THAT(text_of(findings(needs(), all)), HasSubstr("no network in common"));
  for (HostAnswer& a : all) a.report->networks[0].prefix = 24;
  EXPECT_THAT(networks_to_leave_out(all), ElementsAre());
}

TEST(Preflight, OneMachineOrOneNameTwiceIsANote) {
  std::vector<HostAnswer> all = {answer("a"), answer("a"), answer("b")};
  all[1].host = "10.0.0.1";
  EXPECT_THAT(text_of(findings(needs(), all)),
              HasSubstr("notes 10.0.0.1: it is the same machine as host a. Name it once"));
  for (HostAnswer& a : all) a.report->networks.push_back({"docker0", "172.17.0.1", 16});
  EXPECT_THAT(networks_to_choose(all), ElementsAre("10.0.0.0/24"));
  all = {answer("a"), answer("b")};
  for (HostAnswer& a : all) a.report->facts.name = "ubuntu";
  EXPECT_THAT(text_of(findings(needs(), all)), HasSubstr("notes b: it calls itself ubuntu, as host a does"));
}

TEST(HostReport, JsonAndBack) {
  HostReport r = host_report("a");
  r.files = {{"/x", "No such file"}};
  r.others = {"process 17"};
  r.workdir = "not shared";
  const HostReport b = parse_host_report(to_json(r));
  EXPECT_EQ(b.facts.name, "a");
  EXPECT_EQ(b.facts.cores, 8);
  EXPECT_EQ(b.networks, r.networks);
  EXPECT_EQ(b.files, r.files);
  EXPECT_EQ(b.others, r.others);
  EXPECT_EQ(b.memory_available, r.memory_available);
  for (const std::string bad : {"{", "{}", "[]", "{\"host\": 1}"})
    EXPECT_THAT(error_text<ContentsError>([&] { parse_host_report(bad); }),
                HasSubstr("install the same redco"));
  std::string many = to_json(r);
  many.replace(many.find("\"cores\":8"), 9, "\"cores\":99999999999");
  EXPECT_THAT(error_text<ContentsError>([&] { parse_host_report(many); }), HasSubstr("no report"));
  EXPECT_EQ((HostNetwork{"e", "10.1.2.3", 20}.network()), "10.1.0.0/20");
  EXPECT_EQ((HostNetwork{"e", "fd00::1:2", 64}.network()), "fd00::/64");
}

TEST(HostReport, OfThisHost) {
  test::TempDir dir;
  write_file_durable(dir / "nonce", "42");
  const HostReport r = report_of_this_host({dir / "nonce", "42", {dir.path(), dir / "absent"}});
  EXPECT_EQ(r.workdir, "");
  EXPECT_EQ(r.files.size(), 1u);
  EXPECT_EQ(r.files.at(dir / "absent"), "No such file or directory");
  EXPECT_GT(r.facts.cores, 0);
  EXPECT_GT(r.memory_available, 0);
}

// An agent in place of ssh that runs the command here; its name of the host is the one in the job.
class AskHosts : public testing::Test {
 protected:
  void SetUp() override {
    script("agent",
           "case $1 in -*) exit 9;; esac\n[ \"$1\" != down ] || { echo 'ssh: connect to host down port 22: "
           "No route to host' >&2; exit 255; }\n[ \"$1\" != slow ] || sleep 20\nshift; exec sh -c \"$*\"\n");
    script("redco", "echo Welcome to this host\necho '" + to_json(host_report("q")) + "'\n");
    r_.here.name = "somewhere-else";
    r_.environment = {{"PATH", dir_.path() + ":/usr/bin:/bin"}, {"OMPI_MCA_plm_rsh_agent", "agent"}};
    needs_.workdir = dir_ / "run";
  }
  void script(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << "#!/bin/bash\n" << text;
    std::filesystem::permissions(dir_ / name, std::filesystem::perms::owner_all);
  }
  std::vector<HostAnswer> ask(std::vector<Host> hosts, double seconds = 5) {
    needs_.hosts = std::move(hosts);
    return ask_hosts(r_, needs_, dir_ / "redco", seconds);
  }
  test::TempDir dir_;
  LaunchRequest r_;
  PreflightNeeds needs_;
};

TEST_F(AskHosts, EachHostHasItsDeadlineAndTheWorkdirIsUnchanged) {
  const auto all = ask({{"up", 1}, {"down", 1}, {"slow", 1}}, 1);
  ASSERT_TRUE(all[0].report) << all[0].problem;
  EXPECT_EQ(all[0].report->facts.name, "q");
  EXPECT_EQ(all[0].way, "agent");
  EXPECT_FALSE(all[1].report);
  EXPECT_EQ(all[1].failure.kind, StartFailure::Kind::no_connection);
  EXPECT_THAT(all[1].problem, HasSubstr("host down: ssh cannot connect: No route to host"));
  EXPECT_THAT(all[2].problem, HasSubstr("host slow: ssh cannot connect: no answer within 1 s"));
  EXPECT_TRUE(may_answer_later(all[2].failure));
  EXPECT_FALSE(exists(dir_ / "run"));
}

TEST_F(AskHosts, FoldersThatWereMadeForTheWorkdirAreRemoved) {
  needs_.workdir = dir_ / "runs/new/first";
  ASSERT_TRUE(ask({{"up", 1}})[0].report);
  EXPECT_FALSE(exists(dir_ / "runs"));
}

// The shell of the login runs a start file before the command.
TEST_F(AskHosts, WhatALoginPrintsOrDoesBefore) {
  const auto login = [&](const std::string& start) {
    script("agent", "shift; " + start + "\nexec sh -c \"$*\"\n");
    return ask({{"up", 1}})[0];
  };
  EXPECT_TRUE(login("printf 'loading modules...'").report);
  EXPECT_TRUE(login("echo '{motd}'; printf '{'").report);
  EXPECT_THAT(
      login("exit 3").problem,
      AllOf(HasSubstr("host up: the login ended with status 3 before redco ran"), HasSubstr("~/.bashrc")));
  EXPECT_THAT(login("exit 0").problem, HasSubstr("the login ended without a report before redco ran"));
  EXPECT_THAT(login("seq 1 400000").problem,
              HasSubstr("the login wrote more than 1048576 bytes before redco ran"));
  EXPECT_THAT(login("echo 'Property of ACME' >&2; echo 'bad option' >&2; exit 2").problem,
              HasSubstr(": bad option"));
}

TEST_F(AskHosts, TheProgramThereDoesNotAnswer) {
  script("redco", "echo 'Property of ACME' >&2; echo 'no library' >&2; exit 9\n");
  EXPECT_THAT(ask({{"up", 1}})[0].problem,
              HasSubstr("host up: `redco hosts --here` ended with status 9: no library."));
  script("redco", "sleep 20\n");
  const HostAnswer late = ask({{"up", 1}}, 1)[0];
  EXPECT_THAT(late.problem, HasSubstr("host up: ssh connects, but no answer within 1 s. A file system"));
  EXPECT_TRUE(may_answer_later(late.failure));
}

TEST_F(AskHosts, SshEndsWithoutAKnownText) {
  script("ssh", "echo 'kex_exchange_identification: read: Connection reset by peer' >&2\nexit 255\n");
  r_.environment.erase("OMPI_MCA_plm_rsh_agent");
  r_.environment["PATH"] = dir_.path();
  EXPECT_THAT(
      ask({{"up", 1}})[0].problem,
      HasSubstr("host up: ssh cannot connect: kex_exchange_identification: read: Connection reset by peer."));
}

// The launcher's host, under a name that it does not know as its own.
TEST_F(AskHosts, TheTrainingThatAsksIsNotAnotherOne) {
  EXPECT_EQ(asker_of_this_process(), fmt::format("{} {}", host_name(), getpid()));
  script("redco", "echo \"{\\\"asker\\\": \\\"$REDCO_ASKER\\\"}\"\n");
  EXPECT_THAT(ask({{"up", 1}})[0].problem, HasSubstr("{\"asker\": \"" + asker_of_this_process() + "\"}"));
}

TEST_F(AskHosts, AProgramOrASshThatIsMissing) {
  std::filesystem::remove(dir_ / "redco");
  EXPECT_THAT(ask({{"up", 1}})[0].problem, HasSubstr("host up cannot run " + dir_ / "redco"));
  r_.environment["OMPI_MCA_plm_rsh_agent"] = "no-such-agent";
  EXPECT_THAT(ask({{"up", 1}})[0].problem, HasSubstr("this host has no ssh"));
}

}  // namespace
}  // namespace redco
