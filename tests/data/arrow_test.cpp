// Arrow files as pyarrow wrote them (scripts/make_arrow_fixtures.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "data/arrow/arrow_rows.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::HasSubstr;

const std::string kArrow = std::string(REDCO_FIXTURES) + "/arrow/";

std::string arrow_error(const std::string& path) {
  try {
    ArrowRows rows(path);
    for (std::string row; rows.next(row);) {
    }
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// All layouts, several batches, compression, dictionaries that are replaced and that grow, an IPC file.
TEST(Arrow, RowsEqualTheirJsonLines) {
  for (const auto& [name, lines] : {std::pair("stream", "rows"),
                                    {"zstd", "rows"},
                                    {"file", "rows"},
                                    {"deltas", "deltas"},
                                    {"classes", "classes"}}) {
    ArrowRows rows(kArrow + name + ".arrow");
    std::ifstream in(kArrow + lines + ".jsonl");
    std::string row, line;
    i64 n = 0;
    for (; std::getline(in, line); ++n) {
      ASSERT_TRUE(rows.next(row)) << name << " " << n;
      EXPECT_EQ(nlohmann::json::parse(row), nlohmann::json::parse(line)) << name << " " << n;
    }
    EXPECT_FALSE(rows.next(row)) << name;
    EXPECT_GT(n, 0) << name;
    EXPECT_EQ(rows.line_number(), n);
  }
}

TEST(Arrow, WhatItLacksIsNamed) {
  EXPECT_THAT(
      arrow_error(kArrow + "lz4.arrow"),
      HasSubstr("lz4.arrow:0: the data are compressed with LZ4; redco reads uncompressed Arrow data"));
  EXPECT_THAT(arrow_error(kArrow + "union.arrow"),
              HasSubstr("union.arrow: column both has the type union, which redco does not read"));
  EXPECT_THAT(arrow_error(kArrow + "union.arrow"), HasSubstr("dataset.to_parquet("));
  EXPECT_THAT(arrow_error(kArrow + "rows.jsonl"), HasSubstr("rows.jsonl: not a whole Arrow file"));
}

// Each changed byte gives rows or one of redco's errors; sanitizers see what lies outside of the buffers.
TEST(Arrow, DamagedFilesAreErrors) {
  const test::TempDir dir{test::TempDir::in_memory};
  std::mt19937 random(1);
  for (const std::string name : {"stream", "zstd", "file", "deltas", "classes"}) {
    const std::string whole = test::slurp(kArrow + name + ".arrow");
    int errors = 0;
    for (int i = 0; i < 200; ++i) {
      std::string bytes = whole;
      if (i % 4 == 0)
        bytes.erase(random() % bytes.size(), 1 + random() % 64);
      else
        for (int k = 0; k < 1 + i % 8; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
      test::spill(dir / "damaged.arrow", bytes);
      try {
        ArrowRows rows(dir / "damaged.arrow");
        int n = 0;
        for (std::string row; n < 1000 && rows.next(row);) ++n;
      } catch (const Error&) {
        ++errors;
      }
    }
    EXPECT_GT(errors, 20) << name;
  }
  // A cut file is an error wherever it was cut inside of a message.
  const std::string whole = test::slurp(kArrow + "stream.arrow");
  for (std::size_t n = 9; n + 8 < whole.size(); n += 101) {
    test::spill(dir / "cut.arrow", whole.substr(0, n));
    EXPECT_THAT(arrow_error(dir / "cut.arrow"), HasSubstr("cut.arrow")) << n;
  }
}

}  // namespace
}  // namespace redco
