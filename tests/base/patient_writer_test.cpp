#include "base/patient_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/log.h"
#include "base/terminal.h"
#include "base/timing.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using testing::HasSubstr;

class PatientWriters : public testing::Test {
 protected:
  void SetUp() override {
    before_ = ::signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(::pipe2(fds_.data(), O_CLOEXEC), 0);
    ASSERT_GT(::fcntl(fds_[1], F_SETPIPE_SZ, 4096), 0);
  }
  void TearDown() override {
    for (const int fd : fds_) ::close(fd);
    ::signal(SIGPIPE, before_);
  }
  std::string read() {
    std::string text(1 << 16, ' ');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(fds_[0], text.data(), text.size()))));
    return text;
  }
  std::array<int, 2> fds_{-1, -1};
  sighandler_t before_ = SIG_DFL;
};

TEST_F(PatientWriters, AReaderThatStopsDoesNotHoldUpTheWriter) {
  PatientWriter w(fds_[1], 0.05);
  const std::string line(99, 'x');
  const double begin = seconds();
  for (int i = 0; i < 1000; ++i) w.write(line + "\n");
  EXPECT_LT(seconds() - begin, 5);
  EXPECT_FALSE(w.lost());
  const std::string kept = read();
  EXPECT_EQ(kept.size() % 100, 0u);
  w.write("here again\n");
  EXPECT_EQ(
      read(),
      fmt::format("\nwarning: {} bytes of messages are missing here, because nobody read them\nhere again\n",
                  100'000 - kept.size()));
}

TEST_F(PatientWriters, AReaderThatGoesAwayIsNoticed) {
  PatientWriter w(fds_[1]);
  w.write("one\n");
  EXPECT_EQ(read(), "one\n");
  ::close(fds_[0]);
  w.write("two\n");
  EXPECT_TRUE(w.lost());
  w.write("three\n");
}

// `redco train 2>&1 | head -n 1`
TEST_F(PatientWriters, TheLogFileSaysThatNobodyReadsTheMessages) {
  const test::TempDir dir{test::TempDir::in_memory};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(fds_[1], 2);
    ::close(fds_[0]);
    ::close(fds_[1]);
    info("before the file");
    set_log_file(dir / "log.txt");
    info("first");
    info("second");
    ::_exit(stderr_is_lost() ? 0 : 1);
  }
  ::close(fds_[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  const std::string text = test::slurp(dir / "log.txt");
  EXPECT_THAT(text, HasSubstr("nobody reads standard error any more"));
  EXPECT_THAT(text, HasSubstr("second"));
  EXPECT_EQ(text.find("nobody"), text.rfind("nobody"));
}

}  // namespace
}  // namespace redco
