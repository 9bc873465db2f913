#include "data/text/record_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "data/labelled/labelled_rows.h"
#include "data/text/pair_lines.h"
#include "data/text/record_lines.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Mapped {
  bool kept;
  std::string json, problem;
};
Mapped mapped(const DataSettings& s, std::string json, bool filters = true) {
  RecordMap map(s, filters);
  std::string problem;
  const bool kept = map.apply(json, problem);
  return {kept, json, problem};
}

TEST(RecordMap, AddsPathsAndTemplatesUnderTheirNames) {
  DataSettings s;
  EXPECT_FALSE(RecordMap(s, true).changes());
  EXPECT_EQ(RecordMap(s, true).fingerprint(), "");
  s.fields.prompt = "turns.0.text";
  EXPECT_TRUE(RecordMap(s, true).changes());
  EXPECT_FALSE(RecordMap(s, true).rewrites());
  EXPECT_EQ(mapped(s, R"({"turns":[{"text":"hi"}]})").json,
            R"({"turns":[{"text":"hi"}],"turns.0.text":"hi"})");
  EXPECT_EQ(mapped(s, R"({"turns.0.text":"own"})").json, R"({"turns.0.text":"own"})");
  EXPECT_EQ(mapped(s, R"({"turns":[]})").json, R"({"turns":[]})");
  s.fields.prompt = "{q}: {n} {{x}} {}{c.1}";
  EXPECT_TRUE(RecordMap(s, true).rewrites());
  EXPECT_EQ(mapped(s, R"({"q":"a\"b","n":2.5,"c":["-","é"]})").json,
            R"({"q":"a\"b","n":2.5,"c":["-","é"],"{q}: {n} {{x}} {}{c.1}":"a\"b: 2.5 {x} é"})");
  s.fields.prompt = R"({q}\n\\n)";
  EXPECT_EQ(mapped(s, R"({"q":"a"})").json, R"({"q":"a","{q}\\n\\\\n":"a\n\\n"})");
  s.fields.prompt = "{q}: {n} {{x}} {}{c.1}";
  const Mapped bad = mapped(s, R"({"q":"a"})");
  EXPECT_TRUE(bad.kept);
  EXPECT_THAT(bad.problem,
              HasSubstr("no \"n\", which the template '{q}: {n} {{x}} {}{c.1}' uses; its keys are q"));
  EXPECT_THAT(mapped(s, R"({"q":"a","n":[1],"c":["",""]})").problem, HasSubstr("\"n\" in the template"));
  EXPECT_EQ(mapped(s, R"({"q":"a"})", false).problem, "");  // a prompt may have another form
  EXPECT_EQ(mapped(s, "not json").json, "not json");
  for (const char* open : {"{q", "{b}a}", "{a{b}}", "{"}) {
    s.fields.prompt = open;
    EXPECT_THAT(usage_error([&] { RecordMap map(s, true); }), HasSubstr("brace")) << open;
  }
}

TEST(RecordMap, FiltersTrainingDataOnly) {
  DataSettings s;
  s.where = "lang == 'de'";
  EXPECT_TRUE(mapped(s, R"({"lang":"de"})").kept);
  EXPECT_FALSE(mapped(s, R"({"lang":"fr"})").kept);
  EXPECT_TRUE(mapped(s, R"({"lang":"fr"})", false).kept);
  EXPECT_NE(RecordMap(s, true).fingerprint(), "");
  s.where = "lang < 3";
  EXPECT_THAT(mapped(s, R"({"lang":"fr"})").problem, HasSubstr("data.where compares"));
}

std::vector<std::string> records(const std::string& file, const DataSettings& s) {
  RecordLines lines({file}, s);
  std::vector<std::string> out;
  for (std::string json; lines.next(json);)
    out.push_back(lines.problem().empty()
                      ? json
                      : lines.where().substr(lines.where().rfind(':')) + " " + lines.problem());
  return out;
}

TEST(RecordMap, HoldsForEveryFormatOfRecords) {
  const test::TempDir dir;
  DataSettings s;
  s.where = "n >= 2";
  s.fields.text = "{a}-{n}";
  const std::string two = R"({"a":"y","n":2,"{a}-{n}":"y-2"})",
                    texts = R"({"a":"y","n":"2","{a}-{n}":"y-2"})";
  write_file_durable(dir / "x.jsonl", "{\"a\":\"x\",\"n\":1}\n{\"a\":\"y\",\"n\":2}\n");
  EXPECT_THAT(records(dir / "x.jsonl", s), ElementsAre(two));
  write_file_durable(dir / "x.json", "[{\"a\":\"x\",\"n\":1},\n{\"a\":\"y\",\"n\":2}]");
  EXPECT_THAT(records(dir / "x.json", s), ElementsAre(two));
  write_file_durable(dir / "x.csv", "a,n\nx,1\ny,2\nz\n");
  EXPECT_THAT(records(dir / "x.csv", s), ElementsAre(texts, HasSubstr(":4 the row has 1 cell")));
  s.where = "m >= 2 and n > 0";
  EXPECT_THAT(usage_error([&] { records(dir / "x.csv", s); }), HasSubstr("data.where: no record has \"m\""));
}

TEST(RecordMap, HoldsForPairsAndLabelledRows) {
  const test::TempDir dir;
  write_file_durable(dir / "p.csv", "en,de,ok\na,b,yes\nc,d,no\n");
  PairSettings pairs;
  pairs.format = "csv";
  pairs.fields.source = "en: {en}";
  pairs.fields.target = "de";
  pairs.where = "ok == 'no'";
  const auto file = open_pairs({dir / "p.csv"}, pairs);
  ExampleRecord r;
  ASSERT_TRUE(file->next(r));
  EXPECT_EQ(r.line, 3u);
  EXPECT_THAT(r.text, HasSubstr("\"en: {en}\":\"en: c\""));
  EXPECT_FALSE(file->next(r));

  write_file_durable(dir / "v.csv", "x,y,label,split\n1,2.5,a,test\n3,-4,b,train\n");
  DataSettings s;
  s.fields.features = {"x", "y"};
  s.where = "split == 'train'";
  LabelledReader rows(dir / "v.csv", s, LabelledInput::vector);
  LabelledRow row;
  ASSERT_TRUE(rows.next(row));
  EXPECT_EQ(row.bad, "");
  EXPECT_THAT(row.features, ElementsAre(3.0F, -4.0F));
  EXPECT_THAT(row.label, ElementsAre("b"));
  EXPECT_FALSE(rows.next(row));
}

}  // namespace
}  // namespace redco
