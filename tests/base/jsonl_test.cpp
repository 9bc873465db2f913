#include "base/jsonl.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

TEST(JsonLines, SkipsBlankLinesAndCountsThem) {
  test::TempDir folder;
  const std::string path = folder / "a.jsonl";
  test::spill(path, "\n{\"a\": 1}\n \t\r\n{\"b\": 2}");
  JsonLines lines(path);
  std::string line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "{\"a\": 1}");
  EXPECT_EQ(lines.where(), path + ":2");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "{\"b\": 2}");
  EXPECT_EQ(lines.line_number(), 4);
  EXPECT_FALSE(lines.next(line));
}

TEST(JsonLines, ErrorsNameLineAndField) {
  EXPECT_EQ(error_text<ContentsError>([] { parse_json_line("[1]", "a.jsonl:3"); }),
            "a.jsonl:3: not a JSON object: [1]. Expected one object per line, {\"key\": value, ...}");
  EXPECT_EQ(error_text<ContentsError>([] { parse_json_line("{\"a\"", "a.jsonl:3"); }),
            "a.jsonl:3: not a JSON object: {\"a\". Expected one object per line, {\"key\": value, ...}");
  const auto j = parse_json_line(R"({"text": "x", "n": 5})", "a.jsonl:1");
  EXPECT_EQ(json_line_text(j, "text", "a.jsonl:1"), "x");
  EXPECT_EQ(error_text<ContentsError>([&] { json_line_text(j, "pair", "a.jsonl:1"); }),
            "a.jsonl:1: the field \"pair\" is missing; expected a string");
  EXPECT_EQ(error_text<ContentsError>([&] { json_line_text(j, "n", "a.jsonl:1"); }),
            "a.jsonl:1: \"n\" is of type number; expected a string");
}

}  // namespace
}  // namespace redco
