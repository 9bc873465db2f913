#include "base/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace redco {
namespace {

void sleep_microseconds(int n) { std::this_thread::sleep_for(std::chrono::microseconds(n)); }

TEST(OrderedWork, ResultsAreInInputOrderAndFewAreInFlight) {
  for (const int threads : {1, 2, 5}) {
    std::atomic<int> added = 0, done = 0;
    std::vector<int> out;
    OrderedWork<int, int> pool(
        threads,
        [&](int k, int thread) {
          EXPECT_GE(thread, 0);
          EXPECT_LT(thread, threads);
          if (k % 7 == 0) sleep_microseconds(300);
          return 3 * k;
        },
        [&](int r) {
          out.push_back(r);
          ++done;
        });
    for (int k = 0; k < 300; ++k) {
      pool.add(k);
      ++added;
      EXPECT_LE(added - done, 4 * threads);
    }
    pool.finish();
    ASSERT_EQ(out.size(), 300u);
    for (int k = 0; k < 300; ++k) EXPECT_EQ(out[static_cast<std::size_t>(k)], 3 * k);
  }
}

// The message that run() throws for 100 inputs, the last of which next() can't read; work() fails for those
// listed. The results before it are counted.
std::pair<std::string, int> failure(int threads, const std::vector<int>& bad, int unreadable) {
  int next = 0, results = 0;
  OrderedWork<int, int> pool(
      threads,
      [&](int k, int) {
        for (const int b : bad)
          if (k == b) {
            if (k == bad.front()) sleep_microseconds(2000);  // later inputs fail earlier
            throw std::runtime_error("work " + std::to_string(k));
          }
        return k;
      },
      [&](int r) { EXPECT_EQ(r, results++); });
  try {
    pool.run([&]() -> std::optional<int> {
      if (next == unreadable) throw std::runtime_error("read " + std::to_string(next));
      return next < 100 ? std::optional(next++) : std::nullopt;
    });
  } catch (const std::runtime_error& e) {
    return {e.what(), results};
  }
  return {"", results};
}

TEST(OrderedWork, TheFirstErrorInInputOrderIsThrown) {
  using Failure = std::pair<std::string, int>;
  for (const int threads : {1, 2, 4})
    for (int round = 0; round < 10; ++round) {
      EXPECT_EQ(failure(threads, {}, -1), Failure("", 100));
      EXPECT_EQ(failure(threads, {30, 31, 60}, -1), Failure("work 30", 30));
      EXPECT_EQ(failure(threads, {30, 31, 60}, 32), Failure("work 30", 30));
      EXPECT_EQ(failure(threads, {}, 32), Failure("read 32", 32));
      EXPECT_EQ(failure(threads, {98, 99}, -1), Failure("work 98", 98));
    }
}

TEST(OrderedWork, ResultsMayBeIgnored) {
  std::atomic<int> sum = 0;
  OrderedWork<int, int> pool(
      3, [&](int k, int) { return sum += k; }, nullptr);
  for (int k = 1; k <= 100; ++k) pool.add(k);
  pool.finish();
  EXPECT_EQ(sum, 5050);
}

}  // namespace
}  // namespace redco
