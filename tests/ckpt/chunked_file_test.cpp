// Files that are written in pieces of any order: contents and hashes.
#include "ckpt/chunked_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "base/syscalls.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

constexpr i64 kWindow = 4096, kSmallChunk = 4 * kWindow;
constexpr WriteQueue::Size kSize{.windows = 7, .window_bytes = kWindow};

std::string random_bytes(i64 n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::string out(static_cast<std::size_t>(n), ' ');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

// Writes `bytes` in pieces whose borders are `cuts`, in the order of `order`.
i64 write_pieces(const std::string& path, const std::string& bytes, const std::vector<i64>& cuts,
                 const std::vector<std::size_t>& order) {
  WriteQueue queue(kSize);
  ChunkedFile f(path, static_cast<i64>(bytes.size()), queue, kSmallChunk);
  for (const std::size_t k : order) f.write(cuts[k], bytes.data() + cuts[k], cuts[k + 1] - cuts[k]);
  const auto hashes = f.commit();
  EXPECT_EQ(test::slurp(path), bytes);
  const std::size_t slash = path.rfind('/');
  EXPECT_EQ(hashes, record_file(path.substr(0, slash), path.substr(slash + 1), kSmallChunk).xxh3);
  return f.chunks_read_back();
}

std::vector<i64> cuts_of(i64 size, i64 piece) {
  std::vector<i64> out;
  for (i64 at = 0; at < size; at += piece) out.push_back(at);
  out.push_back(size);
  return out;
}
std::vector<std::size_t> in_order(std::size_t n) {
  std::vector<std::size_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(ChunkedFile, PiecesOfAllSizesInTheOrderOfTheFile) {
  const test::TempDir dir;
  for (const i64 size :
       {i64{0}, i64{1}, kWindow - 1, kWindow, kSmallChunk, kSmallChunk + 1, 5 * kSmallChunk - 77})
    for (const i64 piece : {i64{333}, kWindow, 3 * kSmallChunk}) {
      SCOPED_TRACE(fmt::format("{} bytes in pieces of {}", size, piece));
      const auto cuts = cuts_of(size, piece);
      EXPECT_EQ(write_pieces(dir / "x", random_bytes(size), cuts, in_order(cuts.size() - 1)), 0);
    }
}

// More windows than are kept: some are written incomplete, and their chunks read back.
TEST(ChunkedFile, PiecesInAnyOrder) {
  const test::TempDir dir;
  const i64 size = 9 * kSmallChunk + 5;
  const auto cuts = cuts_of(size, 1500);
  auto order = in_order(cuts.size() - 1);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  EXPECT_GT(write_pieces(dir / "x", random_bytes(size), cuts, order), 5);
  std::ranges::reverse(order = in_order(cuts.size() - 1));
  EXPECT_EQ(write_pieces(dir / "y", random_bytes(size), cuts, order), 9);  // the last chunk is one window
}

TEST(ChunkedFile, EachByteIsWrittenOnce) {
  const test::TempDir dir;
  const std::string bytes = random_bytes(2 * kSmallChunk);
  WriteQueue queue(kSize);
  ChunkedFile f(dir / "x", 2 * kSmallChunk, queue, kSmallChunk);
  f.write(0, bytes.data(), 100);
  EXPECT_THROW(f.write(100, bytes.data(), 2 * kSmallChunk - 99), BugError);  // beyond the end
  EXPECT_THROW(f.commit(), BugError);                                        // bytes are missing
  EXPECT_THROW(f.write(0, bytes.data(), kWindow), BugError);                 // twice
}

// An error of the writing thread is thrown by a later call, and leaves no file.
TEST(ChunkedFile, ErrorsOfTheDisk) {
  const test::TempDir dir;
  const std::string bytes = random_bytes(8 * kSmallChunk);
  {
    WriteQueue queue(kSize);
    ChunkedFile f(dir / "x", 8 * kSmallChunk, queue, kSmallChunk);
    sys::set_hook([](const sys::Call& c) {
      return c.op == sys::Op::write && c.offset >= kSmallChunk ? sys::Verdict{sys::Verdict::fail, ENOSPC}
                                                               : sys::Verdict{};
    });
    const auto all = [&] {
      f.write(0, bytes.data(), 8 * kSmallChunk);
      f.commit();
    };
    EXPECT_THROW(all(), IoError);
    sys::set_hook({});
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

// What a file system refuses to write past the page cache goes through it.
TEST(ChunkedFile, WithoutDirectWrites) {
  const test::TempDir dir;
  const std::string bytes = random_bytes(3 * kSmallChunk + 10);
  i64 opened = 0;
  for (const bool open : {true, false}) {
    sys::set_hook([&](const sys::Call& c) {
      if (open && c.op == sys::Op::open && !c.creates && c.path.find(".tmp-") != std::string::npos)
        return ++opened, sys::Verdict{sys::Verdict::fail, EINVAL};
      if (!open && c.op == sys::Op::write) return sys::Verdict{sys::Verdict::shorten, 0};
      return sys::Verdict{};
    });
    const auto cuts = cuts_of(static_cast<i64>(bytes.size()), 5000);
    write_pieces(dir / "x", bytes, cuts, in_order(cuts.size() - 1));
    sys::set_hook({});
  }
  EXPECT_EQ(opened, 1);
}

// A queue of as many windows as the bytes takes them all together, though nothing is written yet; a smaller
// one waits for the disk. Files share the windows.
TEST(ChunkedFile, TheQueueDecidesHowMuchIsCopied) {
  const test::TempDir dir;
  const std::string bytes = random_bytes(2 * kSmallChunk);
  std::atomic<bool> blocked{true};
  sys::set_hook([&](const sys::Call& c) {
    while (c.op == sys::Op::write && blocked) std::this_thread::yield();
    return sys::Verdict{};
  });
  {
    WriteQueue queue({.windows = 16, .window_bytes = kWindow, .queued = 16});
    ChunkedFile a(dir / "a", 2 * kSmallChunk, queue, kSmallChunk),
        b(dir / "b", 2 * kSmallChunk, queue, kSmallChunk);
    a.write(0, bytes.data(), 2 * kSmallChunk);
    b.write(0, bytes.data(), 2 * kSmallChunk);  // would wait forever for a window
    EXPECT_FALSE(std::filesystem::exists(dir / "a"));
    blocked = false;
    const auto hashes = a.commit();
    EXPECT_EQ(b.commit(), hashes);
    EXPECT_EQ(test::slurp(dir / "b"), bytes);
  }
  blocked = true;
  WriteQueue queue({.windows = 3, .window_bytes = kWindow, .queued = 3});
  ChunkedFile c(dir / "c", 2 * kSmallChunk, queue, kSmallChunk);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    c.write(0, bytes.data(), 2 * kSmallChunk);
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(done);
  blocked = false;
  writer.join();
  c.commit();
  sys::set_hook({});
  EXPECT_EQ(test::slurp(dir / "c"), bytes);
}

// A save that is not wanted any more writes nothing further, and leaves no file.
TEST(ChunkedFile, ACancelledQueueDropsItsFiles) {
  const test::TempDir dir;
  const std::string bytes = random_bytes(2 * kSmallChunk);
  WriteQueue queue({.windows = 8, .window_bytes = kWindow, .queued = 8});
  {
    ChunkedFile f(dir / "x", 2 * kSmallChunk, queue, kSmallChunk);
    queue.cancel();
    f.write(0, bytes.data(), kWindow);
    EXPECT_THROW(f.commit(), IoError);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace redco::ckpt
