#include "data/text/record_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/error_text.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using JsonRecord = nlohmann::ordered_json;

TEST(ValueAt, FollowsKeysAndPositions) {
  const JsonRecord j = JsonRecord::parse(
      R"({"a.b": 1, "a": {"b": 2, "c": {"d.e": 3}}, "t": [{"x": "y"}, null, [4]], "n": null})");
  EXPECT_EQ(*value_at(j, "a.b"), 1);
  EXPECT_EQ(*value_at(j, "a.c.d.e"), 3);
  EXPECT_EQ(*value_at(j, "t.0.x"), "y");
  EXPECT_EQ(*value_at(j, "t.2.0"), 4);
  for (const char* none : {"", "n", "n.x", "a.x", "t.1", "t.3", "t.-1", "t.x", "t.0.x.y", "t.", "."})
    EXPECT_EQ(value_at(j, none), nullptr) << none;
}

bool kept(const std::string& where, const std::string& record) {
  return RecordFilter(where).matches(JsonRecord::parse(record));
}

TEST(RecordFilter, ComparesTextsNumbersAndTruth) {
  const std::string r =
      R"({"lang": "de", "score": 0.5, "n": 3, "ok": true, "cell": " 12 ", "m": {"k": "v"}, "a b": "c"})";
  for (const char* yes : {"lang == \"de\"",
                          "lang=='de'",
                          "lang != \"fr\"",
                          "lang < 'df'",
                          "score >= 0.5",
                          "n == 3",
                          "n > -1e3",
                          "n <= +3",
                          "ok == true",
                          "ok != false",
                          "cell == 12",
                          "cell > 9",
                          "m.k == 'v'",
                          "`a b` == 'c'",
                          "none == null",
                          "none != 'x'",
                          "lang != null",
                          "lang == 'fr' or n == 3",
                          "lang == 'fr' and n == 4 or ok == true",
                          "ok == true or lang == 'fr' and n == 4",
                          "lang == 'd\\e'"})
    EXPECT_TRUE(kept(yes, r)) << yes;
  for (const char* no : {"lang == 'fr'", "score > 0.5", "none == 'x'", "none < 3", "none == false",
                         "lang == null", "lang == 'de' and n == 4", "m.x == 'v'"})
    EXPECT_FALSE(kept(no, r)) << no;
  EXPECT_TRUE(kept("flag == true and none == false or flag == true", R"({"flag": "True"})"));
  EXPECT_FALSE(kept("x == 3", R"({"x": ""})"));  // an empty cell of a table
  EXPECT_THAT(RecordFilter("a.b == 1 and c < 2 or a.b > 3").columns(), ElementsAre("a.b", "c"));
}

TEST(RecordFilter, OtherValuesAreErrors) {
  const auto message = [](const char* where) {
    try {
      kept(where, R"({"t": "abc", "n": 3, "l": [1]})");
    } catch (const ContentsError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("t < 5"),
              HasSubstr("data.where compares \"t\" with a number, but it is the text 'abc'"));
  EXPECT_THAT(message("n == '3'"), HasSubstr("compares \"n\" with a text, but it is number"));
  EXPECT_THAT(message("l == 1"), HasSubstr("compares \"l\" with a number, but it is array"));
  EXPECT_THAT(message("t == true"), HasSubstr("with true or false"));
}

TEST(RecordFilter, MalformedExpressionsNameThePlace) {
  const auto message = [](const std::string& where) { return usage_error([&] { RecordFilter f(where); }); };
  EXPECT_THAT(message("lang = 'de'"),
              HasSubstr("data.where: one of == != < <= > >= is expected, at '= 'de''"));
  EXPECT_THAT(message("lang == de"),
              HasSubstr("a text in quotes, a number, true, false or null is expected, at 'de'"));
  EXPECT_THAT(message("lang == 'de"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(message("lang == 'de' && n == 1"), HasSubstr("`and` or `or` is expected, at '&& n == 1'"));
  EXPECT_THAT(message("ok < true"), HasSubstr("null, true and false are compared by == and != only"));
  for (const char* bad : {"", "  ", "x", "x ==", "== 3", "x == 3 and", "x == 3 or or y == 1", "(x == 3)",
                          "x == 3 y == 4", "`x == 3", "x == 1e", "x == '\\", "x == 3 or"})
    EXPECT_THAT(message(bad), HasSubstr("[data] data.where: ")) << bad;
}

}  // namespace
}  // namespace redco
