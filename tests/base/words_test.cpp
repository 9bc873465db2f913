#include "base/words.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "base/error.h"

namespace redco {
namespace {

TEST(Words, FormatsSizes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes((u64{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(human_bytes(u64{32} << 30), "32.0 GiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<u64>::max()), "16.0 EiB");
}

TEST(Words, CountedThings) {
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(12, "support image"), "12 support images");
  EXPECT_EQ(counted(1, "class"), "1 class");
  EXPECT_EQ(counted(2, "class"), "2 classes");
  EXPECT_EQ(counted(3, "micro-batch"), "3 micro-batches");
}

TEST(Words, ParsesSizes) {
  EXPECT_EQ(parse_bytes("32GiB"), u64{32} << 30);
  EXPECT_EQ(parse_bytes(" 512 MiB "), u64{512} << 20);
  EXPECT_EQ(parse_bytes("1.5 GB"), u64{1500000000});
  EXPECT_EQ(parse_bytes("0.5KiB"), 512u);
  EXPECT_EQ(parse_bytes("2kB"), 2000u);
  EXPECT_EQ(parse_bytes("3T"), u64{3000000000000});
  EXPECT_EQ(parse_bytes("100"), 100u);
  EXPECT_EQ(parse_bytes("7 B"), 7u);
  for (const char* bad : {"", "GiB", "-1GiB", "1 XiB", "1 GiBs", "1e3", "nan", "inf", "1..5GiB", "1 G B",
                          "0x10", "8EiB", "99999999999999999999 GiB", "8192 PiB"}) {
    EXPECT_THROW(parse_bytes(bad), UsageError) << bad;
  }
}

TEST(Words, MetricsHaveFourSignificantDigits) {
  EXPECT_EQ(human_number(2.34567), "2.346");
  EXPECT_EQ(human_number(-12.3456), "-12.35");
  EXPECT_EQ(human_number(0.01254), "0.01254");
  EXPECT_EQ(human_number(500), "500.0");
  EXPECT_EQ(human_number(123456.7), "123457");
  EXPECT_EQ(human_number(0), "0");
  EXPECT_EQ(human_number(3e-5), "3e-05");
  EXPECT_EQ(human_number(2.5e9), "2.5e+09");
  EXPECT_EQ(human_number(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(human_percent(0.416), "42%");
}

TEST(Words, FormatsDurations) {
  EXPECT_EQ(human_duration(0), "0.00 s");
  EXPECT_EQ(human_duration(0.00042), "0.42 ms");
  EXPECT_EQ(human_duration(0.0123), "12.3 ms");
  EXPECT_EQ(human_duration(0.0996), "0.10 s");
  EXPECT_EQ(human_duration(0.345), "0.34 s");
  EXPECT_EQ(human_duration(12.34), "12.3 s");
  EXPECT_EQ(human_duration(59.97), "1 min 00 s");
  EXPECT_EQ(human_duration(245), "4 min 05 s");
  EXPECT_EQ(human_duration(3599.7), "1 h 00 min");
  EXPECT_EQ(human_duration(7380), "2 h 03 min");
  EXPECT_EQ(human_duration(3 * 86400 + 4 * 3600 + 60), "3 d 04 h");
  EXPECT_EQ(human_duration(-1), "?");
  EXPECT_EQ(human_duration(std::nan("")), "?");
  EXPECT_EQ(human_duration(1e300), "> 30 years");
}

TEST(Words, FormatsCounts) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(3.14159), "3.14");
  EXPECT_EQ(human_count(12345), "12.3 k");
  EXPECT_EQ(human_count(999999), "1.00 M");
  EXPECT_EQ(human_count(124439808), "124 M");
  EXPECT_EQ(human_count(6.6e10), "66.0 G");
  EXPECT_EQ(human_count(-1500), "-1.50 k");
}

TEST(Words, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("seed", "sede"), 1);  // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // letters of a swapped pair are not edited again
  EXPECT_EQ(edit_distance("aaaaaaaa", "bbbbbbbb", 2), 3);
  EXPECT_EQ(edit_distance(std::string(1 << 24, 'x'), "y", 5), 6);  // immediately
}

TEST(Words, FindsTheNearestName) {
  const std::vector<std::string> names = {"seed", "learning_rate", "max", "min"};
  EXPECT_EQ(nearest("sed", names), "seed");
  EXPECT_EQ(nearest("learningrate", names), "learning_rate");
  EXPECT_EQ(nearest("lr", names), "");
  EXPECT_EQ(nearest("x", {"y"}), "");  // nothing in common
  EXPECT_EQ(nearest("mix", names), "max");
}

TEST(Words, ShellQuoteGivesTheShellTheSameWord) {
  for (std::string word :
       {"plain", "a b", "it's", "$HOME", "`x`", "a\nb", "", "*", "~", "\"", "\\", "-x", "#", "ä"}) {
    FILE* shell = ::popen(("printf %s " + shell_quote(word)).c_str(), "r");
    ASSERT_NE(shell, nullptr);
    char heard[64];
    const std::size_t n = std::fread(heard, 1, sizeof heard, shell);
    EXPECT_EQ(::pclose(shell), 0);
    EXPECT_EQ(std::string(heard, n), word);
  }
  EXPECT_THROW(shell_quote(std::string("a\0b", 3)), UsageError);
}

TEST(Words, ExcerptsAreCutBetweenCharactersAndOnOneLine) {
  EXPECT_EQ(excerpt("a\nb\x1b[31m"), "a b [31m");
  EXPECT_EQ(excerpt("abcdef", 3), "abc...");
  EXPECT_EQ(excerpt("aé", 2), "a...");  // a character is not cut in half
}

}  // namespace
}  // namespace redco
