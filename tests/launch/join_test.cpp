// A job that is started without ssh: the place of a process, the channel between processes, and commands that
// the agent runs on the host of another process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/process.h"
#include "base/timing.h"
#include "launch/join/channel.h"
#include "launch/join/hello.h"
#include "launch/join/member.h"
#include "launch/join/server.h"
#include "launch/join/starter.h"
#include "launch/watch/wire.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using FrameKind = Channel::Kind;
using ChannelRole = Channel::Role;
const std::string kKey = "a key of many bytes";

// RFC 4231, test cases 1, 2 and 6.
TEST(JoinChannel, HmacSha256) {
  const auto hex = [](const std::string& bytes) {
    std::string out;
    for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return out;
  };
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

struct Ends {
  Fd a, b;
  Ends() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) abort();
    a.fd = fds[0];
    b.fd = fds[1];
  }
};
std::pair<std::optional<Channel>, std::optional<Channel>> pair_of(Ends& e, const std::string& k0,
                                                                  const std::string& k1,
                                                                  ChannelRole second = ChannelRole::member) {
  std::optional<Channel> b;
  std::thread other([&] {
    if (auto c = Channel::open(e.b, k1, second, 1)) b.emplace(std::move(*c));
  });
  auto a = Channel::open(e.a, k0, ChannelRole::host0, 1);
  other.join();
  return {std::move(a), std::move(b)};
}

TEST(JoinChannel, NeedsTheKeyAndTheOtherRole) {
  Ends good, bad, mirror;
  auto [a, b] = pair_of(good, kKey, kKey);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(a->send(FrameKind::run, "1\nls"));
  EXPECT_TRUE(a->send(FrameKind::kill, std::string(100000, 'x')));
  std::vector<Channel::Frame> got;
  for (int i = 0; i < 1000 && got.size() < 2; ++i) {
    EXPECT_TRUE(b->receive());
    while (auto f = b->next()) got.push_back(*f);
  }
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].kind, FrameKind::run);
  EXPECT_EQ(got[0].body, "1\nls");
  EXPECT_EQ(got[1].body.size(), 100000u);
  auto [c, d] = pair_of(bad, kKey, "another key of many bytes");
  EXPECT_FALSE(c || d);
  auto [e, f] = pair_of(mirror, kKey, kKey, ChannelRole::host0);  // an attacker who sends a proof back
  EXPECT_FALSE(e || f);
}

// Somebody on the network who changes, repeats or makes up frames.
TEST(JoinChannel, FramesThatAreNotGenuineEndTheConnection) {
  for (const char* how : {"change", "repeat", "length", "noise"}) {
    Ends left, right;  // a <-> left.b | right.a <-> b: the test is between them
    std::optional<Channel> a, b;
    std::thread first([&] {
      if (auto c = Channel::open(left.a, kKey, ChannelRole::host0, 2)) a.emplace(std::move(*c));
    });
    std::thread second([&] {
      if (auto c = Channel::open(right.b, kKey, ChannelRole::member, 2)) b.emplace(std::move(*c));
    });
    char bytes[64];
    for (const auto& [from, to] : {std::pair(left.b.fd, right.a.fd), std::pair(right.a.fd, left.b.fd)}) {
      ASSERT_EQ(recv(from, bytes, 32, MSG_WAITALL), 32);
      ASSERT_EQ(send(to, bytes, 32, 0), 32);
    }
    for (const auto& [from, to] : {std::pair(left.b.fd, right.a.fd), std::pair(right.a.fd, left.b.fd)}) {
      ASSERT_EQ(recv(from, bytes, 32, MSG_WAITALL), 32);
      ASSERT_EQ(send(to, bytes, 32, 0), 32);
    }
    first.join();
    second.join();
    ASSERT_TRUE(a && b);
    EXPECT_TRUE(a->send(FrameKind::run, "1\nrm file"));
    std::string frame(37 + 9, '\0');
    ASSERT_EQ(recv(left.b.fd, frame.data(), frame.size(), MSG_WAITALL), static_cast<ssize_t>(frame.size()));
    if (std::string(how) == "change") frame.back() = '!';
    if (std::string(how) == "repeat") frame += frame;
    if (std::string(how) == "length") frame[3] = '\x7f';
    if (std::string(how) == "noise") frame = std::string(200, '\x01');
    ASSERT_GT(send(right.a.fd, frame.data(), frame.size(), 0), 0);
    std::vector<Channel::Frame> got;
    bool open = true;
    for (int i = 0; i < 3 && open; ++i) {
      open = b->receive();
      while (auto f = b->next()) got.push_back(*f);
    }
    EXPECT_EQ(got.size(), std::string(how) == "repeat" ? 1u : 0u) << how;
    EXPECT_FALSE(open) << how;
  }
}

TEST(JoinKey, FromAFileThatOthersCannotRead) {
  test::TempDir dir;
  std::ofstream(dir / "key") << "  " << kKey << "\n";
  std::filesystem::permissions(dir / "key", std::filesystem::perms(0600));
  EXPECT_EQ(job_key(dir / "key"), kKey);
  std::filesystem::permissions(dir / "key", std::filesystem::perms(0644));
  EXPECT_THAT(usage_error([&] { job_key(dir / "key"); }), HasSubstr("chmod 600"));
  EXPECT_THAT(usage_error([] { job_key(""); }), HasSubstr("REDCO_KEY"));
  setenv("REDCO_KEY", "short", 1);
  EXPECT_THAT(usage_error([] { job_key(""); }), HasSubstr("has 5 bytes, expected at least 16"));
  unsetenv("REDCO_KEY");
}

TEST(JoinPlace, FromOptionsAndStarters) {
  EXPECT_FALSE(join_place({}, {}));
  EXPECT_FALSE(join_place({}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}));  // not complete
  EXPECT_FALSE(
      join_place({}, {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NODELIST", "a,b"}}));
  const Environment torch = {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "99"}, {"WORLD_SIZE", "4"}, {"RANK", "3"}};
  auto p = join_place({}, torch);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->n_processes, 4);
  EXPECT_EQ(p->process_id, 3);
  EXPECT_EQ(p->host0, "m");
  EXPECT_EQ(p->port, 99);
  EXPECT_EQ(p->source, "MASTER_ADDR, WORLD_SIZE and RANK");
  p = join_place({.n_processes = 2, .process_id = 1, .host0_address = "a"}, {});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->port, kJoinPort);
  p = join_place({.n_processes = 8, .host0_address = "job-0.svc"}, {{"JOB_COMPLETION_INDEX", "5"}});
  EXPECT_EQ(p->process_id, 5);
  EXPECT_EQ(p->source, "the options; JOB_COMPLETION_INDEX");
  p = join_place({.host0_port = 7000},
                 {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NODELIST", "n[3-4]"}});
  EXPECT_EQ(p->host0, "n3");
  EXPECT_EQ(p->n_processes, 2);
  EXPECT_EQ(p->process_id, 1);
  EXPECT_EQ(p->port, 7000);
  p = join_place({.host0_port = 7000}, {{"LSF_PM_TASKID", "2"}, {"LSB_MCPU_HOSTS", "h1 4 h2 4"}});
  EXPECT_EQ(p->process_id, 1);
  EXPECT_EQ(p->host0, "h1");
  test::TempDir dir;
  std::ofstream(dir / "nodes") << "p1\np1\np2\n";
  p = join_place({.host0_port = 7000}, {{"PBS_NODENUM", "1"}, {"PBS_NODEFILE", dir / "nodes"}});
  EXPECT_EQ(p->n_processes, 2);
  EXPECT_EQ(p->host0, "p1");
  EXPECT_THAT(usage_error([] { join_place({.n_processes = 2}, {}); }), HasSubstr("--process-id is missing"));
  EXPECT_THAT(usage_error([] { join_place({.n_processes = 2, .process_id = 2, .host0_address = "a"}, {}); }),
              HasSubstr("--process-id is 2, expected 0 to 1"));
}

// Process 0 here, process 1 in a child with another host name for the test.
TEST(Join, AnAgentRunsCommandsOnTheHostOfAnotherProcess) {
  JoinPlace place{
      .n_processes = 2, .process_id = 0, .host0 = "127.0.0.1", .port = 0, .source = "", .job = ""};
  JoinServer server(place, kKey);
  std::optional<Channel> member;
  std::thread other([&] {
    for (int i = 0; i < 100 && !member; ++i) {
      Fd t(connect_to(fmt::format("127.0.0.1:{}", server.port())));
      usleep(20000);
      if (auto c = Channel::open(t, kKey, ChannelRole::member, 2)) member.emplace(std::move(*c));
    }
    if (member) member->send(FrameKind::hello, to_text({1, 2, "far", "x", ""}));
  });
  EXPECT_EQ(server.wait_for_all(5), (std::vector<std::string>{host_name(), "far"}));
  other.join();
  setenv(kAgentVariable, server.agent_variable().c_str(), 1);
  int status = -1;
  std::thread agent([&] { status = run_agent("far", "echo hi"); });
  std::string asked;
  for (const double began = seconds(); asked.empty() && seconds() - began < 5;) {
    member->receive();
    while (const auto f = member->next())
      if (f->kind == FrameKind::run) asked = f->body;
    usleep(5000);
  }
  EXPECT_THAT(asked, testing::EndsWith("\necho hi"));
  member->send(FrameKind::ended, asked.substr(0, asked.find('\n')) + "\n7");
  agent.join();
  EXPECT_EQ(status, 7);
  EXPECT_EQ(run_agent("nowhere", "true"), kNotJoined);
  unsetenv(kAgentVariable);
}

// A process that sends this hello to the server; then it answers nothing.
std::optional<Channel> joined(const JoinServer& server, const JoinHello& hello) {
  Fd t(connect_to(fmt::format("127.0.0.1:{}", server.port())));
  usleep(50000);
  auto c = Channel::open(t, kKey, ChannelRole::member, 2);
  if (c) c->send(FrameKind::hello, to_text(hello));
  return c;
}
// Beats until the server refuses the process, for at most `limit` s. "": it did not.
std::string refusal(Channel& c, double limit, Channel* other = nullptr) {
  for (const double began = seconds(); seconds() - began < limit; usleep(100000)) {
    if (other) other->send(FrameKind::alive, "");
    const bool open = c.receive();
    while (const auto f = c.next())
      if (f->kind == FrameKind::refused) return f->body;
    if (!open) return "closed";
  }
  return "";
}

TEST(Join, AProcessWithAnotherNumberOfProcessesIsRefused) {
  JoinServer server({.n_processes = 2, .process_id = 0, .host0 = "h", .port = 0, .source = "", .job = ""},
                    kKey);
  const JoinPlace wrong{.n_processes = 3,
                        .process_id = 2,
                        .host0 = "127.0.0.1",
                        .port = server.port(),
                        .source = "",
                        .job = ""};
  EXPECT_THAT(usage_error([&] { run_member(wrong, kKey, 20); }),
              AllOf(HasSubstr("process 2 on " + host_name() + " has --n-processes 3"),
                    HasSubstr("process 0 has --n-processes 2")));
  auto old = joined(server, {7, 2, "far", "x", ""});
  ASSERT_TRUE(old);
  EXPECT_THAT(refusal(*old, 5), HasSubstr("--process-id 7, expected 1 to 1"));
  EXPECT_THAT(why_refused(parse_hello("1\nfar"), wrong), HasSubstr("another version of redco"));
}

TEST(Join, ANumberThatIsGivenTwiceIsRefusedWhileTheFirstAnswers) {
  JoinServer server({.n_processes = 3, .process_id = 0, .host0 = "h", .port = 0, .source = "", .job = ""},
                    kKey);
  auto first = joined(server, {1, 3, "near", "x", ""});
  ASSERT_TRUE(first);
  usleep(300000);
  auto second = joined(server, {1, 3, "far", "y", ""});
  ASSERT_TRUE(second);
  EXPECT_THAT(refusal(*second, 5, &*first),
              HasSubstr("two processes have --process-id 1: one on near, one on far"));
  // Its host has died: it is silent.
  auto third = joined(server, {1, 3, "spare", "z", ""});
  ASSERT_TRUE(third);
  EXPECT_EQ(refusal(*third, 7), "");
  auto again = joined(server, {1, 3, "spare", "z", ""});  // the same process after a lost connection
  ASSERT_TRUE(again);
  EXPECT_EQ(refusal(*again, 2), "");
}

TEST(JoinPlace, OfTorchrun) {
  Environment e = {{"MASTER_ADDR", "m"}, {"MASTER_PORT", "29500"}, {"WORLD_SIZE", "2"}, {"RANK", "1"}};
  EXPECT_EQ(incomplete_place(e), "");
  e["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(join_place({}, e)->port, kJoinPort);  // torchrun listens on the other one
  EXPECT_EQ(join_place({.host0_port = 7}, e)->port, 7);
  e["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_THAT(usage_error([&] { join_place({}, e); }), HasSubstr("--nproc-per-node=1"));
  e.erase("RANK");
  EXPECT_FALSE(join_place({}, e));
  EXPECT_THAT(incomplete_place(e), HasSubstr("RANK is not set"));
  e["PET_NNODES"] = "2";
  EXPECT_THAT(incomplete_place(e), HasSubstr("PET_NODE_RANK is not set"));
  EXPECT_EQ(incomplete_place({{"MASTER_ADDR", "m"}}), "");
}

TEST(Join, MissingProcessesAreNamed) {
  JoinServer server({.n_processes = 3, .process_id = 0, .host0 = "h", .port = 0, .source = "", .job = ""},
                    kKey);
  EXPECT_THAT(error_text<Error>([&] { server.wait_for_all(0.1); }),
              HasSubstr("2 of 3 processes have not joined within 0.1 s: --process-id 1, 2."));
}

}  // namespace
}  // namespace redco
