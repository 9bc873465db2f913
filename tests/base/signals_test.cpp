// Requests to end a process, each tested in a child process.
#include "base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/temporaries.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using std::chrono::milliseconds;

// The stderr output of `body` and its status as in a shell.
struct Ended {
  int code = -1;
  std::string err;
};
Ended in_child(const std::function<void()>& body) {
  int fds[2];
  EXPECT_EQ(pipe(fds), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(fds[1], 2);
    alarm(20);
    body();
    _exit(0);
  }
  close(fds[1]);
  Ended out;
  char buffer[4096];
  for (ssize_t n; (n = read(fds[0], buffer, sizeof buffer)) > 0;) out.err.append(buffer, n);
  close(fds[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}
void sleep_ms(int n) { std::this_thread::sleep_for(milliseconds(n)); }

TEST(Signals, AFirstRequestEndsTheProcessWithCodeEight) {
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    const Ended e = in_child([s] {
      catch_signals();
      kill(getpid(), s);
      sleep_ms(10000);
    });
    EXPECT_EQ(e.code, 8) << signal_text(s);
    EXPECT_EQ(e.err, "redco: stopped by " + signal_text(s) + "; nothing had to be saved\n");
  }
}

TEST(Signals, ADeferredRequestSetsAFlagAndASecondOneEnds) {
  Ended e = in_child([] {
    catch_signals();
    defer_end();
    kill(getpid(), SIGTERM);
    for (int i = 0; i < 500 && end_requested() == 0; ++i) sleep_ms(10);
    _exit(end_requested());
  });
  EXPECT_EQ(e.code, SIGTERM);
  EXPECT_EQ(e.err, "");
  e = in_child([] {
    catch_signals();
    defer_end();
    kill(getpid(), SIGTERM);
    sleep_ms(50);
    kill(getpid(), SIGTERM);  // part of the same request
    sleep_ms(700);
    if (end_requested() != SIGTERM) _exit(1);
    kill(getpid(), SIGINT);
    sleep_ms(10000);
  });
  EXPECT_EQ(e.code, 8);
  EXPECT_NE(e.err.find("second request: the process ends without saving"), e.err.npos) << e.err;
}

TEST(Signals, ARequestThatArrivesWhileSignalsAreHeldIsNotLost) {
  const Ended e = in_child([] {
    hold_signals();
    kill(getpid(), SIGTERM);
    sleep_ms(20);
    catch_signals();
    sleep_ms(10000);
  });
  EXPECT_EQ(e.code, 8);
}

// The watchdog of a rank may make a request in the rank's first milliseconds.
TEST(Signals, ARequestBeforeCatchSignalsIsNotLost) {
  const Ended e = in_child([] {
    request_end(SIGTERM);
    catch_signals();
    sleep_ms(10000);
  });
  EXPECT_EQ(e.code, 8);
  EXPECT_EQ(e.err, "redco: stopped by SIGTERM; nothing had to be saved\n");
}

TEST(Signals, RepeatedSigusr1AndRequestEndDoNotEndTheProcess) {
  const Ended e = in_child([] {
    catch_signals();
    defer_end();
    kill(getpid(), SIGUSR1);
    sleep_ms(700);
    kill(getpid(), SIGUSR1);
    request_end(SIGTERM);
    sleep_ms(200);
    _exit(end_requested() == SIGUSR1 ? 0 : 1);
  });
  EXPECT_EQ(e.code, 0) << e.err;
}

TEST(Signals, IgnoredSignalsStayIgnored) {
  const Ended e = in_child([] {
    signal(SIGHUP, SIG_IGN);
    catch_signals();
    kill(getpid(), SIGHUP);
    sleep_ms(100);
    _exit(end_requested() == 0 ? 0 : 1);
  });
  EXPECT_EQ(e.code, 0);
}

TEST(Signals, EndingTheProcessRemovesTemporaryFoldersAndPrintsTheNote) {
  const test::TempDir dir{test::TempDir::in_memory};
  const Ended e = in_child([&] {
    setenv("TMPDIR", dir.path().c_str(), 1);
    catch_signals();
    const TemporaryFolder folder;
    set_end_note("3 predictions are saved");
    request_end(SIGTERM);
    sleep_ms(10000);
  });
  EXPECT_EQ(e.code, 8);
  EXPECT_EQ(e.err, "redco: stopped by SIGTERM; 3 predictions are saved\n");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace redco
