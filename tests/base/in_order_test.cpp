#include "base/in_order.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace redco {
namespace {

TEST(InOrder, TheFirstErrorInOrderIsThrown) {
  for (int threads : {1, 2, 4})
    for (int round = 0; round < 20; ++round) {
      int next = 0, written = 0;
      const auto [code, message] = failure_of([&] {
        in_order<int>(
            threads, [&](int& k) { return (k = next++) < 100; },
            [](int& k, int) {
              if (k == 30 || k == 31 || k == 60) throw ContentsError("block {}", k);
            },
            [&](int& k) { EXPECT_EQ(k, written++); });
      });
      EXPECT_EQ(code, ExitCode::contents);
      EXPECT_EQ(message, "block 30");
      EXPECT_EQ(written, 30);
    }
}

}  // namespace
}  // namespace redco
