#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/syscalls.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using sys::Call;
using sys::Op;
using sys::Verdict;
using test::slurp;
using test::spill;
using test::TempDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct HookGuard {
  explicit HookGuard(sys::Hook h) { sys::set_hook(std::move(h)); }
  ~HookGuard() { sys::set_hook({}); }
};

template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another exception: ") + e.what();
  }
  return "no exception";
}

// As on network file systems, where a listing may name files that another host has removed.
TEST(File, RemovingATreeThatVanishesIsNoError) {
  TempDir dir;
  make_dirs(dir / "a/b/c");
  spill(dir / "a/b/x", "1");
  {
    const HookGuard guard([&](const Call& c) {
      if (c.op == Op::list && c.path == dir / "a/b") std::filesystem::remove_all(dir / "a/b");
      return Verdict{};
    });
    EXPECT_EQ(message_of<Error>([&] { remove_tree(dir / "a"); }), "no exception");
  }
  EXPECT_FALSE(exists(dir / "a"));
}

TEST(File, OpeningAPipeIsAnErrorAndDoesNotBlock) {
  TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<UsageError>([&] { ReadFile::open(dir / "pipe"); }), HasSubstr("not a regular file"));
}

TEST(File, PathsSplitAndJoin) {
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(parent_path("a//b//"), "a");
  EXPECT_EQ(parent_path(""), ".");
  EXPECT_EQ(file_name("a/b"), "b");
  EXPECT_EQ(file_name("b/"), "b");
  EXPECT_EQ(file_name("/"), "");
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
}

TEST(File, WriteReplacesTheWholeFileAndLeavesNothingElse) {
  TempDir dir;
  write_file_durable(dir / "x", "first, and longer");
  write_file_durable(dir / "x", "second");
  EXPECT_EQ(slurp(dir / "x"), "second");
  write_file_durable(dir / "x", "");
  EXPECT_EQ(slurp(dir / "x"), "");
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("x"));
}

TEST(File, DurableFileTakesPiecesInAnyOrderAndAppearsOnlyOnCommit) {
  TempDir dir;
  {
    DurableFile f = DurableFile::create(dir / "x", 6);
    f.pwrite(3, "def", 3);
    EXPECT_FALSE(exists(dir / "x"));
    f.pwrite(0, "abc", 3);
    f.append("ghi");
    f.commit();
    EXPECT_THROW(f.commit(), BugError);
    EXPECT_THROW(f.pwrite(0, "a", 1), BugError);
  }
  EXPECT_EQ(slurp(dir / "x"), "abcdefghi");
  { DurableFile dropped = DurableFile::create(dir / "y", 100); }
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("x"));
}

TEST(File, LongNamesAndLeftoversOfTheSameProcessIdDoNotCollide) {
  TempDir dir;
  std::string longest(255, 'n');
  write_file_durable(dir / longest, "z");
  EXPECT_EQ(slurp(dir / longest), "z");
  EXPECT_THAT(message_of<IoError>([&] { write_file_durable(dir / (longest + "n"), "z"); }),
              HasSubstr("too long"));
}

TEST(File, MissingPathsAreUsageErrors) {
  TempDir dir;
  EXPECT_THROW(ReadFile::open(dir / "no"), UsageError);
  EXPECT_THROW(ReadFile::open(dir.path()), UsageError);
  EXPECT_THROW(read_file(dir / "no/no", 10), UsageError);
  EXPECT_THROW(list_dir(dir / "no"), UsageError);
  EXPECT_THROW(file_size(dir / "no"), UsageError);
  EXPECT_THROW(write_file_durable(dir / "no/x", "a"), UsageError);
  EXPECT_FALSE(exists(dir / "no"));
  EXPECT_FALSE(is_folder(dir / "no"));
  remove_tree(dir / "no");
  remove_file(dir / "no");
}

TEST(File, ReadingPastTheEndNamesTheFilesLength) {
  TempDir dir;
  spill(dir / "x", "0123456789");
  ReadFile f = ReadFile::open(dir / "x");
  char b[4];
  f.pread_exact(6, b, 4);
  EXPECT_EQ(std::string(b, 4), "6789");
  EXPECT_THAT(message_of<ContentsError>([&] { f.pread_exact(8, b, 4); }), HasSubstr("ends at byte 10"));
  EXPECT_THROW(read_file(dir / "x", 9), ContentsError);
  EXPECT_EQ(read_file(dir / "x", 10), "0123456789");
}

TEST(File, ShortAndInterruptedCallsAreContinued) {
  TempDir dir;
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(i * 7);
  int calls = 0;
  HookGuard guard([&](const Call&) {
    ++calls;
    return calls % 3 == 1   ? Verdict{Verdict::fail, EINTR}
           : calls % 3 == 2 ? Verdict{Verdict::shorten}
                            : Verdict{};
  });
  {
    DurableFile f = DurableFile::create(dir / "x");
    f.pwrite(0, bytes.data(), 5000);
    f.commit();
  }
  EXPECT_EQ(read_file(dir / "x", 5000), bytes);
  EXPECT_GT(calls, 15);
}

TEST(File, TheErrorForAFullDiskHasTheBytesNeededAndFree) {
  TempDir dir;
  spill(dir / "x", "old");
  for (Op op : {Op::write, Op::allocate}) {
    HookGuard guard([&](const Call& c) { return c.op == op ? Verdict{Verdict::fail, ENOSPC} : Verdict{}; });
    EXPECT_THAT(message_of<IoError>([&] { write_file_durable(dir / "x", std::string(3 << 20, 'a')); }),
                AllOf(HasSubstr(dir / "x"), HasSubstr("No space left"), HasSubstr("3.00 MiB more needed"),
                      HasSubstr(" free;")));
  }
  EXPECT_EQ(slurp(dir / "x"), "old");
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("x"));
  EXPECT_GT(disk_free(dir / "not/there/yet"), 0);
}

TEST(File, FileSystemsWithoutReservationOrFolderSyncWork) {
  TempDir dir;
  HookGuard guard([&](const Call& c) {
    if (c.op == Op::allocate && c.bytes > 0 && c.offset == 0) {
      static int n = 0;
      if (n++ == 0) return Verdict{Verdict::fail, EOPNOTSUPP};
    }
    return c.op == Op::sync && c.path == dir.path() ? Verdict{Verdict::fail, EINVAL} : Verdict{};
  });
  write_file_durable(dir / "x", "abc");
  EXPECT_EQ(slurp(dir / "x"), "abc");
}

// Whichever call fails, the name holds the old or the new bytes, and the folder has no other files.
TEST(File, AFailureAtAnyCallLeavesOldOrNewContents) {
  TempDir dir;
  bool finished = false;
  for (int n = 1; !finished; ++n) {
    ASSERT_LT(n, 100);
    spill(dir / "x", "old");
    int seen = 0;
    std::string fault;
    {
      HookGuard guard([&](const Call& c) {
        if (++seen != n) return Verdict{};
        fault = sys::name_of(c.op);
        return Verdict{Verdict::fail, EIO};
      });
      try {
        write_file_durable(dir / "x", "newer");
        finished = seen < n;
        EXPECT_EQ(slurp(dir / "x"), "newer") << fault;
      } catch (const IoError& e) {
        EXPECT_THAT(e.what(), HasSubstr("Input/output error"));
      }
    }
    std::string now = slurp(dir / "x");
    EXPECT_TRUE(now == "old" || now == "newer") << n << " " << fault << ": " << now;
    EXPECT_THAT(list_dir(dir.path()), ElementsAre("x")) << n << " " << fault;
  }
}

TEST(File, AKillAtAnyCallLeavesOldOrNewContents) {
  TempDir dir;
  int n = 1;
  for (bool finished = false; !finished; ++n) {
    ASSERT_LT(n, 100);
    spill(dir / "x", "old");
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      sys::set_hook(
          [n, seen = 0](const Call&) mutable { return ++seen == n ? Verdict{Verdict::kill} : Verdict{}; });
      write_file_durable(dir / "x", "newer");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    finished = WIFEXITED(status);
    EXPECT_TRUE(finished || WTERMSIG(status) == SIGKILL);
    std::string now = slurp(dir / "x");
    EXPECT_TRUE(finished ? now == "newer" : now == "old" || now == "newer") << n << ": " << now;
  }
  EXPECT_GE(n, 8);  // open, allocate, write, sync, close, rename, open folder, sync folder, close folder
}

TEST(File, TheFaultOfTheEnvironmentIsParsedStrictly) {
  sys::Hook hook = sys::parse_fault("write:2:ENOSPC");
  std::string p = "p", none;
  Call write{Op::write, p, none}, read{Op::read, p, none};
  EXPECT_EQ(hook(write).kind, Verdict::proceed);
  EXPECT_EQ(hook(read).kind, Verdict::proceed);
  EXPECT_EQ(hook(write).error, ENOSPC);
  EXPECT_EQ(hook(write).kind, Verdict::proceed);
  EXPECT_EQ(sys::parse_fault("sync:1")(Call{Op::sync, p, none}).error, EIO);
  EXPECT_EQ(sys::parse_fault("any:1:kill")(read).kind, Verdict::kill);
  for (const char* bad : {"write", "write:", "write:0", "write:-1", "write:1x", "write:1:", "write:1:EWHAT",
                          "no:1", ":1", "write:99999999999999999999"})
    EXPECT_THROW(sys::parse_fault(bad), UsageError) << bad;
}

TEST(File, AppendedLinesSurviveAndACutOneIsRemoved) {
  TempDir dir;
  {
    AppendFile f = AppendFile::open(dir / "log");
    f.append("one\n");
    f.append("two\n");
    f.sync();
    EXPECT_THROW(f.append("no newline"), BugError);
  }
  spill(dir / "log", slurp(dir / "log") + "cut li");
  {
    AppendFile f = AppendFile::open(dir / "log");
    EXPECT_EQ(f.size(), 8);
    f.append("three\n");
  }
  EXPECT_EQ(slurp(dir / "log"), "one\ntwo\nthree\n");
  { AppendFile f = AppendFile::open(dir / "log", 4); }
  EXPECT_EQ(slurp(dir / "log"), "one\n");
  spill(dir / "log", std::string(10000, 'x'));
  { AppendFile f = AppendFile::open(dir / "log"); }
  EXPECT_EQ(slurp(dir / "log"), "");
  spill(dir / "log", "a\n" + std::string(10000, 'x'));
  { AppendFile f = AppendFile::open(dir / "log"); }
  EXPECT_EQ(slurp(dir / "log"), "a\n");
}

TEST(File, FoldersAreCreatedAndRemovedWithoutFollowingLinks) {
  TempDir dir;
  make_dirs(dir / "a/b/c");
  make_dirs(dir / "a/b/c");
  make_dirs(dir / "a/b/c/");
  spill(dir / "a/b/f", "1");
  make_dirs(dir / "kept");
  spill(dir / "kept/g", "2");
  symlink_durable("../kept", dir / "a/link");
  EXPECT_THROW(make_dirs(dir / "a/b/f/d"), UsageError);
  remove_tree(dir / "a");
  EXPECT_FALSE(exists(dir / "a"));
  EXPECT_EQ(slurp(dir / "kept/g"), "2");
}

TEST(File, LinksAreReplacedInOneStep) {
  TempDir dir;
  make_dirs(dir / "one");
  make_dirs(dir / "two");
  symlink_durable("one", dir / "last");
  symlink_durable("two", dir / "last");
  EXPECT_EQ(read_link(dir / "last"), "two");
  EXPECT_EQ(read_link(dir / "one"), std::nullopt);
  EXPECT_EQ(file_info(dir / "last")->kind, FileInfo::folder);
  EXPECT_EQ(file_info(dir / "last", false)->kind, FileInfo::link);
  {
    HookGuard guard([](const Call& c) {
      return c.op == Op::rename ? Verdict{Verdict::fail, EIO} : Verdict{};
    });
    EXPECT_THROW(symlink_durable("one", dir / "last"), IoError);
  }
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("last", "one", "two"));
  EXPECT_EQ(read_link(dir / "last"), "two");
}

TEST(File, ExchangeSwapsTheNamesOrReturnsFalse) {
  TempDir dir;
  make_dirs(dir / "a");
  make_dirs(dir / "b");
  spill(dir / "a/x", "1");
  bool can = exchange_durable(dir / "a", dir / "b");
  EXPECT_EQ(exists(dir / "b/x"), can);
  HookGuard guard([](const Call& c) {
    return c.op == Op::rename ? Verdict{Verdict::fail, EINVAL} : Verdict{};
  });
  EXPECT_FALSE(exchange_durable(dir / "a", dir / "b"));
}

TEST(File, ThreadsWriteFilesConcurrently) {
  TempDir dir;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i)
        write_file_durable(dir / "same", std::string(1000, static_cast<char>('a' + t)));
    });
  for (auto& t : threads) t.join();
  std::string now = slurp(dir / "same");
  EXPECT_EQ(now, std::string(1000, now[0]));
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("same"));
}

}  // namespace
}  // namespace redco
