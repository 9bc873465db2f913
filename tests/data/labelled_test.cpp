// Labelled examples: rows of tables and lines, classes, and the index that ranks read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "data/labelled/labelled_index.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Labelled : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    spill(dir_ / name, text);
    return dir_ / name;
  }
  // text|pair|label of each row
  std::vector<std::string> rows(const std::string& path, const DataSettings& s = {},
                                LabelledInput input = LabelledInput::text) {
    LabelledReader reader(path, s, input);
    std::vector<std::string> out;
    for (LabelledRow r; reader.next(r);) {
      if (!r.bad.empty()) throw ContentsError("{}", r.bad);
      std::string one = r.text + r.image;
      for (const float x : r.features) one += fmt::format("{},", x);
      one += "|" + r.text_pair.value_or("-");
      for (const std::string& l : r.label) one += "|" + l;
      out.push_back(one + (r.id.empty() ? "" : " " + r.id));
    }
    return out;
  }
  std::string refused(const std::string& name, const std::string& text, const DataSettings& s = {},
                      LabelledInput input = LabelledInput::text) {
    const std::string path = file(name, text);
    return error_text<Error>([&] { rows(path, s, input); });
  }
  LabelledSource source(const std::vector<std::string>& paths, i64 max_length = 64) {
    return {.paths = paths,
            .data = {},
            .input = LabelledInput::text,
            .tokenizer = bytes_.get(),
            .max_length = max_length,
            .classes = ClassNames({"no", "yes"})};
  }
  LabelledIndex build(const LabelledSource& s) {
    return LabelledIndex::open(build_labelled_index(s, dir_ / "cache"), s.paths);
  }

  test::TempDir dir_{test::TempDir::in_memory};
  std::unique_ptr<Tokenizer> bytes_ = load_tokenizer("bytes");
};

TEST_F(Labelled, RowsOfTablesAndLines) {
  DataSettings numbered;
  numbered.fields.text = "1";
  numbered.fields.label = {"2"};
  // Quotes have no meaning in TSV.
  EXPECT_THAT(rows(file("a.tsv", "a \"film\t1\nb, c\t0\n"), numbered),
              ElementsAre("a \"film|-|1", "b, c|-|0"));
  EXPECT_THAT(
      rows(file("a.csv", "id,label,text,text_pair\r\n7,yes,\"a, \"\"b\"\"\",\"two\nlines\"\r\n8,no,c,d\r\n")),
      ElementsAre("a, \"b\"|two\nlines|yes \"7\"", "c|d|no \"8\""));
  DataSettings nested;
  nested.fields.text = "data.text";
  EXPECT_THAT(rows(file("a.jsonl",
                        "{\"data\": {\"text\": \"x\"}, \"label\": 3, \"id\": [1]}\n\n"
                        "{\"data.text\": \"y\", \"label\": true}\n"),
                   nested),
              ElementsAre("x|-|3 [1]", "y|-|true"));
  DataSettings numbers;
  numbers.fields.features = {"a", "b"};
  numbers.fields.label = {"y", "z"};
  EXPECT_THAT(rows(file("b.csv", "a,b,y,z\n1,-2e1,0.5,3\n"), numbers, LabelledInput::vector),
              ElementsAre("1,-20,|-|0.5|3"));
  EXPECT_THAT(
      rows(file("b.jsonl", "{\"features\": [1, [2.5]], \"label\": [1, 2]}\n"), {}, LabelledInput::vector),
      ElementsAre("1,2.5,|-|1|2"));
  EXPECT_THAT(rows(file("c.jsonl", "{\"image\": \"a/1.png\", \"label\": \"a\"}\n"), {}, LabelledInput::image),
              ElementsAre("a/1.png|-|a"));
}

TEST_F(Labelled, BadRowsAreErrorsWithTheirPlace) {
  EXPECT_THAT(refused("a.tsv", "text\tlabel\nx\t1\ny\n"),
              AllOf(HasSubstr("a.tsv:3: 1 column"), HasSubstr("text, label")));
  EXPECT_THAT(refused("a.tsv", "text\tlabel\n \t1\n"), HasSubstr("a.tsv:2: the text is empty"));
  EXPECT_THAT(refused("a.tsv", "text\tlabel\nx\t\n"), HasSubstr("a.tsv:2: the label is empty"));
  EXPECT_THAT(refused("a.tsv", "text\ttext_pair\tlabel\nx\t\t1\n"), HasSubstr("a.tsv:2: the second text"));
  // The error has the settings for keys of a usual form.
  EXPECT_THAT(
      refused("a.tsv", "review\tstars\nx\t1\n"),
      HasSubstr(
          "a.tsv: no column text; its keys are review, stars. data.fields='{text: review, label: stars}'"
          " reads records of this form. Without a header, set data.header=false"));
  EXPECT_THAT(
      refused("a.jsonl", "{\"premise\": \"x\", \"hypothesis\": \"y\", \"label\": 1}\n"),
      HasSubstr(
          "a.jsonl:1: no \"text\"; its keys are premise, hypothesis, label. data.fields='{text: premise, "
          "text_pair: hypothesis}' reads"));
  EXPECT_THAT(refused("a.jsonl", "{\"x\": \"x\", \"label\": 1}\n"),
              HasSubstr("no \"text\"; its keys are x, label (data.fields renames them)"));
  EXPECT_THAT(refused("a.csv", "text,label\n\"x,1\n"), AllOf(HasSubstr("a.csv:2: "), HasSubstr("quote")));
  EXPECT_THAT(refused("a.jsonl", "{\"text\": \"x\"}\n"), HasSubstr("a.jsonl:1: no \"label\""));
  EXPECT_THAT(refused("a.jsonl", "{\"text\": 1, \"label\": 1}\n"),
              HasSubstr("a.jsonl:1: \"text\" is not a text but number"));
  EXPECT_THAT(refused("a.jsonl", "{\"text\": \"x\", \"label\": {}}\n"), HasSubstr("\"label\" is neither"));
  EXPECT_THAT(refused("a.jsonl", "{\"text\"\n"), HasSubstr("a.jsonl:1: not JSON"));
  EXPECT_THAT(refused("a.jsonl", std::string(100, '[') + "\n"), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refused("b.csv", "features,label\none,1\n", {}, LabelledInput::vector),
              HasSubstr("b.csv:2: column features: expected a number, got 'one'"));
  EXPECT_THAT(refused("b.jsonl", "{\"features\": [1e60], \"label\": 1}\n", {}, LabelledInput::vector),
              HasSubstr("is outside the range of a float"));
  EXPECT_THAT(refused("a.tsv", "text\tlabel\nx\tcaf\xE9\n"), HasSubstr("a.tsv:2: the label 'caf"));
  EXPECT_THAT(refused("a.tsv", std::string("t\0x", 3)), HasSubstr("a.tsv:1: the first line has a zero byte"));
  EXPECT_THAT(refused("a.parquet.txt", "PAR1"), HasSubstr("data.format"));
  EXPECT_THAT(error_text<Error>([&] { rows(dir_ / "none.tsv"); }), HasSubstr("none.tsv"));
}

TEST_F(Labelled, EncodingsOfFiles) {
  const std::string mark = "\xEF\xBB\xBF";
  const auto one = ElementsAre("x|-|1");
  EXPECT_THAT(rows(file("a.tsv", mark + "text\tlabel\r\nx\t1\r\n")), one);
  EXPECT_THAT(rows(file("a.csv", mark + "\"text\",label\r\nx,1\r\n")), one);
  EXPECT_THAT(rows(file("a.jsonl", mark + "{\"text\": \"x\", \"label\": 1}\r\n")), one);
  for (const std::string name : {"b.tsv", "b.csv", "b.jsonl"})
    EXPECT_THAT(refused(name, std::string("\xFE\xFF\0t\0e", 6)),
                HasSubstr(name + ": the file is UTF-16, expected UTF-8. Convert it with: iconv -f UTF-16"));
}

TEST_F(Labelled, ClassesByNameOrIndex) {
  const ClassNames named({"no", "yes"}), numbers({"0", "1", "5"});
  EXPECT_EQ(named.number_of("yes"), 1);
  EXPECT_EQ(named.number_of("1"), 1);
  EXPECT_EQ(numbers.number_of("5"), 2);
  EXPECT_THAT(error_text<Error>([&] { numbers.number_of("2"); }),
              HasSubstr("the label '2' is not one of the 3 classes: 0, 1, 5"));
  EXPECT_THAT(error_text<Error>([&] { named.number_of("2"); }), HasSubstr("'2'"));
  EXPECT_THAT(error_text<Error>([&] { named.number_of("01"); }), HasSubstr("'01'"));
  EXPECT_THROW(ClassNames({"a", "a"}), UsageError);
  EXPECT_THROW(ClassNames(std::vector<std::string>{}), UsageError);
  EXPECT_THAT(sorted_labels({"10", "9", "-1", "9"}), ElementsAre("-1", "9", "10"));
  EXPECT_THAT(sorted_labels({"10", "9", "x"}), ElementsAre("10", "9", "x"));
  const std::string path = file("a.tsv", "text\tlabel\nx\tb\ny\ta\nz\tb\n");
  EXPECT_THAT(distinct_labels({path}, {}, LabelledInput::text), ElementsAre("a", "b"));
}

TEST_F(Labelled, SeveralClassesInACell) {
  const auto classes = [](const std::string& cell) {
    LabelledRow row;
    row.label = {cell};
    return several_labels(row, {});
  };
  EXPECT_THAT(classes("a|b"), ElementsAre("a", "b"));
  EXPECT_THAT(classes("2,5"), ElementsAre("2", "5"));  // GoEmotions
  EXPECT_THAT(classes("Arts, Crafts|7"), ElementsAre("Arts, Crafts", "7"));
  EXPECT_THAT(classes(""), ElementsAre());
}

TEST_F(Labelled, TheIndexHasTheRows) {
  const LabelledSource s = source({file("a.jsonl",
                                        "{\"text\": \"ab\", \"label\": \"yes\", \"id\": 4}\n"
                                        "{\"text\": \"abc\", \"text_pair\": \"d\", \"label\": 0}\n")});
  const LabelledIndex index = build(s);
  ASSERT_EQ(index.size(), 2);
  EXPECT_EQ(index.longest(), 4);
  const LabelledExample one = index.read(0), two = index.read(1);
  EXPECT_THAT(one.ids, ElementsAre('a', 'b'));
  EXPECT_THAT(one.targets, ElementsAre(1));
  EXPECT_EQ(one.id, "4");
  EXPECT_THAT(two.types, ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(two.text, R"({"text":"abc","text_pair":"d"})");
  // Built once; other classes give other targets.
  EXPECT_EQ(build_labelled_index(s, dir_ / "cache"), build_labelled_index(s, dir_ / "cache"));
  LabelledSource other = s;
  other.classes = ClassNames({"yes", "no"});
  EXPECT_EQ(build(other).read(0).targets[0], 0);
  EXPECT_NE(build(other).data_hash(), index.data_hash());
}

TEST_F(Labelled, LongTextsAndBadRows) {
  LabelledSource s = source({file("a.tsv", "text\tlabel\nabcdef\tyes\nx\tmaybe\nab\tno\n")}, 4);
  EXPECT_THAT(error_text<Error>([&] { build(s); }),
              AllOf(HasSubstr("a.tsv:3: the label 'maybe' is not one of the 2 classes: no, yes"),
                    HasSubstr("skip_bad")));
  s.data.skip_bad = true;
  const LabelledIndex index = build(s);
  EXPECT_EQ(index.size(), 2);
  EXPECT_EQ(index.n_bad(), 1);
  EXPECT_EQ(index.truncated(), 1);
  EXPECT_THAT(index.first_bad(), HasSubstr("a.tsv:3"));
  EXPECT_THAT(index.read(0).ids, ElementsAre('a', 'b', 'c', 'd'));
  s.data.too_long = "skip";
  EXPECT_EQ(build(s).size(), 1);
  // If the rest of a file is unreadable, this is an error even with skip_bad, because the loss is unknown.
  const std::string table = "text\tlabel\nx\tyes\n";
  const auto n = static_cast<char>(table.size()), not_n = static_cast<char>(~n);
  // One stored block; the trailer is missing.
  const std::string gz =
      std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01", 11) + n + '\0' + not_n + '\xFF' + table;
  for (const auto& [name, text] : {std::pair<std::string, std::string>("c.tsv.gz", gz),
                                   {"c.csv", "text,label\nx,yes\n\"y,no\nz,no\n"}}) {
    LabelledSource damaged = source({file(name, text)});
    damaged.data.skip_bad = true;
    EXPECT_THAT(error_text<ContentsError>([&] { build(damaged); }), HasSubstr(name));
    EXPECT_THROW(distinct_labels(damaged.paths, damaged.data, LabelledInput::text), ContentsError);
  }
  s.data.skip_bad = false;
  s.data.too_long = "error";
  EXPECT_THAT(error_text<Error>([&] { build(s); }),
              HasSubstr("a.tsv:2: 6 tokens, more than data.max_length=4"));
  s.data.too_long = "split";
  EXPECT_THROW(build(s), UsageError);
}

// Any bytes give rows or an error with a known exit code.
TEST_F(Labelled, HostileBytes) {
  redco::testing::Random random(7);
  const std::vector<std::pair<std::string, std::string>> files = {
      {"f.csv", "text,label\n\"a \"\"b\"\"\",1\nc,0\n"},
      {"f.tsv", "text\tlabel\na\t1\nc\t0\n"},
      {"f.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\", \"label\": \"0\"}\n"}};
  for (const auto& [name, good] : files)
    for (int k = 0; k < 150; ++k) {
      std::string text = good;
      for (i64 n = 1 + random.below(4); n > 0; --n) {
        const auto at = static_cast<std::size_t>(random.below(static_cast<i64>(text.size())));
        if (random.below(3) == 0)
          text.erase(at, 1 + static_cast<std::size_t>(random.below(3)));
        else
          text[at] = "\"\n,\t{}[]\\\0\xFF:1"[random.below(14)];
        if (text.empty()) text = "x";
      }
      const std::string path = file(name, text);
      try {
        rows(path);
      } catch (const ContentsError&) {
      } catch (const UsageError&) {
      }
    }
  // A damaged index is detected, or rebuilt.
  const LabelledSource s = source({file("a.tsv", "text\tlabel\nabcdef\tyes\nx\tno\n")});
  const std::string path = build_labelled_index(s, dir_ / "cache"), whole = slurp(path);
  for (int k = 0; k < 200; ++k) {
    std::string bytes = whole;
    const auto at = static_cast<std::size_t>(random.below(static_cast<i64>(bytes.size())));
    if (random.below(4) == 0)
      bytes.resize(at);
    else
      bytes[at] = static_cast<char>(random.next());
    spill(path, bytes);
    try {
      const LabelledIndex index = LabelledIndex::open(path);
      for (i64 i = 0; i < std::min<i64>(index.size(), 4); ++i) index.read(i);
    } catch (const ContentsError&) {
    }
  }
  EXPECT_EQ(build_labelled_index(s, dir_ / "cache"), path);
  EXPECT_EQ(slurp(path), whole);
}

}  // namespace
}  // namespace redco
