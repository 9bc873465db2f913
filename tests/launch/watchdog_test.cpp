// The watchdog: verdicts from reports, the server with valid and hostile clients, and the client in child
// processes.
#include "launch/watch/watchdog.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/activity.h"
#include "base/timing.h"
#include "launch/watch/end_daemon.h"
#include "launch/watch/server.h"

namespace redco {
namespace {

using State = RankReport::State;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RankReport report(State state, double still, double heard = 0) {
  RankReport r;
  r.state = state;
  r.host = "a";
  r.heard = heard;
  r.still = still;
  r.phase = "train";
  r.step = 7;
  r.waits_for = "barrier";
  r.waits = 12;
  return r;
}
std::string judged(const std::vector<RankReport>& ranks, double timeout = 10, double started = 100) {
  const auto outcome = judge(ranks, timeout, started);
  return outcome ? outcome_message(*outcome) : "";
}

TEST(WatchJudge, NamesTheRankWithoutProgress) {
  const RankReport waits = report(State::waiting, 30), works = report(State::working, 3);
  EXPECT_EQ(judged({waits, works}), "");
  EXPECT_EQ(judged({waits, report(State::working, 9.9)}), "");
  EXPECT_THAT(judged({waits, report(State::working, 10.1)}),
              AllOf(HasSubstr("no progress for 10 s on rank 1 on a (phase: train, step 7)"),
                    Not(HasSubstr("rank 0"))));
  // A lost rank is named before a rank without progress.
  EXPECT_THAT(judged({waits, report(State::working, 20), report(State::waiting, 0, 10.1)}),
              AllOf(HasSubstr("no message for 10 s from rank 2 on a"), Not(HasSubstr("rank 1"))));
  // A rank that waits for a person may take any time, but must send messages.
  EXPECT_EQ(judged({waits, report(State::idle, 1000)}), "");
  EXPECT_THAT(judged({waits, report(State::idle, 1000, 11)}), HasSubstr("from rank 1"));
}

TEST(WatchJudge, RanksThatDoNotStart) {
  RankReport absent;
  absent.host = "b";
  EXPECT_EQ(judged({report(State::waiting, 90), absent}, 10, 14.9), "");
  EXPECT_THAT(judged({report(State::waiting, 90), absent}, 10, 15.1),
              HasSubstr("no report within 15 s after the start from rank 1 on b"));
  EXPECT_EQ(judged({absent}, 60, 59), "");
  EXPECT_THAT(judged({absent, absent}, 60, 61), HasSubstr("rank 0 on b, rank 1 on b"));
}

TEST(WatchJudge, RanksThatWaitForEachOther) {
  const RankReport waits = report(State::waiting, 11), ended = report(State::ended, 50, 50);
  EXPECT_THAT(judged({waits, waits}),
              AllOf(HasSubstr("all ranks have waited for each other for 10 s"),
                    HasSubstr("rank 1 on a (in barrier, its wait number 12, phase: train")));
  EXPECT_THAT(judged({waits, ended}), HasSubstr("all ranks have waited"));
  EXPECT_EQ(judged({waits, report(State::waiting, 9)}), "");
  EXPECT_EQ(judged({ended, ended}), "");
}

TEST(WatchJudge, WithoutADeadlineOnlyDeadProcessesEndTheJob) {
  EXPECT_EQ(judged({report(State::working, 1e6), report(State::waiting, 1e6, 1e6), RankReport{}}, 0, 1e6),
            "");
  EXPECT_EQ(judged({report(State::closed, 0, 9)}, 0), "");
  EXPECT_THAT(judged({report(State::closed, 0, 11)}, 0), HasSubstr("the process of rank 0 on a"));
}

TEST(WatchAddress, TextAndBack) {
  const WatchAddress a{random_key(), random_key(), 2.5, true, {"10.0.0.1:4000", "[fd00::1]:4001"}};
  const auto b = parse_watch_address(text_of(a));
  ASSERT_TRUE(b);
  EXPECT_EQ(b->client_key, a.client_key);
  EXPECT_EQ(b->server_key, a.server_key);
  EXPECT_EQ(b->timeout, 2.5);
  EXPECT_TRUE(b->in_rank);
  EXPECT_EQ(b->endpoints, a.endpoints);
  EXPECT_NE(a.client_key, a.server_key);
  for (const std::string& bad :
       {std::string(), std::string("x"), std::string("k,k,1,0,e"), text_of(a).substr(1)})
    EXPECT_FALSE(parse_watch_address(bad)) << bad;
}

// A client that sends the test's lines.
class Peer {
 public:
  explicit Peer(const WatchServer& s) : fd_(connect_to(s.address().endpoints.at(0))) {
    pollfd p{fd_, POLLOUT, 0};
    poll(&p, 1, 2000);
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  void say(const std::string& text) { EXPECT_GE(send(fd_, text.data(), text.size(), MSG_NOSIGNAL), 0); }
  // The next line; "" when the connection has ended.
  std::string line() {
    while (true) {
      if (const auto end = held_.find('\n'); end != std::string::npos) {
        const std::string first = held_.substr(0, end);
        held_.erase(0, end + 1);
        return first;
      }
      pollfd p{fd_, POLLIN, 0};
      char buffer[256];
      const ssize_t n = poll(&p, 1, 5000) > 0 ? recv(fd_, buffer, sizeof buffer, 0) : 0;
      if (n <= 0) return "";
      held_.append(buffer, static_cast<std::size_t>(n));
    }
  }
  void greet(const WatchServer& s, int rank) {
    say(fmt::format("redco-watch {} {} 4711 node{}\n", s.address().client_key, rank, rank));
    EXPECT_EQ(line(), "welcome " + s.address().server_key);
  }

 private:
  int fd_;
  std::string held_;
};

std::string verdict_of(
    WatchServer& s, const std::function<void()>& meanwhile = [] {}) {
  for (const double began = seconds(); seconds() - began < 10;) {
    if (const auto v = s.verdict()) return outcome_message(*v);
    meanwhile();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return "no verdict";
}

TEST(WatchServer, ClosesConnectionsWithoutTheKey) {
  WatchServer s({.n_ranks = 2});
  const std::string key = s.address().client_key;
  for (const std::string& first :
       {"redco-watch " + random_key() + " 0 1 h\n", "redco-watch " + key + " 2 1 h\n",
        "redco-watch " + key + " -1 1 h\n", "redco-watch " + key + "\n",
        std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100000, 'x'), std::string(64, '\0') + "\n",
        std::string("beat working 0 0 0 - train\n")}) {
    Peer p(s);
    p.say(first);
    EXPECT_EQ(p.line(), "") << first.substr(0, 60);
  }
  Peer good(s);
  good.greet(s, 1);
  Peer twin(s);
  twin.say("redco-watch " + key + " 1 1 h\n");
  EXPECT_EQ(twin.line(), "");  // a rank connects once
  good.say("beat working 0 -1 0 - start\n");
  EXPECT_EQ(good.line(), "alive");
  EXPECT_EQ(s.connected(), 1);
  good.say("beat what\n");
  EXPECT_EQ(good.line(), "");
}

// A launcher that was stopped at the start finds the connection that the rank gave up first.
TEST(WatchServer, ARankThatGaveUpItsFirstConnectionMayConnectAgain) {
  WatchServer s({.n_ranks = 1});
  {
    Peer gave_up(s);
    gave_up.greet(s, 0);
  }
  for (int i = 0; i < 200 && s.connected() > 0; ++i) usleep(10000);
  ASSERT_EQ(s.connected(), 0);
  {
    Peer again(s);
    again.greet(s, 0);
    again.say("beat working 0 -1 0 - start\n");
    EXPECT_EQ(again.line(), "alive");
    EXPECT_EQ(s.connected(), 1);
  }
  // A process that has reported and is gone stays gone.
  for (int i = 0; i < 200 && s.connected() > 0; ++i) usleep(10000);
  Peer third(s);
  third.say("redco-watch " + s.address().client_key + " 0 1 h\n");
  EXPECT_EQ(third.line(), "");
}

// Without descriptors a connection stays in the queue of the socket; waiting for one must not spin.
TEST(WatchServer, WaitsForDescriptorsWithoutSpinning) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  WatchServer s({.n_ranks = 1});
  const auto used = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  // The peer's socket gets the last descriptor.
  const int last = dup(0);
  close(last);
  const rlimit one{static_cast<rlim_t>(last) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one), 0);
  Peer p(s);
  p.say("x\n");
  const double cpu = used(), began = seconds();
  while (seconds() - began < 0.4) usleep(10000);
  EXPECT_LT(used() - cpu, 0.2);
  EXPECT_EQ(s.connected(), 0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(p.line(), "");  // accepted at last, and refused
}

TEST(WatchServer, NamesARankWithoutProgressAndEndsAll) {
  WatchServer s({.n_ranks = 2, .timeout = 0.5});
  Peer a(s), b(s);
  a.greet(s, 0);
  b.greet(s, 1);
  const std::string v = verdict_of(s, [&] {
    a.say("beat waiting 400 -1 3 all_reduce load\n");
    b.say("beat working 600 -1 3 - load\n");
  });
  EXPECT_THAT(v, HasSubstr("no progress for 0.5 s on rank 1 on node1 (phase: load)"));
  s.end_all();
  const auto last = [](Peer& p) {
    std::string line;
    while ((line = p.line()) == "alive") {
    }
    return line;
  };
  EXPECT_EQ(last(a), "end");
  EXPECT_EQ(last(b), "end");
}

TEST(WatchServer, NamesARankWithoutMessages) {
  WatchServer s({.n_ranks = 2, .timeout = 0.5});
  Peer a(s), b(s);
  a.greet(s, 0);
  b.greet(s, 1);
  b.say("beat working 0 7 0 - train\n");
  const double began = seconds();
  EXPECT_THAT(verdict_of(s, [&] { a.say("beat waiting 0 7 3 all_reduce train\n"); }),
              HasSubstr("no message for 0.5 s from rank 1 on node1 (phase: train, step 7)"));
  EXPECT_LT(seconds() - began, 3);
}

TEST(WatchServer, RemembersTheCodesOfEndedRanks) {
  WatchServer s({.n_ranks = 1});
  {
    Peer p(s);
    p.greet(s, 0);
    p.say("bye 1\n");
    for (int i = 0; i < 200 && !s.ended_with(1); ++i) usleep(10000);
  }
  EXPECT_TRUE(s.ended_with(1));
  EXPECT_FALSE(s.ended_with(0));
}

// The client, in a child process.
class WatchClient : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / fmt::format("redco-watchdog-{}", getpid());
    std::filesystem::create_directories(path_);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  // Runs f as rank `rank`, or as no rank if it is -1; the process ends with f's value, or with 99 after 20 s.
  pid_t rank(int rank, const std::string& address, const std::function<int()>& f) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    alarm(20);
    if (!freopen((path_ / fmt::format("stderr-{}", rank)).c_str(), "w", stderr)) _exit(98);
    setenv(kWatchVariable, address.c_str(), 1);
    if (rank >= 0) setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
    watchdog::start();
    if (std::getenv(kWatchVariable)) _exit(97);
    _exit(f());
  }
  static int code(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string errors(int rank) {
    std::ifstream in(path_ / fmt::format("stderr-{}", rank));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static int hang() {
    while (true) pause();
  }
  static int work() {
    while (true) {
      activity::tick();
      usleep(1000);
    }
  }
  std::filesystem::path path_;
};

// Open MPI 5 hands it the variable: `redco agent` would take the place of rank 0, and would make no progress.
TEST_F(WatchClient, TheLaunchAgentOfMpirunIsNotARank) {
  WatchServer s({.n_ranks = 1, .timeout = 5});
  const pid_t pid = rank(-1, text_of(s.address()), [] {
    for (int i = 0; i < 30 && !watchdog::is_watched(); ++i) usleep(10000);
    return watchdog::is_watched() ? 1 : 0;
  });
  EXPECT_EQ(code(pid), 0);
}

TEST_F(WatchClient, ReportsItsEnd) {
  WatchServer s({.n_ranks = 1, .timeout = 1});
  const pid_t pid = rank(0, text_of(s.address()), [] {
    for (int i = 0; i < 150; ++i) {
      activity::tick();
      usleep(10000);
    }
    watchdog::finish(3);
    return 3;
  });
  EXPECT_EQ(code(pid), 3);
  for (int i = 0; i < 200 && s.connected() > 0; ++i) usleep(10000);
  EXPECT_FALSE(s.verdict());
  EXPECT_TRUE(s.ended_with(3));
  EXPECT_EQ(errors(0), "");
}

TEST_F(WatchClient, AHangingMainThreadIsReported) {
  WatchServer s({.n_ranks = 2, .timeout = 1});
  const pid_t a = rank(0, text_of(s.address()), [] {
    const activity::Wait wait("barrier");
    return hang();
  });
  const pid_t b = rank(1, text_of(s.address()), [] {
    activity::set_step(4);
    const activity::Phase save("save");
    return hang();
  });
  EXPECT_THAT(verdict_of(s), AllOf(HasSubstr("no progress for 1 s on rank 1 on "),
                                   HasSubstr("(phase: save, step 4)"), Not(HasSubstr("rank 0"))));
  s.end_all();
  EXPECT_EQ(code(a), 5);
  EXPECT_EQ(code(b), 5);
  EXPECT_EQ(errors(0) + errors(1), "");  // the server's owner prints the error
}

TEST_F(WatchClient, AStoppedProcessIsLost) {
  WatchServer s({.n_ranks = 1, .timeout = 1});
  const pid_t pid = rank(0, text_of(s.address()), work);
  while (s.connected() == 0) usleep(1000);
  kill(pid, SIGSTOP);
  EXPECT_THAT(verdict_of(s), HasSubstr("no message for 1 s from rank 0"));
  kill(pid, SIGKILL);
  EXPECT_EQ(code(pid), 128 + SIGKILL);
}

TEST_F(WatchClient, EndsWithItsServer) {
  auto s = std::make_unique<WatchServer>(WatchOptions{.n_ranks = 1});  // also without a deadline
  const pid_t pid = rank(0, text_of(s->address()), work);
  while (s->connected() == 0) usleep(1000);
  const double began = seconds();
  s.reset();
  EXPECT_EQ(code(pid), 5);
  EXPECT_LT(seconds() - began, 2);
  EXPECT_THAT(errors(0), HasSubstr("the launcher is gone"));
}

TEST_F(WatchClient, WithoutAServerAProcessWatchesItself) {
  const auto alone = [&](const std::function<int()>& f) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    alarm(20);
    if (!freopen((path_ / "stderr-0").c_str(), "w", stderr)) _exit(98);
    // A record that hangs, as on a broken disk, doesn't prevent the end.
    watchdog::watch_alone(0.5, [](const std::string& message) {
      std::fputs(("recorded " + message.substr(0, 7)).c_str(), stderr);
      std::fflush(stderr);
      hang();
    });
    _exit(f());
  };
  EXPECT_EQ(code(alone([] {
              const activity::Wait wait("MPI_Init");
              return hang();
            })),
            5);
  EXPECT_THAT(errors(0),
              AllOf(HasSubstr("error: [fault] rank 0 on "), HasSubstr("no progress for 0.5 s (phase: start"),
                    HasSubstr("waits in MPI_Init)"), HasSubstr("recorded [fault]")));
  EXPECT_EQ(code(alone([] {
              {
                const activity::Idle idle;
                usleep(1000000);
              }
              watchdog::finish(0);
              return 7;
            })),
            7);
}

TEST_F(WatchClient, TheFirstRankServesRanksStartedByHand) {
  int address[2];
  ASSERT_EQ(pipe(address), 0);
  const auto by_hand = [&](int rank, const std::function<void()>& f) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    alarm(20);
    if (!freopen((path_ / fmt::format("stderr-{}", rank)).c_str(), "w", stderr)) _exit(98);
    f();
    _exit(hang());
  };
  const pid_t first = by_hand(0, [&] {
    const std::string text = watchdog::serve(2, 1);
    if (write(address[1], text.data(), text.size()) < 0) _exit(96);
    watchdog::join(text, 0);
    const activity::Wait wait("barrier");
    hang();
  });
  const pid_t second = by_hand(1, [&] {
    char text[2048];
    const ssize_t n = read(address[0], text, sizeof text);
    watchdog::join(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(0, n))), 1);
    if (!watchdog::is_watched()) _exit(95);
  });
  EXPECT_EQ(code(first), 5);
  EXPECT_EQ(code(second), 5);
  EXPECT_THAT(errors(0), HasSubstr("error: [fault] no progress for 1 s on rank 1 on "));
  EXPECT_EQ(errors(1), "");
  close(address[0]);
  close(address[1]);
}

// The wait status of a process with this name, whose child ends it as mpirun's daemon.
int status_of_daemon(const char* name, void (*on_term)(int)) {
  const pid_t daemon = fork();
  if (daemon == 0) {
    prctl(PR_SET_NAME, name);
    signal(SIGTERM, on_term);
    const pid_t rank = fork();
    if (rank == 0) {
      watchdog::end_daemon(0.3);
      _exit(0);
    }
    int status = 0;
    waitpid(rank, &status, 0);
    _exit(7);
  }
  int status = 0;
  waitpid(daemon, &status, 0);
  return status;
}

TEST(WatchDaemon, EndsWithARankWithoutANetwork) {
  EXPECT_EQ(WTERMSIG(status_of_daemon("orted", SIG_DFL)), SIGTERM);
  EXPECT_EQ(WTERMSIG(status_of_daemon("prted", SIG_IGN)), SIGKILL);
  const int other = status_of_daemon("slurmstepd", SIG_DFL);
  EXPECT_TRUE(WIFEXITED(other) && WEXITSTATUS(other) == 7) << other;
}

}  // namespace
}  // namespace redco
