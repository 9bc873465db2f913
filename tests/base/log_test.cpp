// Messages and progress, with and without a terminal (a pseudo-terminal that the test opens).
#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/progress.h"
#include "base/terminal.h"

namespace redco {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Makes stderr a terminal during its lifetime.
class Terminal {
 public:
  Terminal() {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    if (slave < 0) return;
    saved_ = ::dup(STDERR_FILENO);
    ::dup2(slave, STDERR_FILENO);
    ::close(slave);
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  ~Terminal() { restore(); }
  bool works() const { return saved_ >= 0; }
  // All output that the terminal showed.
  std::string shown() {
    std::string s;
    char c[4096];
    for (ssize_t n; (n = ::read(master_, c, sizeof c)) > 0;) s.append(c, static_cast<std::size_t>(n));
    return s;
  }

 private:
  void restore() {
    if (saved_ >= 0) ::dup2(saved_, STDERR_FILENO), ::close(saved_);
    if (master_ >= 0) ::close(master_);
  }
  int master_ = -1, saved_ = -1;
};

std::string messages() {
  testing::internal::CaptureStderr();
  debug("for developers");
  info("resuming from {}", "step-20");
  warn("{} ranks idle", 2);
  error("lost");
  return testing::internal::GetCapturedStderr();
}

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::info);
    set_log_file("");
    ::unsetenv("NO_COLOR");
  }
};

TEST_F(Log, PlainTextIfStderrIsNotATerminal) {
  EXPECT_EQ(messages(), "resuming from step-20\nwarning: 2 ranks idle\nerror: lost\n");
}

TEST_F(Log, ALevelHidesLowerLevels) {
  set_log_level(LogLevel::error);
  EXPECT_EQ(messages(), "error: lost\n");
  set_log_level(LogLevel::off);
  EXPECT_EQ(messages(), "");
  set_log_level(LogLevel::debug);
  EXPECT_THAT(messages(), HasSubstr("for developers\n"));
}

TEST_F(Log, TheFileHasInfoAndAboveEvenIfStderrHidesIt) {
  const std::string path = testing::TempDir() + "redco_log_test.txt";
  std::filesystem::remove(path);
  set_log_file(path);
  set_log_level(LogLevel::off);
  messages();
  set_log_file("");
  messages();
  std::stringstream s;
  s << std::ifstream(path).rdbuf();
  EXPECT_THAT(s.str(), testing::ContainsRegex("^[0-9-]+ [0-9:.]+ info     resuming from step-20\n"
                                              "[0-9-]+ [0-9:.]+ warning  2 ranks idle\n"
                                              "[0-9-]+ [0-9:.]+ error    lost\n$"));
  EXPECT_THROW(set_log_file("/no/such/folder/log.txt"), Error);
  std::filesystem::remove(path);
}

TEST_F(Log, AnUnwritableLogFileIsReportedOnce) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  try {
    set_log_file("/dev/full");
  } catch (const Error&) {
    return;  // not a regular file: refused immediately
  }
  EXPECT_THAT(messages() + messages(), HasSubstr("the log cannot be written"));
}

TEST_F(Log, ColoursOnATerminalUnlessNoColor) {
  Terminal t;
  if (!t.works()) GTEST_SKIP() << "no pseudo-terminal here";
  ::setenv("TERM", "xterm", 1);
  warn("careful");
  EXPECT_THAT(t.shown(), HasSubstr("\x1b[33mwarning:\x1b[0m careful"));
  ::setenv("NO_COLOR", "1", 1);
  warn("careful");
  EXPECT_EQ(t.shown(), "warning: careful\r\n");
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  warn("careful");
  EXPECT_EQ(t.shown(), "warning: careful\r\n");
}

TEST_F(Log, MessagesGoAboveTheStatusLine) {
  Terminal t;
  if (!t.works()) GTEST_SKIP() << "no pseudo-terminal here";
  set_status_line("50%");
  info("saved");
  set_status_line("");
  EXPECT_EQ(t.shown(), "\r\x1b[K50%\r\x1b[Ksaved\r\n50%\r\x1b[K");
  info("after");
  EXPECT_EQ(t.shown(), "after\r\n");
}

TEST_F(Log, NoStatusLineIfStderrIsNotATerminal) {
  testing::internal::CaptureStderr();
  set_status_line("50%");
  set_status_line("");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// A clock that the test sets, and the lines shown, with their times.
struct Stage {
  double time = 100;
  std::vector<std::string> status, lines, records;
  Progress::Output output(bool terminal, int columns = 200) {
    return {terminal,
            columns,
            [this] { return time; },
            [this](std::string_view s) { status.emplace_back(s); },
            [this](std::string_view s) { lines.emplace_back(s); },
            [this](std::string_view s) { records.emplace_back(s); }};
  }
};

TEST(Progress, TheBarIsDrawnAtMostTenTimesASecond) {
  Stage s;
  Progress p("train", 1000, 0, s.output(true));
  for (int i = 1; i <= 380; ++i) {
    s.time = 100 + i * 0.01;
    p.update(i, {{"loss", "3.21"}, {"", "12.3 k tokens/s"}});
  }
  // 3.8 seconds: the first step immediately, then one line every 0.1 s.
  EXPECT_GE(s.status.size(), 35u);
  EXPECT_LE(s.status.size(), 39u);
  s.time += 1;
  p.update(500, {{"loss", "3.21"}, {"", "12.3 k tokens/s"}});
  EXPECT_EQ(s.status.back(),
            "train [==========>         ]  500/1000  50%  4.79 s left  loss 3.21  12.3 k tokens/s");
  EXPECT_TRUE(s.lines.empty());
  EXPECT_TRUE(s.records.empty());
  p.finish(1000, {{"loss", "3.00"}});
  EXPECT_EQ(s.status.back(), "");
  EXPECT_EQ(s.lines.back(), "train  1000/1000  100%  in 4.80 s  loss 3.00");
  EXPECT_EQ(s.records, s.lines);
  p.update(1000, {});
  EXPECT_EQ(s.lines.size(), 1u);
}

TEST(Progress, PlainLinesBecomeRarerWithoutATerminal) {
  Stage s;
  Progress p("train", 1000000, 0, s.output(false));
  int made = 0;
  for (int i = 1; i <= 86400; ++i) {  // a day with one step per second
    s.time = 100 + i;
    p.update(i, [&] { return ++made, Progress::Fields{{"loss", "1"}}; });
    if (i == 21) {
      EXPECT_EQ(s.lines.size(), 4u);  // every 5 s at first
    }
  }
  EXPECT_LT(s.lines.size(), 1700u);  // one per minute, and a few more in the first hour
  EXPECT_GT(s.lines.size(), 1300u);
  EXPECT_EQ(made, static_cast<int>(s.lines.size()));
  EXPECT_TRUE(s.status.empty());
  EXPECT_EQ(s.lines[0], "train  5/1000000  0%  11 d 13 h left  loss 1");
  EXPECT_EQ(s.records, s.lines);  // the log file has them too
}

TEST(Progress, TheLogFileHasPlainLinesAlsoWithATerminal) {
  Stage s;
  Progress p("train", 100, 0, s.output(true));
  for (int i = 1; i <= 12; ++i) {
    s.time = 100 + i;
    p.update(i, {});
  }
  EXPECT_EQ(s.status.size(), 12u);
  EXPECT_TRUE(s.lines.empty());
  EXPECT_EQ(s.records, (std::vector<std::string>{"train  5/100  5%  1 min 35 s left",
                                                 "train  10/100  10%  1 min 30 s left"}));
}

TEST(Progress, TheRemainingTimeIncludesPausesInProportion) {
  Stage s;
  Progress p("train", 100, 0, s.output(false));
  for (int i = 1; i <= 10; ++i) {
    s.time += 1;
    p.update(i, {});
  }
  EXPECT_THAT(s.lines.back(), HasSubstr("1 min 30 s left"));
  s.time += 11;  // an evaluation that takes as long as all steps so far
  p.paused(11);
  s.time += 1;
  p.update(11, {});
  // 89 steps of one second, and the same time for pauses.
  EXPECT_THAT(s.lines.back(), HasSubstr("2 min 58 s left"));
}

TEST(Pace, FollowsAMachineThatSlowsDown) {
  Pace pace;
  EXPECT_EQ(pace.left(10), 0);
  for (int i = 0; i < 1000; ++i) pace.step(1, 0.5);
  EXPECT_NEAR(pace.left(10), 5, 1e-9);
  for (int i = 0; i < 180; ++i) pace.step(1, 2);  // six minutes: exp(-6) of the old weight remains
  EXPECT_NEAR(pace.step_seconds(), 2, 0.1);
  EXPECT_EQ(pace.left(-3), 0);
  Pace slow;  // steps of an hour: about the last twenty count, not only the last one
  for (const double hours : {1, 1, 1, 1, 2}) slow.step(1, 3600 * hours);
  EXPECT_NEAR(slow.step_seconds() / 3600, 1.2, 0.05);
}

TEST(Timing, MedianOfOddAndEvenNumbersOfValues) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Progress, TheRemainingTimeOfAResumedRunUsesItsOwnSteps) {
  Stage s;
  Progress p("train", 100, 90, s.output(false));
  s.time += 10;
  p.update(95, {});
  EXPECT_EQ(s.lines.back(), "train  95/100  95%  10.0 s left");
}

TEST(Progress, WithoutATotalThereIsNoBarAndNoRemainingTime) {
  Stage s;
  Progress p("eval", 0, 0, s.output(true));
  s.time += 1;
  p.update(7, {{"rows", "7"}});
  EXPECT_EQ(s.status.back(), "eval  7  rows 7");
}

TEST(Progress, FitsTheTerminalInWholeCharacters) {
  Stage s;
  {
    Progress p("é", 10, 0, s.output(true, 20));
    s.time += 1;
    p.update(1, {{"long", std::string(100, 'x')}});
    EXPECT_EQ(s.status.back(), "é [==>             ");  // 19 characters
  }
  EXPECT_EQ(s.status.back(), "");
}

}  // namespace
}  // namespace redco
