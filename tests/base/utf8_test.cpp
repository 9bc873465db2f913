#include "base/utf8.h"

#include <gtest/gtest.h>

namespace redco {
namespace {

TEST(Utf8, LossyAsPython) {  // bytes.decode(errors="replace")
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(utf8_lossy("a\xFFz"), "a" + r + "z");
  EXPECT_EQ(utf8_lossy("\xE4\xB8z"), r + "z");
  EXPECT_EQ(utf8_lossy("\xF0\x9F\x98"), r);
  EXPECT_EQ(utf8_lossy("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(utf8_lossy("\xC0\x80"), r + r);
  EXPECT_EQ(incomplete_utf8_tail("a\xE4\xB8"), 2u);
  EXPECT_EQ(incomplete_utf8_tail("a\xE4\xB8\xAD"), 0u);
  EXPECT_EQ(incomplete_utf8_tail("a\xB8"), 0u);
}

TEST(Utf8, Validation) {
  EXPECT_EQ(find_invalid_utf8("12345678\xC3\xA9\xFF"), 10u);
  EXPECT_EQ(find_invalid_utf8("ab\xffzz"), 2u);
  EXPECT_TRUE(is_utf8("aé€😀"));
  for (const char* t : {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                        "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_FALSE(is_utf8(t)) << t;
}

}  // namespace
}  // namespace redco
