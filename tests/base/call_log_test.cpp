#include "base/call_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

TEST(CallLog, KeepsTheLastCalls) {
  for (i64 i = 0; i < call_log::kMost + 10; ++i) call_log::add("all_reduce", i, 4, 100 * i);
  const auto calls = call_log::last();
  ASSERT_EQ(calls.size(), static_cast<std::size_t>(call_log::kMost));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].number, static_cast<i64>(i) + 10);
    EXPECT_EQ(calls[i].bytes, 100 * calls[i].number);
    EXPECT_EQ(calls[i].ranks, 4);
    EXPECT_STREQ(calls[i].what, "all_reduce");
    if (i > 0) EXPECT_GE(calls[i].at, calls[i - 1].at);
  }
}

TEST(CallLog, IsSavedAsText) {
  const test::TempDir dir;
  call_log::save();  // nowhere
  call_log::save_to(dir / "calls/rank-3.txt", "rank 3 on node2");
  const u64 first = call_log::add("all_gather", 12, 2, 4096);
  call_log::add("all_reduce", 13, 2, 64);
  call_log::end(first);
  call_log::save();
  const std::string text = test::slurp(dir / "calls/rank-3.txt");
  EXPECT_THAT(text, HasSubstr("rank 3 on node2: its last 256 calls"));
  EXPECT_THAT(text, HasSubstr("call 12 of a group of 2 ranks: all_gather, 4096 bytes\n"));
  EXPECT_THAT(text, HasSubstr("call 13 of a group of 2 ranks: all_reduce, 64 bytes, not complete\n"));
  call_log::save_to("/proc/none/x", "rank 3");
  call_log::save();  // no error
  call_log::save_to("", "");
}

}  // namespace
}  // namespace redco
