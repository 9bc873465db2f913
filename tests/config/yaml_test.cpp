// Invalid, hostile and ambiguous YAML texts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "config/resolve.h"
#include "config/tree.h"
#include "support/time_factor.h"

namespace redco {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refused_yaml(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  std::string message;
  try {
    parse_yaml(text, "f");
    ADD_FAILURE() << "accepted: " << text.substr(0, 200);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    message = e.what();
  }
  // The work is bounded: the largest allowed text takes less than a second on a slow machine.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10 * test::kTimeFactor));
  EXPECT_LT(message.size(), 400u);
  return message;
}

TEST(Yaml, DuplicateKeysAreFound) {
  EXPECT_EQ(refused_yaml("a: 1\nb: 2\na: 3\n"), "f:3:1: duplicate key 'a', first given at f:1:4; remove one");
  EXPECT_THAT(refused_yaml("t: {x: 1, x: 2}"), StartsWith("f:1:11: duplicate key 'x'"));
  EXPECT_THAT(refused_yaml("t:\n  x: 1\n  'x': 2\n"), StartsWith("f:3:3: duplicate key"));
}

TEST(Yaml, KeysThatAreNotWordsAreErrors) {
  EXPECT_THAT(refused_yaml("{[a]: 1}"), HasSubstr("expected a name as key"));
  EXPECT_THAT(refused_yaml("? {a: b}\n: 1\n"), HasSubstr("expected a name as key"));
  EXPECT_THAT(refused_yaml("~: 1"), HasSubstr("expected a name as key"));
  EXPECT_THAT(refused_yaml("'': 1"), HasSubstr("expected a name as key"));
  EXPECT_THAT(refused_yaml("a: &x {b: 1}\nc:\n  <<: *x\n"), HasSubstr("merge keys"));
}

TEST(Yaml, SyntaxErrorsNameThePlace) {
  for (const char* text :
       {"a: [1, 2\n", "a: {b: 1\n", "a: 'open\n", "a: \"open\n", "a: 1\n  b: 2\n", "]", "a: b: c",
        "a: *none\n", "a: @x\n", "a: |3x\n", "- a\nb: 1\n", "a: 1\n- b\n", "%YAML 9.9.9\n---\na: 1"}) {
    EXPECT_THAT(refused_yaml(text), StartsWith("f:")) << text;
  }
  EXPECT_THAT(refused_yaml("a:\n\tb: 1\n"), StartsWith("f:2:1: the line is indented with a tab"));
  EXPECT_THAT(refused_yaml("a: 1\n---\nb: 2\n"), HasSubstr("a second YAML document"));
  EXPECT_THAT(refused_yaml("a: !!int \"3\"\n"), HasSubstr("the tag tag:yaml.org,2002:int is not supported"));
  EXPECT_THAT(refused_yaml("a: !mine x\n"), HasSubstr("tag"));
}

TEST(Yaml, AnOpenQuoteIsReportedAtItsPlace) {
  for (const char* text : {"a: 'open\nb: 1\n", "a: \"open\nb: 1\n", "a: &x 'it''s\nb: 1\n",
                           "a: \"x\\\"\nb: 1\n", "a: &x\n  \"open\nb: 1\n"}) {
    EXPECT_THAT(refused_yaml(text), StartsWith("f:1:4: ")) << text;
  }
  const YamlNode n = parse_yaml("a: &x 'it''s'\nb: \"x\\\"\\\\\"\nc: |\n  it's\nd: it's\n'e': \"'\"\n", "f");
  ASSERT_EQ(n.map.size(), 5u);
  EXPECT_EQ(n.map[0].value.text, "it's");
  EXPECT_EQ(n.map[1].value.text, "x\"\\");
  EXPECT_EQ(n.map[4].value.text, "'");
}

TEST(Yaml, ColumnsCountCharacters) {
  EXPECT_THAT(refused_yaml("{é: 1, ü: 2, é: 3}"), StartsWith("f:1:14: duplicate key 'é'"));
}

TEST(Yaml, InvalidBytesAreErrors) {
  EXPECT_EQ(refused_yaml("a: 1\nb: \xff\n"), "f:2:4: not UTF-8 text (byte 0xff); save the file as UTF-8");
  EXPECT_THAT(refused_yaml(std::string("a: 1\0b", 6)), HasSubstr("control character 0x00"));
  EXPECT_THAT(refused_yaml("a: \x1b[31m"), HasSubstr("control character 0x1b"));
  EXPECT_EQ(refused_yaml(std::string("\xff\xfe\x61\x00", 4)),
            "f: the file is UTF-16, expected UTF-8. Convert it with: iconv -f UTF-16 -t UTF-8");
  EXPECT_EQ(refused_yaml(std::string("a\0:\0 \0001\0", 8)),
            "f: the file is UTF-16LE, expected UTF-8. Convert it with: iconv -f UTF-16LE -t UTF-8");
  EXPECT_THAT(refused_yaml("a: \xed\xa0\x80"), HasSubstr("not UTF-8"));      // a surrogate
  EXPECT_THAT(refused_yaml("a: \xc0\xaf"), HasSubstr("not UTF-8"));          // overlong
  EXPECT_THAT(refused_yaml("a: \xf5\x80\x80\x80"), HasSubstr("not UTF-8"));  // above U+10FFFF
  EXPECT_THAT(refused_yaml("a: \xe2\x82"), HasSubstr("not UTF-8"));          // cut short
}

TEST(Yaml, HostileTextsAreRejectedQuickly) {
  // Ten aliases of ten aliases of ...: 10^9 values.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{0}: &a{0} [", i);
    for (int k = 0; k < 10; ++k) bomb += fmt::format("{}*a{}", k ? ", " : "", i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(refused_yaml(bomb), HasSubstr("aliases expanded"));
  // One long text, many times.
  std::string wide = "a: &a " + std::string(500000, 'x') + "\nb: [";
  for (int i = 0; i < 5000; ++i) wide += "*a, ";
  EXPECT_THAT(refused_yaml(wide + "]\n"), HasSubstr("aliases expanded"));
  // A chain of aliases that is deeper than the limit of nesting.
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 80; ++i) deep += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_THAT(refused_yaml(deep), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(refused_yaml("a: &x [1, *x]\n"), HasSubstr("f:"));
  EXPECT_THAT(refused_yaml(std::string(100000, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(refused_yaml(std::string(100000, '{')), HasSubstr("f:"));
  EXPECT_THAT(refused_yaml("a: " + std::string(2 << 20, 'x')), HasSubstr("a job file has at most 1.00 MiB"));
  std::string dashes;
  for (int i = 0; i < 100000; ++i) dashes += "- ";
  EXPECT_THAT(refused_yaml(dashes), HasSubstr("nested deeper"));
  std::string keys;
  for (int i = 0; i < 60000; ++i) keys += fmt::format("k{}: 1\n", i);
  EXPECT_THAT(refused_yaml(keys), HasSubstr("more than 20000 values"));
  std::string marks;
  for (int i = 0; i < 100000; ++i) marks += "? ";
  EXPECT_THAT(refused_yaml(marks), HasSubstr("f:"));
}

TEST(Yaml, TruncatedAndCorruptedTextsAreReadOrRejected) {
  const std::string text =
      "a: &x {b: [1, 2.5, 'q', \"w\\n\"], c: ~}\nd: *x\ne: |\n  block\n  text\nf: >-\n  folded\ng:\n  - h: "
      "1\n    i: é\n";
  EXPECT_EQ(parse_yaml(text, "f").map.size(), 5u);
  const auto survive = [](const std::string& t) {
    try {
      parse_yaml(t, "f");
    } catch (const UsageError&) {
    }
  };
  const char bytes[] = "\0\t\n !\"#%&'*,-:>?@[]`{|}~\x80\xff";
  for (std::size_t i = 0; i < text.size(); ++i) {
    survive(text.substr(0, i));
    for (const char c : std::string(bytes, sizeof bytes - 1)) {
      std::string t = text;
      t[i] = c;
      survive(t);
    }
  }
}

TEST(Yaml, CoreSchema) {
  const auto value = [](const std::string& text) { return resolve(parse_yaml(text, "f")); };
  EXPECT_EQ(value("3"), SettingValue(i64{3}));
  EXPECT_EQ(value("+3"), SettingValue(i64{3}));
  EXPECT_EQ(value("-9223372036854775808"), SettingValue(std::numeric_limits<i64>::min()));
  EXPECT_EQ(value("0x1F"), SettingValue(i64{31}));
  EXPECT_EQ(value("0o17"), SettingValue(i64{15}));
  EXPECT_EQ(value("010"), SettingValue(i64{10}));
  EXPECT_EQ(value("3e-4"), SettingValue(3e-4));
  EXPECT_EQ(value(".5"), SettingValue(0.5));
  EXPECT_EQ(value("5."), SettingValue(5.0));
  EXPECT_EQ(value("+1E+2"), SettingValue(100.0));
  EXPECT_EQ(value("-.inf"), SettingValue(-HUGE_VAL));
  for (const char* t :
       {".", "e5", "1e", "+", "-", "0x", "1_000", "yes", "On", "nan", "inf", "tRue", "1:30", "0b1"}) {
    EXPECT_TRUE(std::holds_alternative<std::string>(value(t))) << t;
  }
  for (const char* t : {"~", "null", "Null", "NULL", ""}) EXPECT_EQ(value(t), SettingValue()) << t;
  EXPECT_EQ(value("TRUE"), SettingValue(true));
  EXPECT_EQ(value("'true'"), SettingValue(std::string("true")));
}

TEST(Yaml, FilesThatCannotBeRead) {
  const auto why = [](const std::string& path) -> std::string {
    try {
      read_yaml_file(path);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(why("/no/such.yaml"),
            "job file '/no/such.yaml' does not exist; check the path; `redco ls` lists example jobs");
  EXPECT_THAT(why(std::filesystem::temp_directory_path()), HasSubstr("is a folder"));
  EXPECT_THAT(why(""), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace redco
