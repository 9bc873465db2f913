#include "unicode/char_class.h"

#include <gtest/gtest.h>

#include "base/types.h"
#include "base/utf8.h"
#include "unicode/regex.h"

namespace redco {
namespace {

TEST(CharClasses, AgreeWithOniguruma) {
  const Regex letter("\\p{L}", "t"), number("\\p{N}", "t"), space("\\s", "t");
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(c, text);
    ASSERT_EQ(!letter.find_all(text).empty(), (char_classes()[c] & kLetter) != 0) << static_cast<unsigned>(c);
    ASSERT_EQ(!number.find_all(text).empty(), (char_classes()[c] & kNumber) != 0) << static_cast<unsigned>(c);
    ASSERT_EQ(!space.find_all(text).empty(), (char_classes()[c] & kSpace) != 0) << static_cast<unsigned>(c);
  }
}

}  // namespace
}  // namespace redco
