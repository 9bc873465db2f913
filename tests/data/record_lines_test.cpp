// The records of files in each format (record_lines, json_objects, data/parquet).
#include "data/text/record_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "data/parquet/decompress.h"
#include "data/parquet/parquet_rows.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using RecordJson = nlohmann::json;

const std::string kParquet = std::string(REDCO_FIXTURES) + "/parquet/";

class Formats : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    test::spill(dir_ / name, text);
    return dir_ / name;
  }
  static std::vector<std::string> all(RecordLines lines) {
    std::vector<std::string> out;
    for (std::string json; lines.next(json);)
      out.push_back(lines.where().substr(lines.where().rfind('/') + 1) + " " +
                    RecordJson::parse(json).dump());
    return out;
  }
  // The message of the error.
  std::string refused(const std::string& name, const std::string& text) {
    try {
      all(RecordLines({file(name, text)}, DataSettings()));
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }

  test::TempDir dir_{test::TempDir::in_memory};
};

TEST_F(Formats, EachFileHasItsFormat) {
  const DataSettings s;
  const std::vector<std::string> files = {
      file("a.jsonl", "{\"text\": \"1\"}\n\n{\"text\": \"2\"}\n"),
      file("b.json", "\n[{\"text\": \"[{\\\"}\"},\n {\n \"text\": \"4\"}]\n"),
      file("c.json", "{\n \"text\": \"5\"\n}\n{\"text\": \"6\"} {\"text\": \"7\"}"),
      file("d.csv", "text,n\n\"a, \"\"b\"\"\nc\",1\n,2\n"),
      file("e.tsv", "text\tn\na, b\t1\n"),
      file("f.json", "[]"),
      file("w.json",
           "{\"version\": [{}], \"data\":\n [{\"text\": \"8\"}, {\"data\": [{}]}], \"n\": {\"a\": 1}\n}\n"),
      file("s.json", "{\"data\": [1], \"text\": \"data\"}\n{\"data\": [{}]}")};
  EXPECT_THAT(
      all(RecordLines(files, s)),
      ElementsAre(R"(a.jsonl:1 {"text":"1"})", R"(a.jsonl:3 {"text":"2"})", R"(b.json:2 {"text":"[{\"}"})",
                  R"(b.json:3 {"text":"4"})", R"(c.json:1 {"text":"5"})", R"(c.json:4 {"text":"6"})",
                  R"(c.json:4 {"text":"7"})", R"(d.csv:2 {"n":"1","text":"a, \"b\"\nc"})",
                  R"(d.csv:4 {"n":"2","text":""})", R"(e.tsv:2 {"n":"1","text":"a, b"})",
                  R"(w.json:2 {"text":"8"})", R"(w.json:2 {"data":[{}]})",
                  R"(s.json:1 {"data":[1],"text":"data"})", R"(s.json:2 {"data":[{}]})"));
  DataSettings json;
  json.format = "json";
  EXPECT_EQ(all(RecordLines({file("x.data", "[{\"a\": 1}]")}, json)).size(), 1u);
  DataSettings numbered;
  numbered.fields.text = "2";  // so there is no header
  EXPECT_THAT(all(RecordLines({file("g.tsv", "x\ty\n")}, numbered)),
              ElementsAre(R"(g.tsv:1 {"1":"x","2":"y"})"));
  EXPECT_THAT(all(RecordLines::of_prompts({file("p.txt", "one\n\ntwo")}, s)),
              ElementsAre(R"(p.txt:1 {"text":"one"})", R"(p.txt:3 {"text":"two"})"));
}

// Exports of spreadsheets, SQuAD's articles, CoNLL's columns, tables of image folders.
TEST_F(Formats, FormsThatProgramsExport) {
  const DataSettings s;
  EXPECT_THAT(all(RecordLines({file("a.csv", "\xEF\xBB\xBF\"a,1\";b\r\n\"x;\"\"y\"\"\r\nz\";1,5\r\n"),
                               file("b.csv", "a\tb\n\"x\ty\"\t2\n"), file("c.csv", "a,b;c\n1,2;3\n")},
                              s)),
              ElementsAre(R"(a.csv:2 {"a,1":"x;\"y\"\nz","b":"1,5"})", R"(b.csv:2 {"a":"x\ty","b":"2"})",
                          R"(c.csv:2 {"a":"1","b;c":"2;3"})"));
  const std::string squad = R"({"version": "1", "data": [{"title": "t", "paragraphs": [
      {"context": "c", "qas": [{"id": "1", "question": "q", "answers": []}, {"id": "2", "question": "r"}]}]},
      {"question": "plain"}]})";
  EXPECT_THAT(all(RecordLines({file("q.json", squad)}, s)),
              ElementsAre(R"(q.json:1 {"answers":[],"context":"c","id":"1","question":"q","title":"t"})",
                          R"(q.json:1 {"context":"c","id":"2","question":"r","title":"t"})",
                          R"(q.json:3 {"question":"plain"})"));
  EXPECT_THAT(all(RecordLines({file("l.jsonl", "[\"a\", \"b\"]\n[1]\n")}, s)),
              ElementsAre(R"(l.jsonl:1 {"1":"a","2":"b"})", "l.jsonl:2 [1]"));
  EXPECT_THAT(
      all(RecordLines({file("metadata.csv", "file_name,text\n1.png,a dog\n"),
                       file("other.csv", "file_name,text\n1.png,a dog\n")},
                      s)),
      ElementsAre(
          R"(metadata.csv:2 {"audio":"1.png","caption":"a dog","file_name":"1.png","image":"1.png","text":"a dog"})",
          R"(other.csv:2 {"file_name":"1.png","text":"a dog"})"));
}

// to_json() of pandas, except orient="records" and "table".
TEST_F(Formats, TablesOfPandasInOneObjectAreNamed) {
  for (const char* text : {R"({"a": {"0": 1, "1": 2}, "b": {"0": "x", "1": "y"}})",
                           R"({"0": {"a": 1, "b": "x"}, "1": {"a": 2, "b": "y"}})",
                           R"({"columns": ["a"], "index": [0], "data": [[1]]})"})
    EXPECT_THAT(refused("a.json", text),
                HasSubstr("a.json:1: one object with all rows, as pandas' to_json() writes "
                          "it; expected an object per row. Write the file with"))
        << text;
  EXPECT_THAT(all(RecordLines({file("b.json", R"({"a": {"0": 1}}{"a": {"0": 2}})")})),
              ElementsAre(R"(b.json:1 {"a":{"0":1}})", R"(b.json:1 {"a":{"0":2}})"));
}

TEST_F(Formats, SentencesOfConllFiles) {
  const DataSettings s;
  const std::string text =
      "-DOCSTART- -X- O\n\n# id 1 x y\nEU NNP B-ORG\n#  NN O\n\n\n# a comment of words\n# NN O\n";
  EXPECT_THAT(
      all(RecordLines({file("a.conll", text)}, s)),
      ElementsAre(R"(a.conll:4 {"1":["EU","#"],"2":["NNP","NN"],"3":["B-ORG","O"],"tags":["B-ORG","O"],)"
                  R"("tokens":["EU","#"]})",
                  R"(a.conll:9 {"1":["#"],"2":["NN"],"3":["O"],"tags":["O"],"tokens":["#"]})"));
  RecordLines bad({file("b.conll", "a\t\tO\nb\tO\n")}, s);
  std::string json;
  ASSERT_TRUE(bad.next(json));
  EXPECT_EQ(bad.problem(), "line 2, b O, has 2 columns, but the first word of the file has 3");
}

TEST_F(Formats, DamagedFilesAreNamedWithTheirPlaces) {
  const struct {
    std::string name, text, reason;
  } cases[] = {
      {"a.json", "[{\"a\": 1},\n{\"a\": 2}", "a.json:2: the file ends inside the array"},
      {"a.json", "[{\"a\": 1}\n{\"a\": 2}]", "a.json:2: expected a comma"},
      {"a.json", "[{\"a\": 1},\n]", "a.json:2: a comma before the ]"},
      {"a.json", "[{\"a\": 1}] x", "a.json:1: text after the array"},
      {"a.json", "{\"data\": [{}, {}", "a.json:1: the file ends inside the array"},
      {"a.json", "{\"data\": [{}]\n", "a.json:2: the file ends inside the object that has the array"},
      {"a.json", "\n[1, 2]", "a.json:2: expected an object, {\"key\": value, ...}, got 1, 2]"},
      {"a.json", "\n{\"a\": \"}", "a.json:2: the object that begins here does not end"},
      {"a.json", "{\"paragraphs\": [{\"qas\": 1}]}", "a.json:1: an article without a list \"qas\""},
      {"a.csv", "a,a\n", "two columns have the name 'a'"},
      {"a.xyz", "a", "a.xyz: records need one of the formats"},
      {"a.parquet", "text", "a.parquet: not a whole Parquet file"},
  };
  for (const auto& c : cases) EXPECT_THAT(refused(c.name, c.text), HasSubstr(c.reason)) << c.text;
}

// Rows as pyarrow wrote them (scripts/make_parquet_fixtures.py): nested columns, both versions of pages, all
// encodings and codecs, row groups.
TEST_F(Formats, ParquetRowsEqualTheirJsonLines) {
  for (const std::string name : {"chats-snappy", "chats-v2-zstd", "flat-plain", "flat-gzip", "flat-delta",
                                 "maps", "classes", "images"}) {
    ParquetRows rows(kParquet + name + ".parquet");
    std::ifstream in(kParquet + name + ".jsonl");
    std::string row, line;
    i64 n = 0;
    for (; std::getline(in, line); ++n) {
      ASSERT_TRUE(rows.next(row)) << name << " " << n;
      EXPECT_EQ(RecordJson::parse(row), RecordJson::parse(line)) << name << " " << n;
    }
    EXPECT_FALSE(rows.next(row)) << name;
    EXPECT_EQ(rows.line_number(), n);
  }
}

// "classes" above has its names from the metadata of the library datasets. Numbers without a name are errors;
// other metadata name nothing.
TEST_F(Formats, ParquetClassesHaveNames) {
  std::string row;
  try {
    ParquetRows(kParquet + "classes-few.parquet").next(row);
    FAIL();
  } catch (const ContentsError& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("classes-few.parquet:1: column label has class 1, but the file's metadata "
                          "name the classes 0 to 0"));
  }
  ASSERT_TRUE(ParquetRows(kParquet + "classes-other.parquet").next(row));
  EXPECT_EQ(RecordJson::parse(row)["label"], 1);
}

TEST_F(Formats, ParquetOfAnUnknownCodecIsNamed) {
  ParquetRows rows(kParquet + "brotli.parquet");
  std::string row;
  try {
    rows.next(row);
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("brotli.parquet:1: the pages are compressed with Brotli"));
    EXPECT_THAT(e.what(), HasSubstr("compression='zstd'"));
  }
}

// Each changed byte gives rows or one of redco's errors; sanitizers see what lies outside of the buffers.
TEST_F(Formats, DamagedParquetFilesAreErrors) {
  std::mt19937 random(1);
  for (const std::string name : {"chats-snappy", "chats-v2-zstd", "flat-gzip", "flat-delta", "classes"}) {
    const std::string whole = test::slurp(kParquet + name + ".parquet");
    int errors = 0;
    for (int i = 0; i < 120; ++i) {
      std::string bytes = whole;
      if (i % 4 == 0)
        bytes.erase(random() % bytes.size(), 1 + random() % 64);
      else
        for (int k = 0; k < 1 + i % 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
      try {
        ParquetRows rows(file("damaged.parquet", bytes));
        int n = 0;
        for (std::string row; n < 1000 && rows.next(row);) ++n;
      } catch (const Error&) {
        ++errors;
      }
    }
    EXPECT_GT(errors, 20) << name;
  }
}

TEST_F(Formats, SnappyCopiesMayOverlap) {
  // "ab", then a copy of 6 bytes from 2 back.
  const std::string packed = {8, (2 - 1) << 2, 'a', 'b', static_cast<char>((6 - 1) << 2 | 2), 2, 0};
  EXPECT_EQ(unpack_snappy(packed, 8), "abababab");
  for (const std::string& bad : {packed.substr(0, 4), packed.substr(0, 6), packed + "x"})
    EXPECT_THROW(unpack_snappy(bad, 8), ContentsError);
  EXPECT_THROW(unpack_snappy({"\x04\x02\x01\x00", 4}, 4), ContentsError);
}

}  // namespace
}  // namespace redco
