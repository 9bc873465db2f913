#include "shard/name_regex.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "support/time_factor.h"

namespace redco {
namespace {

bool match(const char* expression, const std::string& text) { return NameRegex(expression).matches(text); }

TEST(NameRegex, MatchesTheWholeText) {
  EXPECT_TRUE(match(".*fc_in.weight", "transformer.h.0.mlp.fc_in.weight"));
  EXPECT_FALSE(match("fc_in.weight", "transformer.h.0.mlp.fc_in.weight"));
  EXPECT_FALSE(match(".*fc_in", "transformer.h.0.mlp.fc_in.weight"));
  EXPECT_TRUE(match("", ""));
  EXPECT_FALSE(match("", "a"));
}

TEST(NameRegex, OperatorsMatchAsInPython) {
  struct Case {
    const char* expression;
    const char* text;
    bool matches;
  };
  // Expected results are those of Python's re.fullmatch.
  const Case cases[] = {{"a|b", "b", true},
                        {"a|b", "ab", false},
                        {"(a|b)*c", "ababc", true},
                        {"(?:q|k|v)_proj", "k_proj", true},
                        {"h\\.\\d+\\.w", "h.12.w", true},
                        {"h\\.\\d+\\.w", "h.x.w", false},
                        {"h\\.\\d+\\.w", "hx12.w", false},
                        {"[a-c_]+", "ab_c", true},
                        {"[^.]+", "a.b", false},
                        {"[]a]+", "]a", true},
                        {"[a\\-z]", "-", true},
                        {"[a-]", "-", true},
                        {"[\\d.]+", "1.5", true},
                        {"a{2}", "aa", true},
                        {"a{2}", "a", false},
                        {"a{2,}", "aaaa", true},
                        {"a{2,3}", "aaaa", false},
                        {"(ab){1,2}", "abab", true},
                        {"a{0}", "", true},
                        {"a{0}", "a", false},
                        {"a+?b", "aab", true},
                        {"a??", "", true},
                        {"^a$", "a", true},
                        {"(^|.*\\.)wte.*", "x.wte.weight", true},
                        {"(^|.*\\.)wte.*", "wte.weight", true},
                        {"(^|.*\\.)wte.*", "xwte.weight", false},
                        {"a$b", "ab", false},
                        {"()", "", true},
                        {"(a|)b", "b", true},
                        {"(a*)*", "aaa", true},
                        {"\\w+\\[q\\]", "c_attn[q]", true},
                        {"\\W", ".", true},
                        {"\\D", "1", false},
                        {".", "\n", false},
                        {"[^a]", "\n", true},
                        {"(?P<layer>h)\\.0", "h.0", true},
                        {"(?i)WTE", "wte", true},
                        {"(?i:WTE)\\.w", "wte.W", false},
                        {"a\\b\\.b", "a.b", true},
                        {"\\x61", "a", true},
                        {"a]}", "a]}", true},
                        {"()*a", "a", true},
                        {"h..", "h\xc3\xa9.", true}};
  for (const Case& c : cases)
    EXPECT_EQ(match(c.expression, c.text), c.matches) << c.expression << " on " << c.text;
}

TEST(NameRegex, ErrorsNameTheExpression) {
  for (const char* bad : {"(", ")", "a)", "(a", "[", "[a", "[]", "[z-a]", "[\\d-z]", "*", "a|*", "a**", "a{",
                          "a{x}", "a{3,2}", "a{1001}", "{2}", "\\", "^*", "a{99999999999}", "\\b*",
                          // of Python alone
                          "(?=a)", "(?!a)", "(?<=a)", "(a)\\1", "(?P<x>a)(?P=x)", "(?>a)", "a++", "a{,3}",
                          "(?#a)", "\\Z", "\\u0061", "(a)(?(1)b|c)",
                          // of RE2 alone
                          "[[:alpha:]]", "\\pL", "\\Qa\\E", "\\z", "\\C", "(?U)a", "a(?i)b", "\\x{61}",
                          "a{2}{3}", "\\B", "[a-\\d]"}) {
    try {
      NameRegex r(bad);
      ADD_FAILURE() << bad << " was accepted";
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find(bad), std::string::npos) << e.what();
      EXPECT_EQ(e.code(), ExitCode::usage);
    }
  }
}

TEST(NameRegex, BoundedInSpaceAndTime) {
  EXPECT_THROW(NameRegex(std::string(NameRegex::kMaxLength + 1, 'a')), UsageError);
  EXPECT_TRUE(match((std::string(500, '(') + std::string(500, ')')).c_str(), ""));
  EXPECT_THROW(NameRegex("((((a{1000}){1000}){1000}){1000}){1000}"), UsageError);
  EXPECT_THROW(NameRegex("((((a{0}){1000}){1000}){1000}){1000}"), UsageError);
  EXPECT_THROW(NameRegex("((((){1000}){1000}){1000}){1000}"), UsageError);
  const auto start = std::chrono::steady_clock::now();
  // A matcher with backtracking would need 2^n or n^k steps.
  EXPECT_FALSE(match("(a+)+b", std::string(10000, 'a')));
  EXPECT_FALSE(match("(a|a)*b", std::string(10000, 'a')));
  EXPECT_FALSE(match("(.*)*(.*)*(.*)*x", std::string(10000, 'a')));
  EXPECT_TRUE(match("(a?){50}a{50}", std::string(50, 'a')));
  // Detects exponential time; not a benchmark.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5 * test::kTimeFactor));
}

}  // namespace
}  // namespace redco
