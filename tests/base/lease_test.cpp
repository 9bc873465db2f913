#include "base/lease.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/timing.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;

class Leases : public testing::Test {
 protected:
  void SetUp() override { lease_times() = {.heartbeat = 0.05, .stale = 0.5, .takeover = 0.3}; }
  void TearDown() override { lease_times() = {}; }
  // A lease as a process on another host would have written it `age` seconds ago.
  void of_another_host(const std::string& path, double age = 0) {
    spill(path, "process 7 on node9\nanother kernel\n");
    const double then = wall_seconds() - age;
    const auto sec = static_cast<time_t>(then);
    const struct timespec t { sec, static_cast<long>((then - static_cast<double>(sec)) * 1e9) };
    const struct timespec times[2] = {t, t};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  std::optional<FileLock> take() {
    return std::optional<FileLock>(std::in_place, dir_ / "lock", "[x] thing", "wait", FileLock::keeps);
  }
  std::string refusal() {
    return usage_error([&] { FileLock(dir_ / "lock", "[x] thing", "wait", FileLock::keeps); });
  }

  TempDir dir_{TempDir::in_memory};
};

TEST_F(Leases, ALeaseIsHeldUntilReleasedAndStaleWithoutRenewal) {
  const std::string path = dir_ / "lease";
  EXPECT_EQ(lease_holder(path), "");
  {
    const auto lease = Lease::hold(path);
    ASSERT_NE(lease, nullptr);
    // Longer than a lease is valid without renewal.
    const double begin = seconds();
    while (seconds() - begin < 2 * lease_times().stale) {
      EXPECT_THAT(lease_holder(path), testing::StartsWith(fmt::format("process {} on ", ::getpid())));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  of_another_host(path);
  EXPECT_EQ(lease_holder(path), "process 7 on node9");
  of_another_host(path, 1);
  EXPECT_EQ(lease_holder(path), "");
}

TEST_F(Leases, WithoutWritePermissionThereIsNoLease) {
  EXPECT_EQ(Lease::hold("/proc/no-file-can-be-made-here"), nullptr);
  EXPECT_EQ(Lease::hold(dir_ / "no folder/lease"), nullptr);
}

TEST_F(Leases, ALockExcludesProcessesOfThisHostWithoutWaiting) {
  const double begin = seconds();
  {
    const auto lock = take();
    EXPECT_THAT(refusal(), AllOf(HasSubstr("[x] thing is in use by process " + std::to_string(::getpid())),
                                 HasSubstr("; wait")));
    EXPECT_THAT(lock_holder(dir_ / "lock"), HasSubstr("process " + std::to_string(::getpid())));
  }
  EXPECT_EQ(lock_holder(dir_ / "lock"), "");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "lock.lease"));
  // After a kill the operating system releases the lock, so the remaining lease causes no wait.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = take();
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "lock.lease"));
  EXPECT_EQ(lock_holder(dir_ / "lock"), "");
  EXPECT_EQ(refusal(), "no error");
  EXPECT_LT(seconds() - begin, 0.25);
}

// A lock of a host that this host's locks do not reach: only its lease shows it.
TEST_F(Leases, ALiveLeaseOfAnotherHostKeepsALock) {
  of_another_host(dir_ / "lock.lease");
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      of_another_host(dir_ / "lock.lease");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  EXPECT_THAT(refusal(), HasSubstr("[x] thing is in use by process 7 on node9"));
  EXPECT_EQ(lock_holder(dir_ / "lock"), "process 7 on node9");
  ends = true;
  other.join();
}

TEST_F(Leases, ADeadLeaseOfAnotherHostIsTakenOverAfterADelay) {
  of_another_host(dir_ / "lock.lease");
  double begin = seconds();
  {
    const auto lock = take();
    EXPECT_GE(seconds() - begin, lease_times().takeover);
    EXPECT_THAT(slurp(dir_ / "lock.lease"), HasSubstr("process " + std::to_string(::getpid())));
  }
  // The holder is known to be dead: no wait.
  of_another_host(dir_ / "lock.lease", 10);
  begin = seconds();
  take();
  EXPECT_LT(seconds() - begin, lease_times().takeover);
}

// A file server keeps the lock of a host that has died until that host starts again.
TEST_F(Leases, TheLockOfADeadHostIsTakenOverWhenItsLeaseIsStale) {
  spill(dir_ / "lock", "process 7 on node9\nanother kernel\n");
  const int server = ::open((dir_ / "lock").c_str(), O_RDWR | O_CLOEXEC);
  struct flock l {};
  l.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(server, F_OFD_SETLK, &l), 0);
  EXPECT_THAT(refusal(),
              HasSubstr("in use by process 7 on node9"));  // no lease: the holder may be alive
  of_another_host(dir_ / "lock.lease", 10);
  EXPECT_EQ(lock_holder(dir_ / "lock"), "");
  {
    const auto lock = take();
    EXPECT_THAT(refusal(), HasSubstr("in use by process " + std::to_string(::getpid())));
  }
  // The lock's file is a new one that the dead host has not locked.
  EXPECT_EQ(refusal(), "no error");
  // While its lease is younger, the lock counts.
  ASSERT_EQ(::rename((dir_ / "lock").c_str(), (dir_ / "other").c_str()), 0);
  spill(dir_ / "lock", "process 7 on node9\nanother kernel\n");
  const int again = ::open((dir_ / "lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::fcntl(again, F_OFD_SETLK, &l), 0);
  of_another_host(dir_ / "lock.lease");
  const double begin = seconds();
  EXPECT_EQ(refusal(), "no error");
  EXPECT_GE(seconds() - begin, 0.9 * lease_times().stale);
  ::close(server);
  ::close(again);
}

// A rank of the former start of a job, on a host that the launcher cannot reach, still holds the lock and
// renews its lease: the new start waits for its end, then takes over. A process of another job is refused.
TEST_F(Leases, AFormerStartOfTheSameJobIsTakenOver) {
  ::setenv(kStartOfJob, "key 2", 1);
  auto former = take();
  const double begin = seconds();
  EXPECT_THAT(refusal(), HasSubstr("in use by process"));  // not a later start
  for (const char* other : {"other 3", "key 1", ""}) {
    ::setenv(kStartOfJob, other, 1);
    EXPECT_THAT(refusal(), HasSubstr("in use by process")) << other;
  }
  EXPECT_LT(seconds() - begin, 0.25);
  ::setenv(kStartOfJob, "key 3", 1);
  {
    const auto lock = take();
    EXPECT_GE(seconds() - begin, 0.9 * lease_times().stale);
    EXPECT_THAT(refusal(), HasSubstr("in use by process"));
  }
  // One that ends meanwhile is not waited for any longer.
  ::setenv(kStartOfJob, "key 4", 1);
  auto ending = take();
  ::setenv(kStartOfJob, "key 5", 1);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ending.reset();
  });
  const double again = seconds();
  take();
  EXPECT_LT(seconds() - again, 0.4);
  end.join();
  ::unsetenv(kStartOfJob);
}

// A colleague with another user id continues the run, whatever the umask of the first one was.
TEST_F(Leases, WhoMayWriteInTheFolderMayWriteTheLock) {
  const mode_t before = ::umask(022);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0770), 0);
  const auto lock = take();
  const auto lease = Lease::hold(dir_ / "lease");
  for (const char* name : {"lock", "lock.lease", "lease"}) {
    struct stat st {};
    ASSERT_EQ(::stat((dir_ / name).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0664u) << name;
  }
  ::umask(before);
}

TEST_F(Leases, ALockThatRemovesItsFileLeavesNothing) {
  for (int i = 0; i < 3; ++i) FileLock(dir_ / "lock", "[x] thing", "wait", FileLock::removes);
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

}  // namespace
}  // namespace redco
