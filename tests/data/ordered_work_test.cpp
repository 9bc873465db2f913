#include "data/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>

namespace redco {
namespace {

TEST(OrderedWork, ResultsComeInOrderAndFewWait) {
  for (const int threads : {1, 2, 5}) {
    std::atomic<int> added = 0, done = 0;
    std::vector<int> out;
    OrderedWork<int, int> work(
        threads,
        [](int k) {
          if (k % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
          return 3 * k;
        },
        [&](int r) {
          out.push_back(r);
          ++done;
        });
    for (int k = 0; k < 300; ++k) {
      work.add(k);
      ++added;
      EXPECT_LE(added - done, 4 * threads);  // so memory is bounded
    }
    work.finish();
    ASSERT_EQ(out.size(), 300u);
    for (int k = 0; k < 300; ++k) EXPECT_EQ(out[static_cast<std::size_t>(k)], 3 * k);
  }
}

TEST(OrderedWork, TheFirstErrorInOrderIsThrown) {
  for (const int threads : {1, 3}) {
    int last = -1;
    OrderedWork<int, int> work(
        threads,
        [](int k) {
          if (k == 20) std::this_thread::sleep_for(std::chrono::milliseconds(2));
          if (k >= 20) throw std::runtime_error(std::to_string(k));
          return k;
        },
        [&](int r) { last = r; });
    try {
      for (int k = 0; k < 100; ++k) work.add(k);
      work.finish();
      ADD_FAILURE();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "20");
    }
    EXPECT_EQ(last, 19);
  }
}

}  // namespace
}  // namespace redco
